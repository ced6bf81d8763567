// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest bandwidth`: the throughput of many operations in flight. The data are compared after
//! the clock has stopped.

use crate::cli::{BandwidthArgs, Operation};
use crate::client::{disconnect, Target};
use crate::pattern;
use crate::progress::Progress;
use crate::protocol::{Command, Mode, Request, Verb, COMMAND_BYTES, RIGHT, WRONG};
use crate::report::{self, grouped, size};
use crate::side::{successful, Plan, Side};
use anyhow::{bail, ensure, Result};
use libkdapl::sys::KDAPL_SUBMIT_MAX;
use libkdapl::{CompletionFlags, Dto, DtoOperation, Segment};
use serde::Serialize;
use std::time::Instant;

/// Maximum number of messages with the server's count that may be in flight to the client.
const CREDIT_SLOTS: u32 = 16;
/// Size of such a message, or of the reply to a command, in bytes.
const SLOT_BYTES: usize = COMMAND_BYTES;

/// Result of the measurement of one operation.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub server: String,
    pub device: String,
    pub operation: Operation,
    pub iterations: u32,
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
        outcomes.push(measure(&target, args, operation)?);
    }
    if as_json {
        return report::json(&outcomes);
    }
    println!(
        "{} operations of {} each, {} in flight, from {} to {}:",
        grouped(args.iterations.into()),
        size(args.size.into()),
        args.depth,
        target.device,
        target.address
    );
    println!("{}", table(&outcomes));
    Ok(())
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
    let mut rows = vec![["", "bandwidth", "operations/s"].map(String::from).to_vec()];
    rows.extend(outcomes.iter().map(|outcome| {
        let name = match outcome.operation {
            Operation::Send => "send",
            Operation::Write => "RDMA write",
            Operation::Read => "RDMA read",
        };
        vec![
            name.into(),
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
        requests: args.depth,
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
        // Twice the number in flight, so that the server has time to post receives again.
        depth: if sends { 2 * args.depth } else { 1 },
        message_size: if sends { args.size } else { 64 },
        region_size: if sends { 0 } else { args.size },
        pause_us: 0,
        run: fastrand::u64(..),
        connections: 1,
        messages: args.iterations,
    };
    let (side, remote) = target.connect(&plan, &request, |side| {
        (0..u64::from(CREDIT_SLOTS)).try_for_each(|slot| receive_credit(side, args, slot))
    })?;
    let window = if sends { request.depth.into() } else { u64::MAX };
    let seed = request.run;
    let mut pipeline = Pipeline {
        side,
        remote,
        operation,
        args,
        seed,
        posted: 0,
        done: 0,
        taken: 0,
        right: false,
        window,
    };
    pipeline.prepare()?;
    let start = Instant::now();
    pipeline.run()?;
    let seconds = start.elapsed().as_secs_f64();
    pipeline.compare()?;
    disconnect(&mut pipeline.side)?;
    let bytes = f64::from(args.iterations) * f64::from(args.size);
    Ok(Outcome {
        server: target.address.to_string(),
        device: target.device.clone(),
        operation,
        iterations: args.iterations,
        size: args.size,
        depth: args.depth,
        seconds,
        mib_per_second: bytes / seconds / 1_048_576.0,
        operations_per_second: f64::from(args.iterations) / seconds,
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
        let progress = Progress::new(name, self.total());
        while !self.finished() {
            self.post()?;
            let before = self.done;
            let mut event = Some(self.side.next()?);
            while let Some(taken) = event {
                self.take(&taken)?;
                event = self.side.try_next()?;
            }
            progress.add(self.done - before);
        }
        Ok(())
    }

    fn total(&self) -> u64 {
        self.args.iterations.into()
    }

    /// Returns whether all operations have completed and the server has received all messages.
    fn finished(&self) -> bool {
        let taken = self.operation != Operation::Send || self.taken == self.total();
        self.done == self.total() && taken
    }

    /// Returns the number of operations that may be posted now.
    fn room(&self) -> u64 {
        let in_flight = self.posted - self.done;
        let room = u64::from(self.args.depth) - in_flight;
        // At the end the server's count may be ahead of the client's completions.
        let window = self.window.saturating_sub(self.posted.saturating_sub(self.taken));
        room.min(window).min(self.total() - self.posted)
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
