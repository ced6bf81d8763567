// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest bandwidth`: the throughput of many operations in flight. The data are compared after
//! the clock has stopped.

use crate::cli::{BandwidthArgs, Operation};
use crate::client::{finish, Target};
use crate::pattern;
use crate::protocol::{Command, Mode, Request, Verb, COMMAND_BYTES, FAREWELL, RIGHT, WRONG};
use crate::side::{successful, Plan, Side};
use anyhow::{bail, ensure, Result};
use libkdapl::sys::KDAPL_SUBMIT_MAX;
use libkdapl::{CompletionFlags, Dto, DtoOperation, Segment};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Instant;
use toolkit::limit::Limit;
use toolkit::output::{self, say};
use toolkit::progress::Progress;
use toolkit::report::{self, grouped, size};
use toolkit::stop;

/// Maximum number of messages with the server's count that may be in flight to the client.
const CREDIT_SLOTS: u32 = 16;
/// Size of such a message, or of the reply to a command, in bytes.
const SLOT_BYTES: usize = COMMAND_BYTES;

/// Result of the measurement of one operation.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Outcome {
    pub server: String,
    pub device: String,
    pub operation: Operation,
    /// Number of operations that were measured.
    pub iterations: u64,
    /// A signal ended the measurement early.
    pub stopped: bool,
    pub size: u32,
    pub depth: u32,
    pub seconds: f64,
    pub mib_per_second: f64,
    pub operations_per_second: f64,
}

pub fn run(args: &BandwidthArgs, as_json: bool) -> Result<()> {
    let target = Target::open(&args.client)?;
    let mut outcomes = Vec::new();
    for operation in operations(args) {
        outcomes.extend(stop::forgive(measure(&target, args, operation))?);
        if stop::requested() {
            break;
        }
    }
    if as_json {
        return output::json(&outcomes);
    }
    say(format!(
        "Operations of {} each, {} in flight, from {} to {}:",
        size(args.size.into()),
        args.depth,
        target.device,
        target.address
    ))?;
    say(table(&outcomes))
}

fn operations(args: &BandwidthArgs) -> Vec<Operation> {
    if args.operation.is_empty() {
        vec![Operation::Send, Operation::Write, Operation::Read]
    } else {
        args.operation.clone()
    }
}

/// Formats the results, one row for each operation.
pub fn table(outcomes: &[Outcome]) -> comfy_table::Table {
    let mut rows = vec![["", "operations", "bandwidth", "operations/s"].map(String::from).to_vec()];
    rows.extend(outcomes.iter().map(|outcome| {
        let name = match outcome.operation {
            Operation::Send => "send",
            Operation::Write => "RDMA write",
            Operation::Read => "RDMA read",
        };
        vec![
            name.into(),
            grouped(outcome.iterations),
            format!("{:.1} MiB/s", outcome.mib_per_second),
            grouped(outcome.operations_per_second as u64),
        ]
    }));
    report::table(&rows)
}

/// Measures an operation on an open device.
pub fn measure(target: &Target, args: &BandwidthArgs, operation: Operation) -> Result<Outcome> {
    let sends = operation == Operation::Send;
    let plan = Plan {
        receives: CREDIT_SLOTS,
        // And the farewell.
        requests: args.depth + 1,
        // One more slot for the command.
        memory: slot_offset(args, u64::from(CREDIT_SLOTS) + 1),
        one_queue: true,
        poll: false,
        record: false,
        timeout: target.timeout,
    };
    let request = Request {
        mode: if sends { Mode::Sink } else { Mode::Serve },
        poll: false,
        // Twice the number in flight, so that the server has time to post receives again; and the
        // farewell.
        depth: if sends { 2 * args.depth + 1 } else { 1 },
        message_size: if sends { args.size } else { 64 },
        region_size: if sends { 0 } else { args.size },
        pause_us: 0,
        run: fastrand::u64(..),
        connections: 1,
    };
    let (side, remote) = target.connect(&plan, &request, |side| {
        (0..u64::from(CREDIT_SLOTS)).try_for_each(|slot| receive_credit(side, args, slot))
    })?;
    let window = if sends { u64::from(request.depth) - 1 } else { u64::MAX };
    let (limit, seed) = (Limit::Count(0), request.run);
    let mut pipeline = Pipeline {
        side,
        remote,
        operation,
        args,
        limit,
        seed,
        posted: 0,
        done: 0,
        taken: 0,
        right: false,
        window,
    };
    let (mut start, mut seconds) = (Instant::now(), 0.0);
    let outcome = pipeline.prepare().and_then(|()| {
        start = Instant::now();
        let outcome = pipeline.run();
        seconds = start.elapsed().as_secs_f64();
        outcome.and_then(|()| pipeline.compare())
    });
    finish(&mut pipeline.side, outcome)?;
    let (iterations, done) = (pipeline.done, pipeline.done as f64);
    let per_second = if seconds > 0.0 { done / seconds } else { 0.0 };
    Ok(Outcome {
        server: target.address.to_string(),
        device: target.device.clone(),
        operation,
        iterations,
        stopped: stop::requested(),
        size: args.size,
        depth: args.depth,
        seconds,
        mib_per_second: per_second * f64::from(args.size) / 1_048_576.0,
        operations_per_second: per_second,
    })
}

/// Returns the offset of a slot, after the data.
fn slot_offset(args: &BandwidthArgs, slot: u64) -> usize {
    args.size as usize + slot as usize * SLOT_BYTES
}

fn receive_credit(side: &Side, args: &BandwidthArgs, slot: u64) -> Result<()> {
    side.receive(side.lmr.segment(slot_offset(args, slot), SLOT_BYTES), slot)
}

struct Pipeline<'a> {
    side: Side,
    remote: Segment,
    operation: Operation,
    args: &'a BandwidthArgs,
    limit: Limit,
    /// Seed of the pattern.
    seed: u64,
    posted: u64,
    done: u64,
    /// Number of messages that the server has reported as received.
    taken: u64,
    /// The server has reported that its comparison succeeded.
    right: bool,
    /// Number of messages for which the server has receives.
    window: u64,
}

impl Pipeline<'_> {
    /// Writes the pattern to the source of the operation.
    fn prepare(&mut self) -> Result<()> {
        if self.operation == Operation::Read {
            return self.ask(Verb::Fill);
        }
        self.side.lmr.buffer().write(0, &pattern::bytes(self.seed, self.args.size as usize));
        Ok(())
    }

    /// Compares the destination of the operation, on the side that received the data.
    fn compare(&mut self) -> Result<()> {
        match self.operation {
            _ if self.done == 0 => Ok(()),
            Operation::Send => {
                while !self.right {
                    let event = self.side.next()?;
                    self.take(&event)?;
                }
                Ok(())
            }
            Operation::Write => self.ask(Verb::Verify),
            Operation::Read => {
                let bytes = self.side.lmr.buffer().to_vec(0, self.args.size as usize);
                pattern::first_wrong(self.seed, &bytes)
                    .map_or(Ok(()), |at| bail!("byte {at} of the memory that was read is wrong"))
            }
        }
    }

    /// Sends a command for the server's whole memory and waits for the reply.
    fn ask(&mut self, verb: Verb) -> Result<()> {
        let command = Command { verb, seed: self.seed, offset: 0, length: self.args.size.into() };
        let at = slot_offset(self.args, CREDIT_SLOTS.into());
        self.side.lmr.buffer().write(at, &command.encode());
        self.side.send(self.side.lmr.segment(at, COMMAND_BYTES), 0)?;
        // The completion of the send and the reply arrive in any order.
        for _ in 0..2 {
            let dto = successful(&self.side.next()?)?;
            if dto.operation != DtoOperation::Receive {
                continue;
            }
            let answer = Command::decode(&self.received::<COMMAND_BYTES>(dto.cookie))?;
            match answer.verb {
                Verb::Done => receive_credit(&self.side, self.args, dto.cookie)?,
                Verb::Wrong => bail!("{verb:?}: the server found byte {} wrong", answer.offset),
                other => bail!("the server answers {other:?}"),
            }
        }
        Ok(())
    }

    /// Returns the message in a slot.
    fn received<const N: usize>(&self, slot: u64) -> [u8; N] {
        let mut message = [0; N];
        self.side.lmr.buffer().read(slot_offset(self.args, slot), &mut message);
        message
    }

    fn run(&mut self) -> Result<()> {
        let name = match self.operation {
            Operation::Send => "send",
            Operation::Write => "RDMA write",
            Operation::Read => "RDMA read",
        };
        self.limit = Limit::new(self.args.iterations, self.args.duration);
        let progress = Progress::new(name, self.limit.total());
        loop {
            self.post()?;
            if self.finished()? {
                return Ok(());
            }
            let before = self.done;
            let mut event = Some(self.side.next()?);
            while let Some(taken) = event {
                self.take(&taken)?;
                event = self.side.try_next()?;
            }
            progress.add(self.done - before);
        }
    }

    /// Returns whether all operations have completed and the server has received all messages. It
    /// reports the last ones after the farewell.
    fn finished(&mut self) -> Result<bool> {
        if !self.limit.reached(self.posted) || self.done < self.posted {
            return Ok(false);
        }
        if self.operation == Operation::Send {
            self.side.farewell()?;
            return Ok(self.taken == self.posted);
        }
        Ok(true)
    }

    /// Returns the number of operations that may be posted now.
    fn room(&self) -> u64 {
        let in_flight = self.posted - self.done;
        let room = u64::from(self.args.depth) - in_flight;
        // At the end the server's count may be ahead of the client's completions.
        let window = self.window.saturating_sub(self.posted.saturating_sub(self.taken));
        room.min(window).min(self.limit.left(self.posted))
    }

    /// Posts as many operations as are allowed, in lists of one system call each.
    fn post(&mut self) -> Result<()> {
        let local = [self.side.lmr.segment(0, self.args.size as usize)];
        let operation = match self.operation {
            Operation::Send => DtoOperation::Send,
            Operation::Write => DtoOperation::RdmaWrite,
            Operation::Read => DtoOperation::RdmaRead,
        };
        let remote = (self.operation != Operation::Send).then_some(self.remote);
        loop {
            let end = self.posted + self.room().min(KDAPL_SUBMIT_MAX.into());
            if self.posted == end {
                return Ok(());
            }
            let dto =
                |cookie| Dto::new(operation, &local, remote, cookie, CompletionFlags::default());
            let dtos: Vec<_> = (self.posted..end).map(dto).collect();
            self.side.ep.submit(&dtos, None).event?;
            self.posted = end;
        }
    }

    fn take(&mut self, event: &libkdapl::Event) -> Result<()> {
        let dto = successful(event)?;
        if dto.cookie == FAREWELL {
            return Ok(());
        }
        if dto.operation != DtoOperation::Receive {
            ensure!(dto.cookie == self.done, "completion {} out of order", dto.cookie);
            self.done += 1;
            return Ok(());
        }
        match u64::from_le_bytes(self.received(dto.cookie)) {
            // No message follows these.
            RIGHT => self.right = true,
            WRONG => bail!("the server found a byte wrong in what it received"),
            count if (self.taken..=self.posted).contains(&count) => {
                self.taken = count;
                receive_credit(&self.side, self.args, dto.cookie)?;
            }
            count => bail!("the server says it has taken {count} of {} messages", self.posted),
        }
        Ok(())
    }
}
