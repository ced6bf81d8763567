// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of the module itself: it is counted for its user, limited, and given back.

use super::tenant::{start, Role, ORDINARY_USER};
use super::{held, others_live, Parameter};
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::same;
use crate::fork::{end_of, fork, kill};
use crate::machine::meminfo;
use crate::raw::{map, offset_of};
use crate::tests::rmr::scene::{Scene, BOTH};
use crate::tests::tests;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::sys::{KDAPL_MAP_EVENTS, KDAPL_MAP_INDEX};
use libkdapl::{ConnectOptions, EpAttr, EpConfig, EvdFlags, Event, Ia};
use std::any::Any;

tests! {
    #[Hosts, Long]
    limited, 120, "The memory of queues of the module is estimated and limited for a user, and others connect";
    given_back, 60, "Each kind of memory of the module is counted for its user, and given back exactly";
    referred_to, 30, "An Endpoint, a PSP and an EVD that were freed count for their user while an RMR or a request refers to them";
    mapped_after_free, 20, "Pages of mapped events count for their user until they are unmapped, also after the EVD was freed";
    mapped_copies, 20, "Mappings of events that are split, moved and inherited by a child count until the last part is unmapped";
}

/// Name of the limit's account.
const ITEM: &str = "module_memory_kb";

fn limited(context: &Context) -> Result<()> {
    const MEGABYTES: u64 = 64;
    /// Memory of the tenant's process and of the driver, and what else changes.
    const OTHER_KB: i64 = 24 << 10;
    let _parameter = Parameter::set("user_module_memory_mb", MEGABYTES)?;
    for role in [Role::EventQueues, Role::Resizes, Role::Slots, Role::Receives] {
        let before = meminfo("MemAvailable")?;
        let (mut tenant, count) = start(context, role, 0)?;
        let used = before - meminfo("MemAvailable")?;
        let counted = held(ORDINARY_USER, ITEM)? as i64;
        println!("{role:?}: {count}, {used} KiB are used, {counted} KiB are counted");
        ensure!(counted as u64 <= MEGABYTES << 10, "the count exceeds the limit");
        ensure!(counted as u64 > (MEGABYTES << 10) / 2, "the user was refused too early");
        // Receives need queues of the device, too.
        let is_all = role == Role::Receives || used < counted + OTHER_KB;
        ensure!(is_all, "not all memory is counted");
        ensure!(used > counted / 2, "memory is counted that is not used");
        others_live(context)?;
        tenant.kill()?;
        context.until("the user holds no memory", || Ok(held(ORDINARY_USER, ITEM)? == 0))?;
    }
    Ok(())
}

/// Objects that use memory of the module.
type Kept = Box<dyn Any>;

/// Length of the queues.
const LENGTH: u32 = 1000;

fn events(_context: &Context, ia: &Ia) -> Result<Kept> {
    Ok(Box::new(ia.create_evd(EvdFlags::SOFTWARE, LENGTH as i32)?))
}

fn resized_events(_context: &Context, ia: &Ia) -> Result<Kept> {
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 1)?;
    for length in [4 * LENGTH, LENGTH] {
        evd.resize(length as i32)?;
    }
    Ok(Box::new(evd))
}

fn mapped_events(_context: &Context, ia: &Ia) -> Result<Kept> {
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 1)?;
    ensure!(evd.map_events(), "the events cannot be mapped");
    Ok(Box::new(evd))
}

fn many_slots() -> EpAttr {
    EpAttr { max_recv_dtos: LENGTH, max_request_dtos: LENGTH, ..Default::default() }
}

fn slots(_context: &Context, ia: &Ia) -> Result<Kept> {
    Ok(Box::new(ia.create_ep_with(&EpConfig { attr: Some(many_slots()), ..Default::default() })?))
}

fn receives(_context: &Context, ia: &Ia) -> Result<Kept> {
    let end = End::new(ia, Shape { receives: LENGTH, ..Default::default() })?;
    for cookie in 0..LENGTH.into() {
        end.receive(0, 64, cookie)?;
    }
    Ok(Box::new(end))
}

/// Connects with a closed ready gate, which may hold back the events of all receives.
fn held_receives(context: &Context, ia: &Ia) -> Result<Kept> {
    let end = End::new(ia, Shape { receives: LENGTH, ..Default::default() })?;
    let options = ConnectOptions { gated: true, ..Default::default() };
    end.ep.connect_with((context.client.nobody(), 0).into(), 7176, &options)?;
    Ok(Box::new(end))
}

fn shared_receives(_context: &Context, ia: &Ia) -> Result<Kept> {
    let pz = ia.create_pz()?;
    let srq = ia.create_srq(&pz, LENGTH, 1)?;
    Ok(Box::new((pz, srq)))
}

fn evds_of_cno(_context: &Context, ia: &Ia) -> Result<Kept> {
    let cno = ia.create_cno(None)?;
    let evds = (0..LENGTH).map(|_| {
        let evd = ia.create_evd(EvdFlags::SOFTWARE, 1)?;
        evd.modify_cno(Some(&cno))?;
        Ok(evd)
    });
    let evds = evds.collect::<Result<Vec<_>>>()?;
    Ok(Box::new((evds, cno)))
}

/// Frees an EVD whose events a process has mapped. The pages stay, and count.
fn mapped_after_free(context: &Context) -> Result<()> {
    let me = || held(0, ITEM);
    let ia = context.open()?;
    let before = me()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 1)?;
    ensure!(evd.map_events(), "the events cannot be mapped");
    evd.free()?;
    context.until("the mapped pages are counted, and nothing else", || Ok(me()? == before + 12))?;
    drop(evd);
    same("KiB that are counted after that", me()?, before)
}

fn mapped_copies(context: &Context) -> Result<()> {
    const PAGE: usize = 4096;
    let me = || held(0, ITEM);
    let ia = context.open()?;
    let before = me()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 1)?;
    let map = |area, pages, protection| {
        let offset = offset_of(evd.handle().0, area);
        map(evd.device(), offset, pages * PAGE, protection, libc::MAP_SHARED)
    };
    let mut events = map(KDAPL_MAP_EVENTS, 2, libc::PROT_READ)?;
    let mut index = map(KDAPL_MAP_INDEX, 1, libc::PROT_READ | libc::PROT_WRITE)?;
    evd.free()?;
    let stay = |after| same(&format!("KiB that are counted after {after}"), me()?, before + 12);
    context.until("the mapped pages are counted, and nothing else", || Ok(me()? == before + 12))?;
    events.truncate(PAGE)?;
    stay("an unmapped page")?;
    events.relocate()?;
    index.relocate()?;
    stay("a move")?;
    let child = fork(|| {
        // SAFETY: the call has no preconditions.
        unsafe { libc::pause() };
        Ok(())
    })?;
    drop((events, index));
    stay("the end in the parent")?;
    kill(child)?;
    end_of(child)?;
    same("KiB that are counted at the end", me()?, before)
}

/// Makes objects, with at least this many bytes of memory of the module.
type Kind = (&'static str, fn(&Context, &Ia) -> Result<Kept>, u64);

fn given_back(context: &Context) -> Result<()> {
    const LENGTH: u64 = self::LENGTH as u64;
    let kinds: [Kind; 8] = [
        ("events", events, 64 * LENGTH),
        ("resized events", resized_events, 64 * LENGTH),
        ("mapped events", mapped_events, 3 * 4096),
        ("slots", slots, 2 * 32 * LENGTH),
        ("receives", receives, (2 * 32 + 16) * LENGTH),
        ("held receives", held_receives, (32 + 16) * LENGTH),
        ("shared receives", shared_receives, 32 * LENGTH),
        ("EVDs of a CNO", evds_of_cno, (512 + 16) * LENGTH),
    ];
    let me = || held(0, ITEM);
    let before = me()?;
    for (name, make, bytes) in kinds {
        let ia = context.open()?;
        let empty = me()?;
        let kept = make(context, &ia).context(name)?;
        let counted = me()? - empty;
        println!("{name}: {counted} KiB are counted, {} KiB at least", bytes >> 10);
        ensure!(counted >= bytes >> 10, "{name}: not all memory is counted");
        drop(kept);
        drop(ia);
        context.until("the memory is given back", || Ok(me()? == before)).context(name)?;
    }
    same("memory of root", me()?, before)
}

/// An object may be kept by others after it was freed, and so does not end with its handle.
fn referred_to(context: &Context) -> Result<()> {
    let me = || Ok::<_, anyhow::Error>(held(0, ITEM)? as i64);
    let (client_ia, server_ia) = context.open_both()?;
    let client = End::new(&client_ia, Shape::default())?;
    let port = context.port();
    let requests = server_ia.create_evd(EvdFlags::CR, 1)?;
    // The first one has lengthened the table of the handles.
    let before = me()?;
    let like_requests = server_ia.create_evd(EvdFlags::CR, 1)?;
    let of_evd = me()? - before;
    like_requests.free()?;
    let psp = server_ia.create_psp(port, &requests)?;
    client.ep.connect(context.server_address(), port, Some(context.patience()), &[])?;
    let Event::ConnectionRequest { mut cr, .. } = context.next(&requests)? else {
        bail!("the event is no request");
    };
    let all = me()?;
    psp.free()?;
    requests.free()?;
    let kept = me()?;
    ensure!(all - kept <= 1, "of {all} KiB {kept} are counted while a request refers to them");
    cr.reject(&[])?;
    // Of the EVD, the service point and the request, which counts with one KiB or more.
    context.until("the memory is given back", || Ok(me()? < kept - of_evd))?;

    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    let before = me()?;
    let rmr = server.ia.create_rmr(&server.pz)?;
    let one = me()? - before;
    rmr.free()?;
    scene.bind(context, BOTH)?;
    server.ep.free()?;
    let kept = me()?;
    scene.rmr.free()?;
    let freed = kept - me()?;
    ensure!(freed > one, "an RMR counts {one} KiB, and {freed} with its Endpoint");
    Ok(())
}
