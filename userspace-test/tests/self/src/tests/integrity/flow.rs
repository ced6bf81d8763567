// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One operation between random segments of two ends.

use crate::context::Context;
use crate::end::{End, Pair};
use crate::expect::done;
use crate::tests::transfer::{collect, pieces_in, segments};
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, DtoOperation};
use std::fmt;
use std::ops::Range;

pub const OPERATIONS: [DtoOperation; 3] =
    [DtoOperation::Send, DtoOperation::RdmaWrite, DtoOperation::RdmaRead];

/// Most segments of a list. A device may allow fewer.
const SEGMENTS: u32 = 6;

/// An operation of `by` on its own memory and that of `with`, in the same part of both.
pub struct Flow<'a> {
    by: &'a End,
    with: &'a End,
    operation: DtoOperation,
    length: usize,
    part: Range<usize>,
    /// Pieces of the memory of `by`, and of that of `with`.
    own: Vec<(usize, usize)>,
    other: Vec<(usize, usize)>,
    /// The parts of both memories before the operation.
    before: [Vec<u8>; 2],
}

/// More than `MAX_HDR_INLINE` of siw, the length up to which it copies data behind its header.
const COPIED_BY_SIW: usize = 64;

/// Returns whether siw sends other bytes of a list: one short segment that spans two pages
/// (`siw_try_1seg()` takes the numbers of bytes in both for each other).
fn is_mixed_up_by_siw(end: &End, pieces: &[(usize, usize)]) -> bool {
    let [(offset, length)] = *pieces else { return false };
    let into_page = end.lmr.buffer().address(offset) as usize % 4096;
    length <= COPIED_BY_SIW && into_page + length > 4096
}

impl fmt::Display for Flow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, length, own, other, .. } = self;
        write!(f, "{operation} of {length} bytes, {own:?} and {other:?}")
    }
}

impl<'a> Flow<'a> {
    /// Fills the part of both memories with random bytes, and chooses the segments.
    pub fn new(
        context: &Context,
        (by, with): (&'a End, &'a End),
        part: Range<usize>,
        operation: DtoOperation,
        length: usize,
    ) -> Result<Self> {
        let attr = by.ep.query()?.raw.attr;
        let most_own = match operation {
            DtoOperation::Send => attr.max_request_iov,
            DtoOperation::RdmaWrite => attr.max_rdma_write_iov,
            _ => attr.max_rdma_read_iov,
        };
        // The peer's memory of RDMA is one segment.
        let most_other = match operation {
            DtoOperation::Send => with.ep.query()?.raw.attr.max_recv_iov,
            _ => 1,
        };
        let random = |end: &End, most: u32| loop {
            let count = context.rng().u32(1..=most.clamp(1, SEGMENTS)) as usize;
            let pieces = pieces_in(context, part.clone(), count, length);
            if !(context.server.is_siw() && is_mixed_up_by_siw(end, &pieces)) {
                break pieces;
            }
        };
        let (own, other) = (random(by, most_own), random(with, most_other));
        let before = [by, with].map(|end| {
            let mut bytes = vec![0; part.len()];
            context.rng().fill(&mut bytes);
            end.lmr.buffer().write(part.start, &bytes);
            bytes
        });
        Ok(Self { by, with, operation, length, part, own, other, before })
    }

    pub fn post(&self) -> Result<()> {
        let Self { by, with, .. } = self;
        let (own, flags) = (segments(by, &self.own), CompletionFlags::default());
        let (offset, length) = self.other.first().copied().unwrap_or_default();
        let remote = with.lmr.remote_segment(offset, length);
        match self.operation {
            DtoOperation::Send => {
                with.ep.post_recv(&segments(with, &self.other), 1, flags)?;
                by.ep.post_send(&own, 2, flags)?;
            }
            // Software iWARP has no RDMA read of no bytes.
            DtoOperation::RdmaRead if self.length == 0 => by.send_nothing(with)?,
            operation => by.ep.post(operation, &own, Some(remote), 2, flags)?,
        }
        Ok(())
    }

    /// Waits for the completions, and compares all bytes of the part in both memories.
    pub fn arrives(self, context: &Context) -> Result<()> {
        let is_read = self.operation == DtoOperation::RdmaRead;
        let sends = self.operation == DtoOperation::Send || (is_read && self.length == 0);
        let operation = if sends { DtoOperation::Send } else { self.operation };
        done(&context.next(&self.by.request)?, operation, self.length as u64, 2)?;
        if sends {
            let event = context.next(&self.with.recv)?;
            done(&event, DtoOperation::Receive, self.length as u64, 1)?;
        }
        let expected = self.expected();
        // Over iWARP a write may still be on its way.
        context.until("all bytes have arrived", || Ok(self.memory() == expected))?;
        ensure!(self.by.ep.status()?.request_idle, "a request is outstanding");
        Ok(())
    }

    fn memory(&self) -> [Vec<u8>; 2] {
        [self.by, self.with].map(|end| end.lmr.buffer().to_vec(self.part.start, self.part.len()))
    }

    /// Returns the parts of both memories after the operation.
    fn expected(&self) -> [Vec<u8>; 2] {
        let within = |pieces: &[(usize, usize)]| -> Vec<_> {
            pieces.iter().map(|(offset, length)| (offset - self.part.start, *length)).collect()
        };
        let (own, other) = (within(&self.own), within(&self.other));
        let [mut mine, mut theirs] = self.before.clone();
        match self.operation {
            DtoOperation::RdmaRead => scatter(&mut mine, &own, &collect(&theirs, &other)),
            _ => scatter(&mut theirs, &other, &collect(&mine, &own)),
        }
        [mine, theirs]
    }
}

/// Distributes `bytes` over pieces of `memory`.
fn scatter(memory: &mut [u8], pieces: &[(usize, usize)], mut bytes: &[u8]) {
    for (offset, length) in pieces {
        let (now, rest) = bytes.split_at(*length);
        memory[*offset..offset + length].copy_from_slice(now);
        bytes = rest;
    }
}

impl End {
    /// Sends a message of no bytes.
    fn send_nothing(&self, to: &Self) -> Result<()> {
        to.ep.post_recv(&[], 1, CompletionFlags::default())?;
        Ok(self.ep.post_send(&[], 2, CompletionFlags::default())?)
    }
}

/// Sends a message in each direction.
pub fn converse(context: &Context, pair: &Pair) -> Result<()> {
    for (from, to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
        to.receive(0, 64, 1)?;
        from.send(64, 64, 2)?;
        done(&context.next(&to.recv)?, DtoOperation::Receive, 64, 1)?;
        done(&context.next(&from.request)?, DtoOperation::Send, 64, 2)?;
    }
    Ok(())
}
