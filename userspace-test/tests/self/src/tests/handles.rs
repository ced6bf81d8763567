// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Handles that are stale, foreign, of another type, or made up.

mod rows;

use self::rows::{rows, Kind, Row, WITHOUT};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{refused, refused_as, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::{Cno, Cr, Csp, Ep, EvdFlags, Ia, Rsp, Type};
use std::collections::HashSet;

tests! {
    every_call, 5, "Every call is known to take handles, and is tried with wrong ones, or to take none";
    other_types, 20, "A handle of another type is refused by every call, with the type that was wanted";
    foreign, 20, "A handle of another open file is refused by every call";
    stale, 30, "A handle whose object was freed stays refused, however many objects come after it";
    made_up, 120, "A hundred thousand random handles are refused, and so are those near good ones";
    unique, 30, "No two living objects have the same handle, and no handle is zero";
    raced, 60, "Of many threads that free one object exactly one succeeds";
    used_while_freed, 60, "Objects may be used, asked and freed by many threads at once";
}

fn every_call(_context: &Context) -> Result<()> {
    let tried: HashSet<_> = rows().iter().map(|row| row.request).collect();
    for (name, request, _) in call::ALL {
        ensure!(
            tried.contains(request) != WITHOUT.contains(request),
            "{name}: in both, or neither"
        );
    }
    same("calls", tried.len() + WITHOUT.len(), call::ALL.len())
}

impl Row {
    fn refuses(&self, ia: &Ia, handle: u64) -> Result<()> {
        refused_as((self.send)(ia, handle), Type::INVALID_HANDLE, self.subtype)
            .with_context(|| format!("{} of {handle:#x}, wants {:?}", self.name, self.wants))
    }
}

/// `own`: what the handle names in that IA, if anything.
fn all_refuse(ia: &Ia, handle: u64, own: Option<Kind>) -> Result<()> {
    rows()
        .iter()
        .filter(|row| Some(row.wants) != own && (handle != 0 || !row.or_none))
        .try_for_each(|row| row.refuses(ia, handle))
}

/// One object of each kind at least.
struct Objects {
    cno: Cno,
    rsp: Rsp,
    csp: Csp,
    cr: Cr,
    listener: Listener,
    end: End,
    ia: Ia,
    /// What the request came from.
    _peer: (Ep, End),
}

impl Objects {
    fn new(context: &Context) -> Result<Self> {
        let (client, ia) = context.open_both()?;
        Self::of(context, &client, ia)
    }

    fn of(context: &Context, client: &Ia, ia: Ia) -> Result<Self> {
        let end = End::new(&ia, Shape::default())?;
        let listener = Listener::new(context, &ia)?;
        let peer = End::new(client, Shape::default())?;
        let caller = peer.another_ep()?;
        let (address, patience) = (context.server_address(), context.patience());
        caller.connect(address, listener.port, Some(patience), &[])?;
        let rsp =
            context.server.inside(|| ia.create_rsp(context.port(), &listener.evd, None))??;
        let csp = context.server.inside(|| ia.create_csp(None, &listener.evd))??;
        Ok(Self {
            cno: ia.create_cno(None)?,
            rsp,
            csp,
            cr: listener.request(context)?,
            listener,
            end,
            ia,
            _peer: (caller, peer),
        })
    }

    /// Each with what it is right for.
    fn handles(&self) -> [(Kind, u64); 11] {
        [
            (Kind::Ia, self.ia.handle()),
            (Kind::Pz, self.end.pz.handle()),
            (Kind::Evd, self.end.recv.handle()),
            (Kind::Evd, self.ia.async_evd().handle()),
            (Kind::Ep, self.end.ep.handle()),
            (Kind::Lmr, self.end.lmr.handle()),
            (Kind::Psp, self.listener.psp.handle()),
            (Kind::Rsp, self.rsp.handle()),
            (Kind::Csp, self.csp.handle()),
            (Kind::Cr, self.cr.handle()),
            (Kind::Cno, self.cno.handle()),
        ]
        .map(|(kind, handle)| (kind, handle.0))
    }

    fn intact(&self) -> Result<()> {
        self.end.ep.query()?;
        self.end.recv.query()?;
        self.end.lmr.query()?;
        self.listener.psp.query()?;
        self.rsp.query()?;
        self.csp.query()?;
        self.cr.query()?;
        self.cno.query()?;
        Ok(())
    }
}

fn other_types(context: &Context) -> Result<()> {
    let objects = Objects::new(context)?;
    for (own, handle) in objects.handles() {
        all_refuse(&objects.ia, handle, Some(own))?;
    }
    all_refuse(&objects.ia, 0, None)?;
    objects.intact()
}

fn foreign(context: &Context) -> Result<()> {
    let objects = Objects::new(context)?;
    // An IA that has nothing, so that no handle can be the same by chance.
    let other = context.open()?;
    let own_async = other.async_evd().handle().0;
    for (_, handle) in objects.handles() {
        all_refuse(&other, handle, (handle == own_async).then_some(Kind::Evd))?;
    }
    objects.intact()
}

fn stale(context: &Context) -> Result<()> {
    let (client, ia) = context.open_both()?;
    let mut old: HashSet<_> =
        Objects::of(context, &client, ia.clone())?.handles().map(|(_, handle)| handle).into();
    old.remove(&ia.handle().0);
    old.remove(&ia.async_evd().handle().0);
    let mut seen = old.clone();
    for _ in 0..context.count(5000) {
        let pz = ia.create_pz()?;
        ensure!(seen.insert(pz.handle().0), "handle {} came back", pz.handle());
        pz.free()?;
    }
    // Others, in their places.
    let new = Objects::of(context, &client, ia.clone())?;
    old.iter().try_for_each(|handle| all_refuse(&ia, *handle, None))?;
    new.intact()
}

fn made_up(context: &Context) -> Result<()> {
    let objects = Objects::new(context)?;
    let good = [objects.listener.evd.handle().0, objects.end.request.handle().0];
    let good = good.into_iter().chain([objects.end.connect.handle().0]);
    let known = objects.handles().map(|(_, handle)| handle);
    let good: HashSet<u64> = good.chain(known).chain([0]).collect();
    let rows = rows();
    let refuse = |handle: u64| -> Result<()> {
        if good.contains(&handle) {
            return Ok(());
        }
        rows[context.rng().usize(0..rows.len())].refuses(&objects.ia, handle)
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
