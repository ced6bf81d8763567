// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The kernel's claim that an EVD is empty but for its mapped events: "Polling without calls" in
//! `docs/ioctl/events.md`.

use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, done, empty, refused, same};
use crate::machine::DeviceGuard;
use crate::software::take;
use anyhow::{ensure, Result};
use libkdapl::raw::MappedEvents;
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, EpAttr, Evd, EvdFlags, Event, Ia,
    Segment, Type,
};
use std::time::{Duration, Instant};

tests! {
    claimed, 20, "A dequeue that finds nothing claims that the EVD is empty, until the next completion";
    retracted, 30, "A software event, a CNO, a file and completion flags retract the claim";
    ended, 20, "A free of the EVD, a close of the IA and a removal of the device retract the claim";
    nothing_is_lost, 120, "Threads that poll by memory get each completion once, and the disconnect";
}

/// Creates an EVD, and maps it.
fn mapped_evd(ia: &Ia, flags: EvdFlags) -> Result<(Evd, MappedEvents)> {
    let evd = ia.create_evd(flags, 16)?;
    ensure!(evd.map_events(), "the events cannot be mapped");
    let mapped = MappedEvents::new(evd.device(), evd.handle().0)?;
    Ok((evd, mapped))
}

/// Finds the EVD empty, which is claimed from then on.
fn claim(evd: &Evd, mapped: &MappedEvents) -> Result<()> {
    empty(evd)?;
    ensure!(mapped.claims_empty(), "an empty dequeue makes no claim");
    empty(evd)
}

/// Maps the EVD of the client's requests.
fn map_requests(pair: &Pair) -> Result<MappedEvents> {
    let evd = &pair.client.request;
    ensure!(evd.map_events(), "the events cannot be mapped");
    Ok(MappedEvents::new(evd.device(), evd.handle().0)?)
}

/// Writes a byte to the server's memory.
fn write(pair: &Pair, cookie: u64) -> Result<()> {
    pair.client.write(0, 1, pair.server.lmr.segment(0, 1), cookie)
}

fn claimed(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (evd, mapped) = (&pair.client.request, map_requests(&pair)?);
    for cookie in 0..10 {
        claim(evd, &mapped)?;
        write(&pair, cookie)?;
        context.until("the claim is retracted", || Ok(!mapped.claims_empty()))?;
        done(&evd.dequeue()?.0, DtoOperation::RdmaWrite, 1, cookie)?;
        ensure!(mapped.claims_empty(), "the only event was taken, and there is no claim");
    }
    Ok(())
}

/// Does something after a claim, and checks that the claim is retracted.
fn retracts(
    what: &str,
    (evd, mapped): (&Evd, &MappedEvents),
    act: impl FnOnce() -> Result<()>,
) -> Result<()> {
    claim(evd, mapped)?;
    act()?;
    ensure!(!mapped.claims_empty(), "{what}: the claim stands");
    Ok(())
}

fn retracted(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (evd, mapped) = mapped_evd(&ia, EvdFlags::DTO | EvdFlags::SOFTWARE)?;
    let both = (&evd, &mapped);
    retracts("a software event", both, || Ok(evd.post_se(7)?))?;
    same("software event", take(&evd)?, 7)?;
    let cno = ia.create_cno(None)?;
    retracts("a CNO", both, || Ok(evd.modify_cno(Some(&cno))?))?;
    empty(&evd)?;
    ensure!(!mapped.claims_empty(), "a claim beside a CNO, whose trigger a dequeue prepares");
    evd.disable()?;
    claim(&evd, &mapped)?;
    retracts("an enabled CNO", both, || Ok(evd.enable()?))?;
    evd.modify_cno(None)?;
    let mut file = None;
    retracts("a file", both, || {
        file = Some(evd.file()?);
        Ok(())
    })?;
    empty(&evd)?;
    ensure!(!mapped.claims_empty(), "a claim beside a file, whose wake-up a dequeue prepares");
    drop(file);
    claim(&evd, &mapped)?;
    // An EVD of software events takes no such completions.
    let (evd, mapped) = mapped_evd(&ia, EvdFlags::DTO)?;
    let unsignalled = CompletionFlags::UNSIGNALLED.0;
    let attr = EpAttr {
        recv_completion_flags: unsignalled,
        request_completion_flags: unsignalled,
        ..Default::default()
    };
    let (pz, connect) = (ia.create_pz()?, ia.create_evd(EvdFlags::CONNECTION, 4)?);
    let mut ep = None;
    retracts("completion flags", (&evd, &mapped), || {
        ep = Some(ia.create_ep(&pz, &evd, &evd, &connect, Some(attr))?);
        Ok(())
    })?;
    empty(&evd)?;
    ensure!(!mapped.claims_empty(), "a claim beside flags that suppress notifications");
    Ok(())
}

fn ended(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let ia = context.open()?;
    let (evd, mapped) = mapped_evd(&ia, EvdFlags::DTO)?;
    retracts("a free", (&evd, &mapped), || Ok(evd.free()?))?;
    refused(evd.dequeue(), Type::INVALID_HANDLE)?;
    let (evd, mapped) = mapped_evd(&ia, EvdFlags::DTO)?;
    retracts("a close", (&evd, &mapped), || Ok(ia.close(Close::Abrupt)?))?;
    refused(evd.dequeue(), Type::INVALID_HANDLE)?;
    let ia = context.open()?;
    let (evd, mapped) = mapped_evd(&ia, EvdFlags::DTO)?;
    claim(&evd, &mapped)?;
    guard.delete()?;
    context.until("the claim is retracted", || Ok(!mapped.claims_empty()))?;
    empty(&evd)?;
    ensure!(!mapped.claims_empty(), "a claim without a device");
    guard.add()
}

/// Polls for the next event, for as long as the test is patient.
fn poll(evd: &Evd, patience: Duration) -> Result<Event> {
    let start = Instant::now();
    loop {
        match evd.dequeue() {
            Ok((event, _)) => return Ok(event),
            Err(error) if error.is_empty() => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
        ensure!(start.elapsed() < patience, "no event");
    }
}

/// Keeps writes in flight, and polls for their events.
fn keep_writing(end: &End, remote: Segment, count: u64, patience: Duration) -> Result<()> {
    const IN_FLIGHT: u64 = 16;
    for cookie in 0..count + IN_FLIGHT {
        if let Some(completed) = cookie.checked_sub(IN_FLIGHT) {
            done(&poll(&end.request, patience)?, DtoOperation::RdmaWrite, 4, completed)?;
        }
        if cookie < count {
            end.write(0, 4, remote, cookie)?;
        }
    }
    Ok(())
}

fn nothing_is_lost(context: &Context) -> Result<()> {
    let (count, patience) = (context.count(20_000), context.patience());
    for merged in [false, true] {
        let shape = Shape { merged, ..Default::default() };
        let Pair { client, server, listener: _listener } = Pair::new(context, shape)?;
        for end in [&client, &server] {
            ensure!(end.request.map_events(), "the events cannot be mapped");
        }
        let segments = [server.lmr.segment(0, 4), client.lmr.segment(0, 4)];
        std::thread::scope(|scope| {
            let server = scope.spawn(|| keep_writing(&server, segments[1], count, patience));
            let client = keep_writing(&client, segments[0], count, patience);
            server.join().expect("it ends").and(client)
        })?;
        client.ep.disconnect(Close::Graceful)?;
        for end in [&client, &server] {
            connection(&poll(&end.connect, patience)?, ConnectionEvent::Disconnected)?;
            empty(&end.request)?;
        }
    }
    Ok(())
}
