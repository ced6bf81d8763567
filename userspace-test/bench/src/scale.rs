// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Dependence of the cost of an event on the number of endpoints and queues.
//!
//! * Endpoints: messages for 1,000 endpoints are in one queue, compared with as many messages for
//!   one endpoint. The clock includes taking them: polling the completion queue, finding the
//!   endpoint of each message, making its event and dequeuing it.
//! * Queues: 256 EVDs trigger one CNO, compared with one EVD. The clock includes, for a software
//!   event: posting it to the next EVD, waiting on the CNO, dequeuing it, and finding the EVD
//!   empty; for a message that has arrived: the same without the post. Messages arrive one at a
//!   time.
//!   that has arrived: the same without the posting. The messages come one at a time.

use crate::benchmark::Sink;
use crate::ends::{arrived, Ends, Pair, PATIENCE};
use crate::sample::Sample;
use anyhow::{ensure, Context, Result};
use libkdapl::{Cno, DtoOperation, Evd, EvdFlags, Event};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const EPS: usize = 1000;
const MESSAGES: u32 = 1000;
/// Number of measurements of so many messages.
const BATCHES: u32 = 4;
const EVDS: usize = 256;
const SOFTWARE_EVENTS: u64 = 4096;
const CNO_MESSAGES: u64 = 1024;
/// Maximum ratio that counts as constant.
const FLAT: f64 = 1.05;

fn nanoseconds(time: Duration, events: u64) -> f64 {
    time.as_secs_f64() * 1e9 / events as f64
}

/// Returns the nanoseconds to take a message that has arrived, with `count` endpoints.
fn messages_of(ends: &Ends, count: usize) -> Result<f64> {
    let recv = ends.ia.create_evd(EvdFlags::DTO, MESSAGES as i32)?;
    let receives = MESSAGES / count as u32;
    let pairs = (0..count).map(|_| ends.pair(&recv, receives)).collect::<Result<Vec<_>>>()?;
    let take_all = || -> Result<Duration> {
        ends.send_all(&pairs, MESSAGES)?;
        let start = Instant::now();
        for _ in 0..MESSAGES {
            arrived(&recv.dequeue()?.0, DtoOperation::Receive)?;
        }
        let time = start.elapsed();
        ensure!(recv.dequeue().is_err_and(|error| error.is_empty()), "more messages than sent");
        Ok(time)
    };
    take_all()?;
    let mut time = Duration::ZERO;
    for _ in 0..BATCHES {
        time += take_all()?;
    }
    Ok(nanoseconds(time, (BATCHES * MESSAGES).into()))
}

/// EVDs that trigger one CNO.
struct Queues {
    cno: Cno,
    all: Vec<Evd>,
    /// Index of each EVD in `all`, by its handle.
    places: HashMap<u64, usize>,
}

impl Queues {
    fn new(ends: &Ends, flags: EvdFlags, count: usize) -> Result<Self> {
        let cno = ends.ia.create_cno(None)?;
        let all = (0..count).map(|_| ends.ia.create_evd(flags, 8));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        all.iter().try_for_each(|evd| evd.modify_cno(Some(&cno)))?;
        let places = all.iter().enumerate().map(|(place, evd)| (evd.handle().0, place));
        Ok(Self { cno, places: places.collect(), all })
    }

    /// Waits on the CNO and takes the only event, which must be on EVD `due`.
    fn take(&self, due: usize) -> Result<Event> {
        let handle =
            self.cno.wait(Some(PATIENCE))?.context("the CNO was triggered without an EVD")?;
        let place = *self.places.get(&handle.0).context("an unknown EVD")?;
        ensure!(place == due, "EVD {place} instead of {due}");
        let (event, _) = self.all[place].dequeue()?;
        ensure!(self.all[place].dequeue().is_err_and(|error| error.is_empty()), "unexpected event");
        Ok(event)
    }
}

/// Returns the nanoseconds to post, wait for and take a software event, with `count` queues.
fn software_of(ends: &Ends, count: usize) -> Result<f64> {
    let queues = Queues::new(ends, EvdFlags::SOFTWARE, count)?;
    let round = |number: u64| -> Result<()> {
        let due = number as usize % count;
        queues.all[due].post_se(number)?;
        let event = queues.take(due)?;
        let right = matches!(event, Event::Software { pointer } if pointer == number);
        ensure!(right, "{event} instead of {number}");
        Ok(())
    };
    (0..EVDS as u64).try_for_each(round)?;
    let start = Instant::now();
    (0..SOFTWARE_EVENTS).try_for_each(round)?;
    Ok(nanoseconds(start.elapsed(), SOFTWARE_EVENTS))
}

/// Returns the nanoseconds to wait for and take a message that has arrived, with `count` queues.
fn cno_messages_of(ends: &Ends, count: usize) -> Result<f64> {
    let queues = Queues::new(ends, EvdFlags::DTO, count)?;
    let pairs = queues.all.iter().map(|evd| ends.pair(evd, 4)).collect::<Result<Vec<Pair>>>()?;
    let mut time = Duration::ZERO;
    for number in 0..EVDS as u64 + CNO_MESSAGES {
        let due = number as usize % count;
        ends.receive(&pairs[due], number)?;
        ends.send(&pairs[due])?;
        ends.all_sent(1)?;
        let start = Instant::now();
        let event = queues.take(due)?;
        if number >= EVDS as u64 {
            time += start.elapsed();
        }
        ensure!(arrived(&event, DtoOperation::Receive)? == number, "unexpected message");
    }
    Ok(nanoseconds(time, CNO_MESSAGES))
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let mut tell =
        |what: &str, many: f64, one: f64| sink(Sample::new("scale", what, "ns", (many, one), FLAT));
    let one = messages_of(&ends, 1)?;
    let what = "taking a message, 1,000 endpoints on one EVD, beside 1";
    tell(what, messages_of(&ends, EPS)?, one)?;
    let one = software_of(&ends, 1)?;
    let what = "software event through a CNO, 256 EVDs on it, beside 1";
    tell(what, software_of(&ends, EVDS)?, one)?;
    let one = cno_messages_of(&ends, 1)?;
    let what = "taking a message through a CNO, 256 EVDs on it, beside 1";
    tell(what, cno_messages_of(&ends, EVDS)?, one)
}
