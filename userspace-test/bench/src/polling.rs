// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A consumer that only dequeues: no completion queue is armed for it.
//!
//! Counts in the kernel how often a completion queue is armed (calls of the provider's
//! `req_notify_cq` by the module) while messages arrive and are dequeued. A consumer that waits for
//! each message is counted as well, which shows that the counter works.
//!
//! Also measures the time of a dequeue that finds a message and of one that finds none.

use crate::benchmark::Sink;
use crate::ends::{arrived, Ends, Pair, PATIENCE};
use crate::sample::Sample;
use anyhow::{ensure, Context, Result};
use libkdapl::{DtoOperation, Error, Evd, EvdFlags, Event};
use observe::count::{Probe, Stacks};
use std::time::Instant;

const MESSAGES: u32 = 10_000;
/// Number of messages that are waited for.
const FEWER: u32 = 100;
/// Number of messages in the queue before they are dequeued.
const BATCH: u32 = 500;
const EMPTY: u32 = 2000;
/// Function of soft-RoCE that arms a completion queue.
const ARMS: &str = "rxe_req_notify_cq";

/// A queue, and endpoints whose messages arrive on it.
struct FedQueue<'a> {
    ends: &'a Ends,
    recv: Evd,
    pair: Pair,
}

impl FedQueue<'_> {
    /// Counts how often a queue is armed while `messages` messages arrive one after another and are
    /// taken with `take`.
    fn count(
        &self,
        messages: u32,
        take: impl Fn(&Evd) -> Result<(Event, u32), Error>,
    ) -> Result<u64> {
        let probe = Probe::at(ARMS)?;
        let arms = Stacks::of(&[&probe.event()])?;
        for number in 0..messages {
            self.ends.receive(&self.pair, number.into())?;
            self.ends.send(&self.pair)?;
            let cookie = arrived(&take(&self.recv)?.0, DtoOperation::Receive)?;
            ensure!(cookie == u64::from(number), "message {cookie} instead of {number}");
            arrived(&poll(&self.ends.sent)?.0, DtoOperation::Send)?;
        }
        arms.with("kdapl")
    }

    /// Returns the nanoseconds to dequeue a message that has arrived.
    fn dequeue(&self) -> Result<f64> {
        let mut time = 0.0;
        for _ in 0..MESSAGES / BATCH {
            self.ends.send_all(std::slice::from_ref(&self.pair), BATCH)?;
            let start = Instant::now();
            for _ in 0..BATCH {
                arrived(&self.recv.dequeue()?.0, DtoOperation::Receive)?;
            }
            time += start.elapsed().as_secs_f64();
        }
        Ok(time * 1e9 / f64::from(MESSAGES))
    }

    /// Returns the nanoseconds of a dequeue that finds no message.
    fn look(&self) -> Result<f64> {
        let start = Instant::now();
        for _ in 0..EMPTY {
            ensure!(self.recv.dequeue().is_err_and(|error| error.is_empty()), "unexpected message");
        }
        Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(EMPTY))
    }
}

/// Dequeues until there is an event; yields the CPU in between.
fn poll(evd: &Evd) -> Result<(Event, u32), Error> {
    let start = Instant::now();
    loop {
        match evd.dequeue() {
            Err(error) if error.is_empty() && start.elapsed() < PATIENCE => {
                std::thread::yield_now();
            }
            outcome => return outcome,
        }
    }
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let recv = ends.ia.create_evd(EvdFlags::DTO, BATCH as i32)?;
    let pair = ends.pair(&recv, BATCH)?;
    let queue = FedQueue { ends: &ends, recv, pair };
    let waited = queue.count(FEWER, |evd| evd.wait(Some(PATIENCE), 1)).context("waiting")?;
    let counts = waited >= u64::from(FEWER);
    ensure!(counts, "{waited} arms for {FEWER} waits: the counter does not work");
    let arms = queue.count(MESSAGES, poll).context("polling")?;
    let mut tell = |what: &str, unit: &str, ours: f64, limit| {
        sink(Sample::alone("polling", what, unit, ours, limit))
    };
    tell("10,000 messages dequeued: queues armed", "times", arms as f64, Some(0.0))?;
    tell("a dequeue that finds a message", "ns", queue.dequeue()?, None)?;
    tell("a dequeue that finds nothing", "ns", queue.look()?, None)
}
