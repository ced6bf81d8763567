// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Handles that are stale, foreign, of another type, or made up.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{refused, refused_as, same};
use crate::raw;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::{call, Call, Message};
use libkdapl::{EvdFlags, Ia, Subtype, Type};
use std::collections::HashSet;

tests! {
    other_types, 20, "A handle of another type is refused by every call, with the type that was wanted";
    foreign, 20, "A handle of another open file is refused by every call";
    stale, 30, "A handle whose object was freed stays refused, however many objects come after it";
    made_up, 120, "A hundred thousand random handles are refused, and so are those near good ones";
    unique, 30, "No two living objects have the same handle, and no handle is zero";
    raced, 60, "Of many threads that free one object exactly one succeeds";
    used_while_freed, 60, "Objects may be used, asked and freed by many threads at once";
}

/// A message with a handle in the usual place.
type Send = fn(&Ia, u64) -> Result<(), libkdapl::Error>;

fn simple<M: Message>(
    ia: &Ia,
    request: Call<M>,
    fill: impl Fn(&mut M),
) -> Result<(), libkdapl::Error> {
    let mut message = M::default();
    fill(&mut message);
    raw::call(ia.device(), request, &mut message)
}

fn calls() -> Vec<(&'static str, Type, Option<Subtype>, Send)> {
    use Subtype as S;
    fn with(subtype: Subtype) -> Option<Subtype> {
        Some(subtype)
    }
    let bad = Type::INVALID_HANDLE;
    vec![
        ("pz_free", bad, with(S::INVALID_HANDLE_PZ), |ia, h| {
            simple(ia, call::PZ_FREE, |m| m.handle = h)
        }),
        ("evd_free", bad, None, |ia, h| simple(ia, call::EVD_FREE, |m| m.handle = h)),
        ("evd_query", bad, None, |ia, h| simple(ia, call::EVD_QUERY, |m| m.handle = h)),
        ("evd_wait", bad, None, |ia, h| {
            simple(ia, call::EVD_WAIT, |m| (m.handle, m.threshold) = (h, 1))
        }),
        ("evd_dequeue", bad, None, |ia, h| simple(ia, call::EVD_DEQUEUE, |m| m.handle = h)),
        ("evd_post_se", bad, None, |ia, h| simple(ia, call::EVD_POST_SE, |m| m.handle = h)),
        ("ep_free", bad, with(S::INVALID_HANDLE_EP), |ia, h| {
            simple(ia, call::EP_FREE, |m| m.handle = h)
        }),
        ("ep_query", bad, with(S::INVALID_HANDLE_EP), |ia, h| {
            simple(ia, call::EP_QUERY, |m| m.handle = h)
        }),
        ("ep_get_status", bad, with(S::INVALID_HANDLE_EP), |ia, h| {
            simple(ia, call::EP_GET_STATUS, |m| m.handle = h)
        }),
        ("ep_disconnect", bad, with(S::INVALID_HANDLE_EP), |ia, h| {
            simple(ia, call::EP_DISCONNECT, |m| m.handle = h)
        }),
        ("ep_private_data", bad, with(S::INVALID_HANDLE_EP), |ia, h| {
            simple(ia, call::EP_PRIVATE_DATA, |m| m.handle = h)
        }),
        ("ep_post", bad, with(S::INVALID_HANDLE_EP), |ia, h| {
            simple(ia, call::EP_POST, |m| m.handle = h)
        }),
        ("psp_free", bad, with(S::INVALID_HANDLE_PSP), |ia, h| {
            simple(ia, call::PSP_FREE, |m| m.handle = h)
        }),
        ("psp_query", bad, with(S::INVALID_HANDLE_PSP), |ia, h| {
            simple(ia, call::PSP_QUERY, |m| m.handle = h)
        }),
        ("cr_query", bad, with(S::INVALID_HANDLE_CR), |ia, h| {
            simple(ia, call::CR_QUERY, |m| m.handle = h)
        }),
        ("cr_reject", bad, with(S::INVALID_HANDLE_CR), |ia, h| {
            simple(ia, call::CR_REJECT, |m| m.handle = h)
        }),
        ("cr_accept", bad, with(S::INVALID_HANDLE_CR), |ia, h| {
            simple(ia, call::CR_ACCEPT, |m| m.handle = h)
        }),
        ("lmr_free", bad, with(S::INVALID_HANDLE_LMR), |ia, h| {
            simple(ia, call::LMR_FREE, |m| m.handle = h)
        }),
        ("lmr_query", bad, with(S::INVALID_HANDLE_LMR), |ia, h| {
            simple(ia, call::LMR_QUERY, |m| m.handle = h)
        }),
    ]
}

fn all_refuse(ia: &Ia, handle: u64, except: &str) -> Result<()> {
    for (name, kind, subtype, send) in calls() {
        if !except.is_empty() && name.starts_with(except) {
            continue;
        }
        let outcome = send(ia, handle);
        match subtype {
            Some(subtype) => refused_as(outcome, kind, subtype),
            None => refused(outcome, kind),
        }
        .with_context(|| format!("{name} of {handle:#x}"))?;
    }
    Ok(())
}

struct Objects {
    ia: Ia,
    end: End,
    listener: Listener,
}

impl Objects {
    fn new(context: &Context) -> Result<Self> {
        let ia = context.open()?;
        let end = End::new(&ia, Shape::default())?;
        let listener = Listener::new(context, &ia)?;
        Ok(Self { ia, end, listener })
    }

    /// Each with the prefix of the calls that it is right for.
    fn handles(&self) -> [(&'static str, u64); 7] {
        [
            ("ia_", self.ia.handle().0),
            ("pz_", self.end.pz.handle().0),
            ("evd_", self.end.recv.handle().0),
            ("evd_", self.ia.async_evd().handle().0),
            ("ep_", self.end.ep.handle().0),
            ("lmr_", self.end.lmr.handle().0),
            ("psp_", self.listener.psp.handle().0),
        ]
    }

    fn intact(&self) -> Result<()> {
        self.end.ep.query()?;
        self.end.recv.query()?;
        self.end.lmr.query()?;
        self.listener.psp.query()?;
        Ok(())
    }
}

fn other_types(context: &Context) -> Result<()> {
    let objects = Objects::new(context)?;
    for (own, handle) in objects.handles() {
        all_refuse(&objects.ia, handle, own)?;
    }
    all_refuse(&objects.ia, 0, "")?;
    objects.intact()
}

fn foreign(context: &Context) -> Result<()> {
    let objects = Objects::new(context)?;
    // An IA that has nothing, so that no handle can be the same by chance.
    let other = context.open()?;
    let own_async = other.async_evd().handle().0;
    for (_, handle) in objects.handles() {
        let except = if handle == own_async { "evd_" } else { "" };
        all_refuse(&other, handle, except)?;
    }
    objects.intact()
}

fn stale(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let first = ia.create_pz()?.handle().0;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    let old_evd = evd.handle().0;
    evd.free()?;
    let mut seen = HashSet::from([first, old_evd]);
    for _ in 0..context.count(5000) {
        let pz = ia.create_pz()?;
        ensure!(seen.insert(pz.handle().0), "handle {} came back", pz.handle());
        pz.free()?;
    }
    all_refuse(&ia, first, "")?;
    all_refuse(&ia, old_evd, "")
}

fn made_up(context: &Context) -> Result<()> {
    let objects = Objects::new(context)?;
    let good: HashSet<u64> = objects.handles().iter().map(|(_, handle)| *handle).collect();
    let calls = calls();
    let refuse = |handle: u64| -> Result<()> {
        if good.contains(&handle) {
            return Ok(());
        }
        let (name, kind, _, send) = calls[context.rng().usize(0..calls.len())];
        refused(send(&objects.ia, handle), kind).with_context(|| format!("{name} of {handle:#x}"))
    };
    for _ in 0..context.count(100_000) {
        let mut handle = context.rng().u64(..);
        if context.rng().bool() {
            // Small numbers, as an index would be.
            handle >>= context.rng().u32(8..60);
        }
        refuse(handle)?;
    }
    for near in &good {
        (0..64).try_for_each(|bit| refuse(near ^ (1 << bit)))?;
        (1..64).try_for_each(|step| refuse(near.wrapping_add(step)))?;
    }
    objects.intact()
}

fn unique(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let mut seen = HashSet::from([ia.handle().0, ia.async_evd().handle().0]);
    let (mut zones, mut evds) = (Vec::new(), Vec::new());
    for _ in 0..context.count(300).min(1000) {
        zones.push(ia.create_pz()?);
        evds.push(ia.create_evd(EvdFlags::SOFTWARE, 1)?);
    }
    let handles = zones.iter().map(|pz| pz.handle().0).chain(evds.iter().map(|evd| evd.handle().0));
    for handle in handles {
        ensure!(handle != 0 && seen.insert(handle), "handle {handle:#x} twice, or zero");
    }
    Ok(())
}

fn raced(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for _ in 0..context.count(500) {
        let pz = ia.create_pz()?;
        let evd = ia.create_evd(EvdFlags::SOFTWARE, 2)?;
        let successes: usize = std::thread::scope(|scope| {
            let free = || usize::from(pz.free().is_ok()) + usize::from(evd.free().is_ok());
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(free)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(100)).sum()
        });
        same("successful frees", successes, 2)?;
    }
    Ok(())
}

fn used_while_freed(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for _ in 0..context.count(100) {
        let end = End::new(&ia, Shape::default())?;
        std::thread::scope(|scope| {
            // Whatever these say, nothing may break.
            scope.spawn(|| (0..20).for_each(|_| drop(end.receive(0, 64, 1))));
            scope.spawn(|| (0..20).for_each(|_| drop((end.ep.query(), end.recv.query()))));
            scope.spawn(|| drop(end.ep.disconnect(libkdapl::Close::Abrupt)));
            scope.spawn(|| drop((end.ep.free(), end.lmr.free(), end.recv.free(), end.pz.free())));
        });
        // What could not be freed then can be now.
        let _ = (end.ep.free(), end.lmr.free(), end.recv.free());
        refused(end.ep.query(), Type::INVALID_HANDLE)?;
    }
    Ok(())
}
