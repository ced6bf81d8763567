// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Passes handles to calls that are stale, foreign, of another type, or invented.

mod rows;

use self::rows::{rows, Kind, Row, WITHOUT};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{refused, refused_as, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::{Cno, Cr, Csp, Ep, EvdFlags, Ia, Rsp, Srq, Type};
use std::collections::HashSet;

tests! {
    table_is_complete, 5, "Every call that takes a handle is tried with wrong ones; the others are known to take none";
    other_types, 20, "Every call refuses a handle of another type, and reports the type it wanted";
    of_other_files, 20, "Every call refuses a handle of another open file";
    stale, 30, "The handle of a freed object stays refused, however many objects follow";
    random_handles, 120, "A hundred thousand random handles are refused, and so are the neighbours of valid ones";
    unique, 30, "No two living objects share a handle, and no handle is zero";
    concurrent_frees, 60, "When many threads free one object, exactly one succeeds";
    concurrent_use_and_free, 60, "Many threads may use, query and free the same objects at once";
}

fn table_is_complete(_context: &Context) -> Result<()> {
    let tried: HashSet<_> = rows().iter().map(|row| row.request).collect();
    for (name, request, _) in call::ALL {
        ensure!(
            tried.contains(request) != WITHOUT.contains(request),
            "{name}: handles/rows.rs needs a row in rows(), or one in WITHOUT, and not both"
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

/// Calls each row with `handle`, and expects a refusal. `own` is the kind of the object that the
/// handle names in this IA, if any.
fn all_refuse(ia: &Ia, handle: u64, own: Option<Kind>) -> Result<()> {
    rows()
        .iter()
        .filter(|row| Some(row.wants) != own && (handle != 0 || !row.or_none))
        .try_for_each(|row| row.refuses(ia, handle))
}

/// Holds at least one object of each kind.
struct Objects {
    cno: Cno,
    rsp: Rsp,
    csp: Csp,
    cr: Cr,
    listener: Listener,
    rmr: libkdapl::Rmr,
    srq: Srq,
    end: End,
    ia: Ia,
    /// The endpoint that sent the request.
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
            srq: ia.create_srq(&end.pz, 4, 1)?,
            rsp,
            csp,
            cr: listener.request(context)?,
            listener,
            rmr: ia.create_rmr(&end.pz)?,
            end,
            ia,
            _peer: (caller, peer),
        })
    }

    /// Pairs each handle with its kind.
    fn handles(&self) -> [(Kind, u64); 13] {
        [
            (Kind::Ia, self.ia.handle()),
            (Kind::Pz, self.end.pz.handle()),
            (Kind::Evd, self.end.recv.handle()),
            (Kind::Evd, self.ia.async_evd().handle()),
            (Kind::Ep, self.end.ep.handle()),
            (Kind::Lmr, self.end.lmr.handle()),
            (Kind::Rmr, self.rmr.handle()),
            (Kind::Psp, self.listener.psp.handle()),
            (Kind::Rsp, self.rsp.handle()),
            (Kind::Csp, self.csp.handle()),
            (Kind::Cr, self.cr.handle()),
            (Kind::Cno, self.cno.handle()),
            (Kind::Srq, self.srq.handle()),
        ]
        .map(|(kind, handle)| (kind, handle.0))
    }

    fn intact(&self) -> Result<()> {
        self.end.ep.query()?;
        self.end.recv.query()?;
        self.end.lmr.query()?;
        self.rmr.query()?;
        self.listener.psp.query()?;
        self.rsp.query()?;
        self.csp.query()?;
        self.cr.query()?;
        self.cno.query()?;
        self.srq.query()?;
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

fn of_other_files(context: &Context) -> Result<()> {
    let objects = Objects::new(context)?;
    // An IA without objects: no handle can be valid there by chance.
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
        ensure!(seen.insert(pz.handle().0), "handle {} was handed out again", pz.handle());
        pz.free()?;
    }
    // New objects may reuse the table entries of the freed ones.
    let new = Objects::of(context, &client, ia.clone())?;
    old.iter().try_for_each(|handle| all_refuse(&ia, *handle, None))?;
    new.intact()
}

fn random_handles(context: &Context) -> Result<()> {
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
            // Small numbers resemble a table index.
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
        ensure!(
            handle != 0 && seen.insert(handle),
            "handle {handle:#x} is zero, or was handed out twice"
        );
    }
    Ok(())
}

fn concurrent_frees(context: &Context) -> Result<()> {
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

fn concurrent_use_and_free(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for _ in 0..context.count(100) {
        let end = End::new(&ia, Shape::default())?;
        std::thread::scope(|scope| {
            // The calls may fail, but nothing may break.
            scope.spawn(|| (0..20).for_each(|_| drop(end.receive(0, 64, 1))));
            scope.spawn(|| (0..20).for_each(|_| drop((end.ep.query(), end.recv.query()))));
            scope.spawn(|| drop(end.ep.disconnect(libkdapl::Close::Abrupt)));
            scope.spawn(|| drop((end.ep.free(), end.lmr.free(), end.recv.free(), end.pz.free())));
        });
        // A free that failed then succeeds now.
        let _ = (end.ep.free(), end.lmr.free(), end.recv.free());
        refused(end.ep.query(), Type::INVALID_HANDLE)?;
    }
    Ok(())
}
