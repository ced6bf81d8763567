// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One connection of a bandwidth test: it keeps operations in flight, and compares the data
//! afterwards.

use super::measure::Case;
use crate::client::Target;
use crate::pattern;
use crate::protocol::{Command, Mode, Request, Verb, COMMAND_BYTES, FAREWELL, RIGHT, WRONG};
use crate::side::{successful, Plan, Side};
use anyhow::{bail, ensure, Result};
use libkdapl::sys::KDAPL_SUBMIT_MAX;
use libkdapl::{CompletionFlags, Dto, DtoOperation, Segment};
use toolkit::limit::Limit;
use toolkit::progress::Progress;

/// Maximum number of messages with the server's count that may be in flight to the client.
const CREDIT_SLOTS: u32 = 16;
/// Size of such a message, or of the reply to a command, in bytes.
const SLOT_BYTES: usize = COMMAND_BYTES;

/// Returns the parameters of the client's side.
fn plan(target: &Target, case: &Case) -> Plan {
    Plan {
        receives: CREDIT_SLOTS,
        // And the farewell.
        requests: case.depth + 1,
        // One more slot for the command.
        memory: slot_offset(case, u64::from(CREDIT_SLOTS) + 1),
        one_queue: true,
        poll: false,
        record: false,
        timeout: target.timeout,
    }
}

/// Returns the request to the server.
fn request(case: &Case, operation: DtoOperation, (run, connections): (u64, u32)) -> Request {
    let sends = operation == DtoOperation::Send;
    Request {
        mode: if sends { Mode::Sink } else { Mode::Serve },
        poll: false,
        // Twice the number in flight, so that the server has time to post receives again; and the
        // farewell.
        depth: if sends { 2 * case.depth + 1 } else { 1 },
        message_size: if sends { case.size } else { 64 },
        region_size: if sends { 0 } else { case.size },
        pause_us: 0,
        run,
        connections,
    }
}

/// Returns the offset of a slot, after the data.
fn slot_offset(case: &Case, slot: u64) -> usize {
    case.size as usize + slot as usize * SLOT_BYTES
}

fn receive_credit(side: &Side, case: &Case, slot: u64) -> Result<()> {
    side.receive(side.lmr.segment(slot_offset(case, slot), SLOT_BYTES), slot)
}

/// A connection that sends, writes or reads.
pub struct Pipeline<'a> {
    pub side: Side,
    remote: Segment,
    operation: DtoOperation,
    case: &'a Case,
    limit: Limit,
    /// Seed of the pattern.
    seed: u64,
    posted: u64,
    /// Number of operations that have completed.
    pub done: u64,
    /// Number of messages that the server has reported as received.
    taken: u64,
    /// The server has reported that its comparison succeeded.
    right: bool,
    /// Number of messages for which the server has receives.
    window: u64,
}

impl<'a> Pipeline<'a> {
    /// Connects. `run` is the same for the `connections` of a measurement.
    pub fn connect(
        target: &Target,
        case: &'a Case,
        operation: DtoOperation,
        (run, connections): (u64, u32),
    ) -> Result<Self> {
        let request = request(case, operation, (run, connections));
        let (side, remote) = target.connect(&plan(target, case), &request, |side| {
            (0..u64::from(CREDIT_SLOTS)).try_for_each(|slot| receive_credit(side, case, slot))
        })?;
        let sends = operation == DtoOperation::Send;
        Ok(Self {
            side,
            remote,
            operation,
            case,
            limit: Limit::Count(0),
            seed: run,
            posted: 0,
            done: 0,
            taken: 0,
            right: false,
            window: if sends { u64::from(request.depth) - 1 } else { u64::MAX },
        })
    }

    /// Writes the pattern to the source of the operation.
    pub fn prepare(&mut self) -> Result<()> {
        if self.operation == DtoOperation::RdmaRead {
            return self.ask(Verb::Fill);
        }
        self.side.lmr.buffer().write(0, &pattern::bytes(self.seed, self.case.size as usize));
        Ok(())
    }

    /// Compares the destination of the operation, on the side that received the data.
    pub fn compare(&mut self) -> Result<()> {
        match self.operation {
            _ if self.done == 0 => Ok(()),
            DtoOperation::Send => {
                while !self.right {
                    let event = self.side.next()?;
                    self.take(&event)?;
                }
                Ok(())
            }
            DtoOperation::RdmaWrite => self.ask(Verb::Verify),
            _ => {
                let bytes = self.side.lmr.buffer().to_vec(0, self.case.size as usize);
                pattern::first_wrong(self.seed, &bytes)
                    .map_or(Ok(()), |at| bail!("byte {at} of the memory that was read is wrong"))
            }
        }
    }

    /// Sends a command for the server's whole memory and waits for the reply.
    fn ask(&mut self, verb: Verb) -> Result<()> {
        let command = Command { verb, seed: self.seed, offset: 0, length: self.case.size.into() };
        let at = slot_offset(self.case, CREDIT_SLOTS.into());
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
                Verb::Done => receive_credit(&self.side, self.case, dto.cookie)?,
                Verb::Wrong => bail!("{verb:?}: the server found byte {} wrong", answer.offset),
                other => bail!("the server answers {other:?}"),
            }
        }
        Ok(())
    }

    /// Returns the message in a slot.
    fn received<const N: usize>(&self, slot: u64) -> [u8; N] {
        let mut message = [0; N];
        self.side.lmr.buffer().read(slot_offset(self.case, slot), &mut message);
        message
    }

    /// Keeps operations in flight until the measurement ends, and waits for the last ones.
    pub fn run(&mut self, progress: &Progress) -> Result<()> {
        self.limit = self.case.limit();
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
        if self.operation == DtoOperation::Send {
            self.side.farewell()?;
            return Ok(self.taken == self.posted);
        }
        Ok(true)
    }

    /// Returns the number of operations that may be posted now.
    fn room(&self) -> u64 {
        let in_flight = self.posted - self.done;
        let room = u64::from(self.case.depth) - in_flight;
        // At the end the server's count may be ahead of the client's completions.
        let window = self.window.saturating_sub(self.posted.saturating_sub(self.taken));
        room.min(window).min(self.limit.left(self.posted))
    }

    /// Posts as many operations as are allowed, in lists of one system call each.
    fn post(&mut self) -> Result<()> {
        let local = [self.side.lmr.segment(0, self.case.size as usize)];
        let remote = (self.operation != DtoOperation::Send).then_some(self.remote);
        loop {
            let end = self.posted + self.room().min(KDAPL_SUBMIT_MAX.into());
            if self.posted == end {
                return Ok(());
            }
            let dto = |cookie| {
                Dto::new(self.operation, &local, remote, cookie, CompletionFlags::default())
            };
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
                receive_credit(&self.side, self.case, dto.cookie)?;
            }
            count => bail!("the server says it has taken {count} of {} messages", self.posted),
        }
        Ok(())
    }
}
