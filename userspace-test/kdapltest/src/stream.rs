// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest stream`: numbered messages to the server and back, several in flight. Each must come
//! back once, in order and unchanged, also across a time in which the server is silent.

use crate::cli::StreamArgs;
use crate::client::{finish, Target};
use crate::pattern;
use crate::protocol::{Mode, Request};
use crate::side::{Plan, Side, QUIET_SENDS};
use anyhow::{bail, ensure, Result};
use libkdapl::{DtoOperation, DtoStatus, Event};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};
use toolkit::limit::Limit;
use toolkit::output::{self, say};
use toolkit::report::grouped;
use toolkit::stop;

/// Bytes of the number at the head of a message; the rest is its pattern.
const NUMBER_BYTES: usize = 8;

/// Result of the stream.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Outcome {
    server: String,
    device: String,
    messages: u64,
    /// A signal ended the measurement early.
    stopped: bool,
    size: u32,
    depth: u32,
    seconds: f64,
    longest_silence_ms: u64,
}

pub fn run(args: &StreamArgs, as_json: bool) -> Result<()> {
    let target = Target::open(&args.client)?;
    let outcome = measure(&target, args)?;
    if as_json {
        return output::json(&outcome);
    }
    say(format!(
        "{} messages of {} bytes to {} and back, {} in flight, {:.1} s, longest silence {} ms: each \
         came back once, in order.",
        grouped(outcome.messages),
        outcome.size,
        outcome.server,
        outcome.depth,
        outcome.seconds,
        grouped(outcome.longest_silence_ms),
    ))
}

fn measure(target: &Target, args: &StreamArgs) -> Result<Outcome> {
    let (depth, size) = (args.depth, args.size as usize);
    let plan = Plan {
        receives: depth,
        requests: depth,
        memory: 2 * depth as usize * size,
        one_queue: true,
        poll: false,
        record: false,
        timeout: target.timeout,
    };
    let request = Request {
        mode: Mode::Echo,
        poll: false,
        // And a receive for each send whose completion may not have been taken, see
        // `Side::quietly`.
        depth: depth + 2 * QUIET_SENDS,
        message_size: args.size,
        region_size: 0,
        pause_us: 0,
        run: fastrand::u64(..),
        connections: 1,
    };
    let slots = u64::from(depth);
    let (side, _) = target.connect(&plan, &request, |side| {
        (0..slots)
            .try_for_each(|slot| side.receive(side.lmr.segment(slot as usize * size, size), slot))
    })?;
    let mut stream = Stream::new(side, slots, size);
    let start = Instant::now();
    let outcome = stream.run(args);
    let seconds = start.elapsed().as_secs_f64();
    finish(&mut stream.side, outcome)?;
    Ok(Outcome {
        server: target.address.to_string(),
        device: target.device.clone(),
        messages: stream.back,
        stopped: stop::requested(),
        size: args.size,
        depth,
        seconds,
        longest_silence_ms: stream.longest.as_millis() as u64,
    })
}

struct Stream {
    side: Side,
    /// Messages in flight at most. Message `n` has the slots `n % slots`: one to send from, one to
    /// receive into.
    slots: u64,
    size: usize,
    posted: u64,
    /// Sends that have completed.
    sent: u64,
    /// Messages that came back.
    back: u64,
    last: Instant,
    longest: Duration,
}

impl Stream {
    fn new(side: Side, slots: u64, size: usize) -> Self {
        let (last, longest) = (Instant::now(), Duration::ZERO);
        Self { side, slots, size, posted: 0, sent: 0, back: 0, last, longest }
    }

    fn run(&mut self, args: &StreamArgs) -> Result<()> {
        let Some(silence) = args.through_silence.map(Duration::from_secs) else {
            let limit = Limit::new(args.iterations, args.duration);
            return self.until(|stream| limit.reached(stream.posted));
        };
        let half = args.iterations / 2;
        self.until(|stream| stream.back >= half)?;
        self.longest = Duration::ZERO;
        say("pause")?;
        self.until(|stream| stream.longest >= silence)?;
        let end = self.posted + args.iterations.div_ceil(2);
        self.until(|stream| stream.posted == end)
    }

    /// Keeps messages in flight until `enough` returns true, then waits for the outstanding ones.
    fn until(&mut self, enough: impl Fn(&Self) -> bool) -> Result<()> {
        while !stop::requested() && !enough(self) {
            if self.posted < self.slots + self.sent.min(self.back) {
                self.post()?;
            } else {
                self.take()?;
            }
        }
        while self.sent.min(self.back) < self.posted {
            self.take()?;
        }
        Ok(())
    }

    /// Message `number`, its number first.
    fn message(&self, number: u64) -> Vec<u8> {
        let mut message = number.to_le_bytes().to_vec();
        message.extend(pattern::bytes(number, self.size - NUMBER_BYTES));
        message
    }

    fn post(&mut self) -> Result<()> {
        let slot = self.slots + self.posted % self.slots;
        let at = slot as usize * self.size;
        self.side.lmr.buffer().write(at, &self.message(self.posted));
        self.side.send(self.side.lmr.segment(at, self.size), self.posted)?;
        self.posted += 1;
        Ok(())
    }

    /// Takes the next event.
    fn take(&mut self) -> Result<()> {
        match self.side.next()? {
            Event::Dto(dto) if dto.status != DtoStatus::Success => self.ended(Event::Dto(dto)),
            Event::Dto(dto) if dto.operation == DtoOperation::Send => {
                ensure!(
                    dto.cookie == self.sent,
                    "send {} completed after {}",
                    dto.cookie,
                    self.sent
                );
                self.sent += 1;
                Ok(())
            }
            Event::Dto(dto) if dto.operation == DtoOperation::Receive => {
                ensure!(
                    dto.length == self.size as u64,
                    "{} of {} bytes came back",
                    dto.length,
                    self.size
                );
                self.came_back(dto.cookie)
            }
            event => self.ended(event),
        }
    }

    fn came_back(&mut self, slot: u64) -> Result<()> {
        let at = slot as usize * self.size;
        let message = self.side.lmr.buffer().to_vec(at, self.size);
        let number = message.first_chunk().map_or(u64::MAX, |number| u64::from_le_bytes(*number));
        ensure!(number == self.back, "message {number} came back in place of {}", self.back);
        ensure!(message == self.message(number), "message {number} came back changed");
        self.back += 1;
        self.longest = self.longest.max(self.last.elapsed());
        self.last = Instant::now();
        self.side.receive(self.side.lmr.segment(at, self.size), slot)
    }

    /// Returns an error that names the events at the end of the connection. `event` is the first.
    fn ended(&mut self, event: Event) -> Result<()> {
        let (first, mut last) = (event.to_string(), event);
        while let Event::Dto(_) = last {
            last = self.side.next()?;
        }
        let silence = self.last.elapsed().as_millis() as u64;
        if let Some(removed) = self.side.removed() {
            return Err(removed);
        }
        bail!(
            "lost {}: {last} after {} messages and {} ms of silence; first {first}; {}",
            self.side.peer.name,
            grouped(self.back),
            grouped(silence),
            self.side.peer.remedy
        )
    }
}
