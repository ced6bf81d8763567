// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Completes many DTOs with suppressed events. Their completions occupy no EVD entry, so a drain
//! ends only at the last one.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, same};
use crate::harness::skip;
use crate::threads::{RealTime, Worker};
use anyhow::{bail, ensure, Result};
use libkdapl::{
    CompletionFlags, ConnectionEvent, Dto, DtoOperation, Ep, EpAttr, Error, Event, Submitted,
};
use std::time::{Duration, Instant};

tests! {
    #[Transport]
    evd_usable_during_search, 300, "Other threads can use an EVD while one searches it for an event after many suppressed completions";
    #[Transport]
    dequeue_finds_event_behind, 120, "The first dequeue finds an event after many suppressed completions, and so does a wait with an expired time-out";
    #[Transport]
    event_behind_triggers_cno, 120, "An event after many suppressed completions triggers the CNO that its EVD is attached to";
}

/// Requests of an Endpoint. With so few each one is reported, in spite of its suppressed event.
const REQUESTS: u32 = 7;

/// Endpoints on one EVD: their completions are several times the batch of a drain, but few enough
/// to be posted within a second. The module drains every second.
const EPS: u32 = 146;

/// Endpoints on an EVD whose drain another thread is to interrupt.
const MORE_EPS: u32 = 438;

const TOO_FAST: &str = "the module drains every second, which is too fast for so many posts here";

/// Tries to accumulate the completions.
const TRIES: u32 = 5;

/// Tries to use the EVD during a dequeue.
const ROUNDS: u32 = 200;

/// Many connections whose requests report to one EVD, and the objects of both sides.
struct Crowd {
    client: End,
    server: End,
    eps: Vec<(Ep, Ep)>,
}

impl Crowd {
    fn new(context: &Context, eps: u32) -> Result<Self> {
        let (client_ia, server_ia) = context.open_both()?;
        let listener = Listener::new(context, &server_ia)?;
        let shape = Shape { requests: 64, ..Default::default() };
        let (client, server) = (End::new(&client_ia, shape)?, End::new(&server_ia, shape)?);
        let mut crowd = Self { client, server, eps: Vec::new() };
        for _ in 0..eps {
            crowd.eps.push(crowd.connected(context, &listener)?);
        }
        Ok(crowd)
    }

    fn connected(&self, context: &Context, listener: &Listener) -> Result<(Ep, Ep)> {
        let attr = EpAttr { max_request_dtos: REQUESTS, max_recv_dtos: 1, ..Default::default() };
        let ep = |end: &End| {
            end.ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(attr))
        };
        let (client, server) = (ep(&self.client)?, ep(&self.server)?);
        let patience = Some(context.patience());
        client.connect(context.server_address(), listener.port, patience, &[])?;
        listener.request(context)?.accept(&server, &[])?;
        for end in [&self.client, &self.server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
        Ok((client, server))
    }

    /// Returns the number of Endpoints of a side.
    fn count(&self) -> u32 {
        self.eps.len() as u32
    }

    /// Returns the number of requests of all.
    fn completions(&self) -> u32 {
        self.count() * REQUESTS
    }

    /// Returns the number of requests of an Endpoint that are outstanding.
    fn outstanding(&self, number: usize) -> Result<u32> {
        Ok(self.eps[number].0.status()?.request_outstanding)
    }

    /// Posts the writes of one Endpoint, the last of which carries the mark to a place of its own.
    /// The `last` writes of all have events.
    fn write(&self, number: u32, last: u32) -> Result<()> {
        let (client, ep) = (&self.client, &self.eps[number as usize].0);
        let local = [client.lmr.segment(0, 8)];
        let to = self.server.lmr.remote_segment(8 * (number as usize + 1), 8);
        let dto = |request: u32| {
            let cookie = number * REQUESTS + request;
            let has_event = cookie >= self.completions() - last;
            let flags =
                if has_event { CompletionFlags::default() } else { CompletionFlags::SUPPRESS };
            // Only the last one writes.
            let bytes = if request + 1 == REQUESTS { &local[..] } else { &[] };
            Dto::new(DtoOperation::RdmaWrite, bytes, Some(to), cookie.into(), flags)
        };
        let dtos: Vec<_> = (0..REQUESTS).map(dto).collect();
        let Submitted { posted, event } = ep.submit(&dtos, None);
        event?;
        same("posted", posted, dtos.len())
    }
}

/// Returns whether the requests of so many Endpoints can be posted within a second.
fn posts_in_time(context: &Context, eps: u32) -> Result<bool> {
    const SAMPLE: u32 = 8;
    let crowd = Crowd::new(context, SAMPLE)?;
    let start = Instant::now();
    (0..SAMPLE).try_for_each(|number| crowd.write(number, 0))?;
    let time = start.elapsed();
    all_is_seen(context, &crowd)?;
    Ok(time * eps / SAMPLE < Duration::from_secs(1))
}

/// Posts RDMA writes with suppressed completions, except for the `last` ones, and waits until they
/// are complete. Returns whether all completions wait to be drained. Otherwise the module was
/// faster, and all events are dequeued.
fn pile_up(context: &Context, crowd: &Crowd, last: u32) -> Result<bool> {
    let mark = context.rng().u64(1..).to_le_bytes();
    crowd.client.lmr.buffer().write(0, &mark);
    (0..crowd.count()).try_for_each(|number| crowd.write(number, last))?;
    let expected = mark.repeat(crowd.eps.len());
    context.until("the last writes arrive", || {
        Ok(crowd.server.lmr.buffer().to_vec(8, expected.len()) == expected)
    })?;
    // Their acknowledgements follow.
    std::thread::sleep(Duration::from_millis(20));
    let mut piled = true;
    for number in 0..crowd.eps.len() {
        piled &= crowd.outstanding(number)? == REQUESTS;
    }
    if piled {
        return Ok(true);
    }
    let mut left = last;
    while left > 0 {
        left -= u32::from(crowd.client.request.dequeue().is_ok());
    }
    all_is_seen(context, crowd)?;
    Ok(false)
}

fn all_is_seen(context: &Context, crowd: &Crowd) -> Result<()> {
    context.until("all completions are drained", || match crowd.client.request.dequeue() {
        Err(error) if error.is_empty() => {
            let mut idle = true;
            for (ep, _) in &crowd.eps {
                idle &= ep.status()?.request_idle;
            }
            Ok(idle)
        }
        other => bail!("all events are suppressed, but the dequeue returned {other:?}"),
    })
}

/// Repeats [`pile_up`] until all completions wait.
fn piled_up(context: &Context, crowd: &Crowd, last: u32) -> Result<()> {
    for _ in 0..TRIES {
        if pile_up(context, crowd, last)? {
            return Ok(());
        }
    }
    skip(TOO_FAST)
}

/// Returns whether another thread could use the EVD during a dequeue of all completions; `None` if
/// the module had dequeued some.
fn was_shared(context: &Context, crowd: &Crowd) -> Result<Option<bool>> {
    if !pile_up(context, crowd, 0)? {
        return Ok(None);
    }
    let client = &crowd.client;
    let evd = client.request.clone();
    let dequeue = Worker::start(move || evd.dequeue())?;
    let mut shared = false;
    // On one processor an ordinary thread may wait for the next tick, when the dequeue has ended.
    let first = RealTime::begin()?;
    while !dequeue.finished() {
        std::thread::sleep(Duration::from_micros(20));
        let has_begun = crowd.outstanding(0)? < REQUESTS;
        client.request.query()?;
        // The dequeue had begun, and has not ended.
        shared |= has_begun && crowd.outstanding(crowd.eps.len() - 1)? > 0;
    }
    drop(first);
    match dequeue.join()? {
        Err(error) if error.is_empty() => {}
        other => bail!("all events are suppressed, but the dequeue returned {other:?}"),
    }
    all_is_seen(context, crowd)?;
    Ok(Some(shared))
}

fn evd_usable_during_search(context: &Context) -> Result<()> {
    if !posts_in_time(context, MORE_EPS)? {
        return skip(TOO_FAST);
    }
    let crowd = Crowd::new(context, MORE_EPS)?;
    let mut piled = 0;
    for round in 1..=ROUNDS {
        match was_shared(context, &crowd)? {
            Some(true) => {
                println!("the EVD was shared in round {round}");
                return Ok(());
            }
            Some(false) => piled += 1,
            None if piled == 0 && round == TRIES => {
                return skip(TOO_FAST);
            }
            None => {}
        }
    }
    let completions = crowd.completions();
    bail!("{piled} dequeues drained {completions} completions each, and let no other thread in")
}

fn dequeue_finds_event_behind(context: &Context) -> Result<()> {
    let crowd = Crowd::new(context, EPS)?;
    let evd = &crowd.client.request;
    let last = |found: Result<(Event, u32), Error>| {
        let (event, more) = found?;
        done(&event, DtoOperation::RdmaWrite, 8, u64::from(crowd.completions()) - 1)?;
        same("remaining events", more, 0)
    };
    piled_up(context, &crowd, 1)?;
    last(evd.dequeue())?;
    piled_up(context, &crowd, 1)?;
    last(evd.wait(Some(Duration::ZERO), 1))?;
    // The events after the first are counted.
    piled_up(context, &crowd, 16)?;
    let mut more = evd.wait(Some(Duration::ZERO), 16)?.1;
    for left in (1..=15).rev() {
        same("remaining events", more, left)?;
        more = evd.dequeue()?.1;
    }
    same("remaining events", more, 0)
}

fn event_behind_triggers_cno(context: &Context) -> Result<()> {
    let crowd = Crowd::new(context, EPS)?;
    let evd = &crowd.client.request;
    let cno = crowd.client.ia.create_cno(None)?;
    piled_up(context, &crowd, 1)?;
    evd.modify_cno(Some(&cno))?;
    let triggered = cno.wait(Some(context.patience()))?;
    ensure!(triggered == Some(evd.handle()), "{triggered:?} triggered");
    evd.dequeue()?;
    Ok(evd.modify_cno(None)?)
}
