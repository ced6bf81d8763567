// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! EVDs as queues of events.

use super::ep_races::{ep_on, post};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, refused, refused_as, same};
use crate::software::{post_all, software, take, take_all};
use crate::threads::Joined;
use anyhow::{ensure, Result};
use libkdapl::{ConnectionEvent, DtoOperation, Evd, EvdFlags, Event, Subtype, Type};

tests! {
    queue_lengths, 10,
        "An EVD is at least as long as requested; lengths below 1 or beyond the limit are refused";
    stream_flags, 10, "An EVD requires at least one stream, and refuses unknown streams";
    software_events_keep_order, 10, "Software events are taken in the order in which they were posted, around the ring";
    full_evd_refuses_software_events, 10, "A full EVD refuses software events, and accepts another for each event taken";
    wrong_stream, 10, "A software event is refused by an EVD without the SOFTWARE stream";
    dequeue_of_empty_evd, 10, "A dequeue of an empty EVD returns QUEUE_EMPTY, with the error class";
    query, 10, "An EVD query reports length, streams and number of events";
    free_while_in_use, 10, "An EVD cannot be freed while an endpoint or a listener uses it";
    concurrent_software_events, 30, "Software events of many threads are each delivered once";
    completions_between_software_events, 30,
        "A consumer that posts a software event for each one it takes still gets its completions";
    async_evd_is_freed_with_ia, 10, "The asynchronous EVD can be used, is empty, and is freed only with its IA";
}

fn posted(evd: &Evd, range: std::ops::Range<u64>) -> Result<()> {
    range.into_iter().try_for_each(|number| Ok(evd.post_se(number)?))
}

fn queue_lengths(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let max = ia.query()?.raw.max_evd_qlen as i32;
    for qlen in [1, 2, 3, 7, 64, 1000] {
        let evd = ia.create_evd(EvdFlags::SOFTWARE, qlen)?;
        same("entries", evd.query()?.qlen, qlen.unsigned_abs().next_power_of_two() as i32)?;
        evd.free()?;
    }
    let biggest = ia.create_evd(EvdFlags::DTO, max)?;
    same("entries of the longest EVD", biggest.query()?.qlen, max)?;
    same("entries after a resize to them", biggest.resize(max)?, max)?;
    for qlen in [0, -1, i32::MIN, i32::MAX, max.saturating_add(1)] {
        refused(ia.create_evd(EvdFlags::SOFTWARE, qlen), Type::INVALID_PARAMETER)?;
        refused(ia.create_evd(EvdFlags::DTO, qlen), Type::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn stream_flags(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for bad in [0, 0x200, 0x8000_0000, 0x2, 0xe, u32::MAX] {
        refused(ia.create_evd(EvdFlags(bad), 4), Type::INVALID_PARAMETER)?;
    }
    for bit in [0x1, 0x10, 0x20, 0x40] {
        ia.create_evd(EvdFlags(bit), 4)?.free()?;
    }
    ia.create_evd(EvdFlags(0x71), 4)?.free()?;
    Ok(())
}

fn software_events_keep_order(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 7)?;
    let (mut put, mut taken) = (0, 0);
    for _ in 0..context.count(2000) {
        let room = 7 - (put - taken);
        let more = context.rng().u64(0..=room);
        posted(&evd, put..put + more)?;
        put += more;
        let fewer = context.rng().u64(0..=put - taken);
        for _ in 0..fewer {
            same("event", take(&evd)?, taken)?;
            taken += 1;
        }
    }
    Ok(())
}

fn full_evd_refuses_software_events(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 5)?;
    let qlen = evd.query()?.qlen as u64;
    posted(&evd, 0..qlen)?;
    for round in 0..3 {
        refused(evd.post_se(99), Type::QUEUE_FULL)?;
        same("event", take(&evd)?, round)?;
        evd.post_se(qlen + round)?;
    }
    for number in 3..qlen + 3 {
        same("event", take(&evd)?, number)?;
    }
    refused(evd.dequeue(), Type::QUEUE_EMPTY)
}

fn wrong_stream(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for bit in [EvdFlags::DTO, EvdFlags::CR, EvdFlags::CONNECTION] {
        let evd = ia.create_evd(bit, 4)?;
        refused_as(evd.post_se(1), Type::INVALID_PARAMETER, Subtype::INVALID_ARG1)?;
        refused(evd.dequeue(), Type::QUEUE_EMPTY)?;
    }
    Ok(())
}

fn dequeue_of_empty_evd(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for bits in [EvdFlags::SOFTWARE, EvdFlags::DTO, EvdFlags::DTO | EvdFlags::CONNECTION] {
        let evd = ia.create_evd(bits, 4)?;
        refused(evd.dequeue(), Type::QUEUE_EMPTY)?;
    }
    Ok(())
}

fn query(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let streams = EvdFlags::SOFTWARE | EvdFlags::DTO;
    let evd = ia.create_evd(streams, 9)?;
    posted(&evd, 0..4)?;
    let query = evd.query()?;
    same("streams", query.flags, streams)?;
    same("events", query.queued, 4)?;
    ensure!(query.qlen >= 9, "{query:?}");
    // The EVD is enabled and waitable.
    ensure!(query.enabled && query.waitable && query.cno.is_none(), "{query:?}");
    take(&evd)?;
    same("events", evd.query()?.queued, 3)
}

fn free_while_in_use(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    for evd in [&end.recv, &end.request, &end.connect] {
        refused_as(evd.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_IN_USE)?;
    }
    let crs = ia.create_evd(EvdFlags::CR, 4)?;
    let psp = ia.create_psp(context.port(), &crs)?;
    refused_as(crs.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_IN_USE)?;
    psp.free()?;
    crs.free()?;
    end.ep.free()?;
    for evd in [&end.recv, &end.request, &end.connect] {
        evd.free()?;
        refused(evd.free(), Type::INVALID_HANDLE)?;
        refused(evd.query(), Type::INVALID_HANDLE)?;
    }
    Ok(())
}

fn concurrent_software_events(context: &Context) -> Result<()> {
    const POSTERS: u64 = 3;
    let evd = software(context, 16)?;
    let (evd, each, patience) = (&evd, context.count(20_000), context.patience());
    std::thread::scope(|scope| {
        let post = |poster| scope.spawn(move || post_all(evd, poster, each, patience));
        let threads: Vec<_> = (0..POSTERS).map(post).collect();
        take_all(POSTERS, each, || context.next(evd))?;
        refused(evd.dequeue(), Type::QUEUE_EMPTY)?;
        threads.into_iter().try_for_each(|thread| thread.join().or_panicked()?)
    })
}

fn completions_between_software_events(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let client = End::new(&client_ia, Shape::default())?;
    let server = End::new(&server_ia, Shape::default())?;
    let listener = Listener::new(context, &server_ia)?;
    let evd = server_ia.create_evd(EvdFlags::SOFTWARE | EvdFlags::DTO, 16)?;
    let ep = ep_on(&server, &evd, 4)?;
    post(&server, &ep, 0..3)?;
    client.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    listener.request(context)?.accept(&ep, &[])?;
    for end in [&client, &server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    posted(&evd, 0..1)?;
    for cookie in 0..3 {
        client.send(0, 64, cookie)?;
        // The message has arrived by now.
        done(&context.next(&client.request)?, DtoOperation::Send, 64, cookie)?;
        let mut taken = 0;
        loop {
            let (event, _) = evd.dequeue()?;
            let Event::Software { pointer } = event else {
                done(&event, DtoOperation::Receive, 64, cookie)?;
                break;
            };
            evd.post_se(pointer + 1)?;
            taken += 1;
            ensure!(taken < 4, "{taken} software events before the completion");
        }
    }
    Ok(())
}

fn async_evd_is_freed_with_ia(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.async_evd();
    ensure!(evd.query()?.flags.contains(EvdFlags::ASYNC), "the EVD has no asynchronous stream");
    refused(evd.dequeue(), Type::QUEUE_EMPTY)?;
    context.quiet(evd)?;
    refused(evd.free(), Type::INVALID_STATE)?;
    refused(evd.dequeue(), Type::QUEUE_EMPTY)
}
