// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Streams of events into provided buffers.

use super::super::tests;
use super::commands::{self, HeapMessage};
use super::ring::{batch, outcome};
use crate::context::Context;
use crate::expect::{empty, errno, refused, refused_as, same};
use crate::software::{post_all, software, take, take_all};
use crate::threads::Worker;
use anyhow::{bail, ensure, Result};
use io_uring::{cqueue, opcode, IoUring};
use libkdapl::sys::{kdapl_event, KDAPL_FLAG_ABSOLUTE};
use libkdapl::uring::{Completion, Outcome, Ring};
use libkdapl::{Evd, Event, Subtype, Type};
use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::time::Duration;

tests! {
    batches, 20, "A stream posts a completion for each batch of events, each as long as a buffer at most, in their order";
    goes_on, 20, "A stream goes on after it has emptied the EVD, and is the only waiter";
    thresholds, 20, "A stream with a threshold posts a completion for that many events, and not for fewer";
    no_buffers, 20, "A stream without a buffer ends with ENOBUFS, and no event is lost";
    many_events, 120, "A hundred thousand events of four threads come through a stream, each once and in order, although buffers run out";
    stream_and_dequeue, 60, "A thread that dequeues beside a stream: each event reaches one of the two";
    refused_streams, 20, "A stream is refused as a wait is";
    ends_amid_events, 20, "A stream whose time-out has passed ends although more events are queued, and leaves them";
}

fn batches(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    (0..10).try_for_each(|number| evd.post_se(number))?;
    let mut ring = Ring::new(8)?;
    ring.provide_buffers(4, 4)?;
    ring.stream(&evd, 1, 1)?;
    for expected in [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]] {
        same("batch", batch(&mut ring, 1)?, expected)?;
    }
    empty(&evd)?;
    same("pending", ring.pending(), 1)
}

fn goes_on(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    let mut ring = Ring::new(8)?;
    ring.provide_buffers(2, 4)?;
    ring.stream(&evd, 1, 1)?;
    ring.submit()?;
    let waiter = Subtype::INVALID_STATE_EVD_WAITER;
    for number in 0..50 {
        refused_as(evd.wait(Some(Duration::ZERO), 1), Type::INVALID_STATE, waiter)?;
        evd.post_se(number)?;
        same("batch", batch(&mut ring, 1)?, vec![number])?;
    }
    ring.submit()?;
    ensure!(ring.take().is_none(), "a completion without an event");
    Ok(())
}

fn thresholds(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    let mut ring = Ring::new(8)?;
    ring.provide_buffers(4, 8)?;
    ring.stream(&evd, 3, 1)?;
    ring.submit()?;
    for round in 0..3 {
        for number in 0..3 {
            ring.submit()?;
            ensure!(ring.take().is_none(), "fewer events than the threshold were posted");
            evd.post_se(round * 3 + number)?;
        }
        let expected: Vec<u64> = (0..3).map(|number| round * 3 + number).collect();
        same("batch", batch(&mut ring, 1)?, expected)?;
    }
    Ok(())
}

fn no_buffers(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    let mut ring = Ring::new(8)?;
    // Without a group, the first event ends the stream.
    ring.stream(&evd, 1, 1)?;
    ring.submit()?;
    ensure!(ring.take().is_none(), "no event needs a buffer");
    evd.post_se(0)?;
    errno(outcome(&mut ring, 1)?, libc::ENOBUFS)?;
    // Both buffers are filled before a completion is taken.
    (1..10).try_for_each(|number| evd.post_se(number))?;
    ring.provide_buffers(2, 3)?;
    ring.stream(&evd, 1, 2)?;
    ring.submit()?;
    same("first", batch(&mut ring, 2)?, vec![0, 1, 2])?;
    same("second", batch(&mut ring, 2)?, vec![3, 4, 5])?;
    errno(outcome(&mut ring, 2)?, libc::ENOBUFS)?;
    // The buffers are there again, and so are the events.
    ring.stream(&evd, 1, 3)?;
    same("third", batch(&mut ring, 3)?, vec![6, 7, 8])?;
    same("fourth", batch(&mut ring, 3)?, vec![9])
}

/// Returns the events of a completion of a stream: none if the buffers have run out. Begins another
/// stream if it was the last completion.
fn received(ring: &mut Ring, evd: &Evd, completion: Completion) -> Result<Vec<Event>> {
    let events = match completion.result {
        Ok(Outcome::Events(events)) => {
            ensure!(!events.is_empty(), "a batch without events");
            events
        }
        Err(error) if error.errno() == Some(libc::ENOBUFS) => Vec::new(),
        other => bail!("{other:?}"),
    };
    if !completion.more {
        ring.stream(evd, 1, 1)?;
    }
    Ok(events)
}

/// Waits for events of a stream. Returns how often the buffers have run out before.
fn receive(ring: &mut Ring, evd: &Evd, queue: &mut VecDeque<Event>) -> Result<u64> {
    let mut ends = 0;
    while queue.is_empty() {
        let completion = ring.wait()?;
        ends += u64::from(!completion.more);
        queue.extend(received(ring, evd, completion)?);
    }
    Ok(ends)
}

fn many_events(context: &Context) -> Result<()> {
    const POSTERS: u64 = 4;
    let evd = software(context, 256)?;
    let (each, patience) = (context.count(25_000).max(500), context.patience());
    let posters = (0..POSTERS).map(|poster| {
        let evd = evd.clone();
        Worker::start(move || post_all(&evd, poster, each, patience))
    });
    let posters = posters.collect::<Result<Vec<_>>>()?;
    let mut ring = Ring::new(8)?;
    // Few and short, so that they run out.
    ring.provide_buffers(2, 8)?;
    ring.stream(&evd, 1, 1)?;
    let (mut queue, mut ends) = (VecDeque::new(), 0);
    take_all(POSTERS, each, || {
        ends += receive(&mut ring, &evd, &mut queue)?;
        queue.pop_front().ok_or_else(|| anyhow::anyhow!("no event"))
    })?;
    println!("the buffers have run out {ends} times");
    ensure!(ends != 0, "the buffers have never run out");
    posters.into_iter().try_for_each(|poster| poster.join()?)?;
    empty(&evd)
}

fn stream_and_dequeue(context: &Context) -> Result<()> {
    let evd = software(context, 64)?;
    let (count, patience) = (context.count(20_000).max(500), context.patience());
    let poster = evd.clone();
    let poster = Worker::start(move || post_all(&poster, 0, count, patience))?;
    let (thief, mut stolen) = (evd.clone(), Vec::new());
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let (began, begins) = std::sync::mpsc::channel();
    // The thread takes the first event, and leaves half of all events to the stream.
    let thief = Worker::start(move || {
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty)
            && stolen.len() < count as usize / 2
        {
            if let Ok((Event::Software { pointer }, _)) = thief.dequeue() {
                stolen.push(pointer);
                // The receiver is there until the stream begins.
                let _ = began.send(());
                std::thread::yield_now();
            }
        }
        stolen
    })?;
    let mut ring = Ring::new(8)?;
    ring.provide_buffers(16, 16)?;
    begins.recv_timeout(context.patience())?;
    ring.stream(&evd, 1, 1)?;
    let mut seen = Vec::new();
    while !poster.finished() {
        ring.submit()?;
        while let Some(completion) = ring.take() {
            seen.extend(super::ring::numbers(received(&mut ring, &evd, completion)?)?);
        }
    }
    poster.join()??;
    drop(stop);
    let stolen = thief.join()?;
    // The rest is for the stream.
    while seen.len() + stolen.len() < count as usize {
        let mut queue = VecDeque::new();
        receive(&mut ring, &evd, &mut queue)?;
        seen.extend(super::ring::numbers(queue.into())?);
    }
    ensure!(seen.is_sorted(), "events of the stream are out of order");
    println!("{} by the stream, {} by the thread", seen.len(), stolen.len());
    ensure!(!seen.is_empty() && !stolen.is_empty(), "one of the two has taken all events");
    seen.extend(stolen);
    seen.sort_unstable();
    same("events", seen, (0..count).collect())
}

fn refused_streams(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = Ring::new(8)?;
    ring.provide_buffers(2, 2)?;
    ring.stream(&evd, 5, 1)?;
    refused_as(outcome(&mut ring, 1)?, Type::INVALID_PARAMETER, Subtype(36 + 3))?;
    ring.stream(&evd, 1, 1)?;
    ring.stream(&evd, 1, 2)?;
    refused_as(outcome(&mut ring, 2)?, Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_WAITER)?;
    evd.set_unwaitable()?;
    refused(outcome(&mut ring, 1)?, Type::INVALID_STATE)?;
    evd.clear_unwaitable()?;
    Ok(evd.free()?)
}

fn ends_amid_events(context: &Context) -> Result<()> {
    const EVENTS: u64 = 100;
    let evd = software(context, 128)?;
    (0..EVENTS).try_for_each(|number| evd.post_se(number))?;
    let size = size_of::<kdapl_event>();
    let memory = vec![kdapl_event::default(); EVENTS as usize];
    let mut ring = IoUring::new(128)?;
    let buffers = memory.as_ptr() as *mut u8;
    let provide = opcode::ProvideBuffers::new(buffers, size as i32, EVENTS as u16, 0, 0);
    same("provide", commands::run(&mut ring, provide.build())?, 0)?;
    let mut message = commands::stream_message(&evd);
    (message.hdr.flags, message.timeout_ns) = (KDAPL_FLAG_ABSOLUTE, 1);
    let mut message = HeapMessage::new(message);
    let stream = commands::stream_entry(evd.device().as_raw_fd(), message.address(), 0, 3);
    commands::push(&mut ring, &stream)?;
    let mut batches = 0;
    loop {
        let completion = commands::reap(&mut ring)?;
        if !cqueue::more(completion.flags()) {
            same("result", completion.result(), 0)?;
            break;
        }
        batches += 1;
    }
    let end = message.read();
    refused(commands::answer(end.hdr.ret), Type::TIMEOUT_EXPIRED)?;
    same("in the message", end.taken, 0)?;
    ensure!(batches < EVENTS, "the stream went on after its time-out");
    (batches..EVENTS).try_for_each(|number| same("event", take(&evd)?, number))?;
    empty(&evd)
}
