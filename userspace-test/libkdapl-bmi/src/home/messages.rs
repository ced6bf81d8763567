// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages to peers, and the buffers that they are sent from.
//!
//! All connections share the buffers, of which there are as many as messages were on their way at
//! the same time. If no memory can be registered for another buffer, messages wait for one of the
//! others, in their order.

use super::{Adapter, DatHome, Report, Request};
use crate::bmi::engine::{
    encode_descriptor, Body, Cookie, Descriptor, Header, OpId, RailId, HEADER,
};
use crate::options::Options;
use libkdapl::{Buffer, CompletionFlags, Lmr, Privileges, Segment, Type};
use std::collections::VecDeque;

/// Bytes of a buffer for messages without payload.
const SMALL: usize = 256;

/// Bytes that are registered together.
const CHUNK: usize = 256 * 1024;

/// Buffers of one size.
struct Buffers {
    size: usize,
    chunks: Vec<Lmr>,
    free: Vec<usize>,
}

impl Buffers {
    fn new(size: usize) -> Self {
        Self { size, chunks: Vec::new(), free: Vec::new() }
    }

    /// Returns the number of buffers of a chunk.
    fn per_chunk(&self) -> usize {
        (CHUNK / self.size).max(1)
    }

    fn take(&mut self, adapter: &Adapter) -> libkdapl::Result<usize> {
        if self.free.is_empty() {
            let count = self.per_chunk();
            let memory = Buffer::new(count * self.size)?;
            let lmr = adapter.ia.register(&adapter.pz, memory, Privileges::LOCAL_READ)?;
            let first = self.chunks.len() * count;
            self.chunks.push(lmr);
            self.free.extend((first..first + count).rev());
        }
        Ok(self.free.pop().unwrap_or_default())
    }

    /// Returns the registration and the offset of a buffer.
    fn at(&self, buffer: usize) -> (&Lmr, usize) {
        let count = self.per_chunk();
        (&self.chunks[buffer / count], buffer % count * self.size)
    }
}

/// A buffer in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    large: bool,
    buffer: usize,
}

/// A message that waits for a buffer.
struct Waiting {
    rail: RailId,
    cookie: Cookie,
    start: Vec<u8>,
    payload: Option<(OpId, usize)>,
}

/// The send buffers.
pub(super) struct Messages {
    small: Buffers,
    large: Buffers,
    waiting: VecDeque<Waiting>,
    /// Messages that are posted, and whose buffers are freed.
    sent: usize,
}

impl Messages {
    pub(super) fn new(options: &Options) -> Self {
        let large = (options.message as usize).max(SMALL);
        Self {
            small: Buffers::new(SMALL),
            large: Buffers::new(large),
            waiting: VecDeque::new(),
            sent: 0,
        }
    }

    fn take(&mut self, adapter: &Adapter, length: usize) -> libkdapl::Result<Slot> {
        let large = length > SMALL;
        let buffers = if large { &mut self.large } else { &mut self.small };
        Ok(Slot { large, buffer: buffers.take(adapter)? })
    }

    fn at(&self, slot: Slot) -> (&Lmr, usize) {
        let buffers = if slot.large { &self.large } else { &self.small };
        buffers.at(slot.buffer)
    }

    fn free(&mut self, slot: Slot) {
        let buffers = if slot.large { &mut self.large } else { &mut self.small };
        buffers.free.push(slot.buffer);
    }

    /// Returns the registered bytes.
    pub(super) fn bytes(&self) -> usize {
        let of = |buffers: &Buffers| buffers.chunks.len() * buffers.per_chunk() * buffers.size;
        of(&self.small) + of(&self.large)
    }
}

impl DatHome {
    /// Posts a message, or lets it wait for a buffer.
    pub(super) fn send_message(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        header: &Header,
        body: Body,
    ) {
        let mut start = header.encode().to_vec();
        let payload = match body {
            Body::Empty => None,
            Body::Payload(op) => Some((op, header.length as usize)),
            Body::Descriptors(op) => {
                let descriptors = self.descriptors(op, header.length);
                start.extend(descriptors.into_iter().flat_map(encode_descriptor));
                None
            }
        };
        self.messages.waiting.push_back(Waiting { rail, cookie, start, payload });
        self.send_waiting();
    }

    /// Returns the descriptors of an operation's exposed memory, for a message of `length` bytes.
    fn descriptors(&self, op: OpId, length: u64) -> Vec<Descriptor> {
        let mut left = length;
        let exposed = self.exposures.segments(op).into_iter();
        let descriptors = exposed.map(|segment| {
            let length = u64::from(segment.length).min(left);
            left -= length;
            Descriptor { address: segment.address, length: length as u32, context: segment.context }
        });
        descriptors.collect()
    }

    /// Posts messages for which there are buffers.
    fn send_waiting(&mut self) {
        while let Some(message) = self.messages.waiting.front() {
            let length = message.start.len() + message.payload.map_or(0, |(_, length)| length);
            let Ok(slot) = self.messages.take(&self.adapter, length) else {
                // A buffer that is freed is passed on. Without one, nothing would continue.
                if self.messages.sent == 0 {
                    self.fail_waiting();
                }
                return;
            };
            if let Some(message) = self.messages.waiting.pop_front() {
                self.post_message(&message, slot, length);
            }
        }
    }

    fn fail_waiting(&mut self) {
        for message in self.messages.waiting.drain(..) {
            self.reports.push_back(Report::Completed(message.rail, message.cookie, false));
        }
    }

    fn post_message(&mut self, message: &Waiting, slot: Slot, length: usize) {
        let segment = self.fill(message, slot, length);
        let request = Request::Message(message.rail, message.cookie, slot);
        let number = self.requests.insert(request) as u64;
        let ep = self.ep(message.rail);
        let posted = ep.map(|ep| ep.post_send(&[segment], number, CompletionFlags::default()));
        if let Some(Ok(())) = posted {
            self.messages.sent += 1;
            return;
        }
        self.requests.remove(number as usize);
        self.messages.free(slot);
        // The event of the connection's end follows, after the messages that came before it.
        let ends = |error: libkdapl::Error| error.kind() == Some(Type::INVALID_STATE);
        if posted.is_some_and(|posted| posted.is_err_and(|error| !ends(error))) {
            self.reports.push_back(Report::Completed(message.rail, message.cookie, false));
        }
    }

    /// Copies a message to a buffer.
    fn fill(&self, message: &Waiting, slot: Slot, length: usize) -> Segment {
        let (lmr, at) = self.messages.at(slot);
        lmr.buffer().write(at, &message.start);
        if let Some((op, length)) = message.payload {
            if let Some(held) = self.held.get(&op) {
                held.parts.copy_to(lmr.buffer(), at + HEADER, length);
            }
        }
        lmr.segment(at, length)
    }

    /// Frees the buffer of a message that was sent, or flushed.
    pub(crate) fn free_slot(&mut self, slot: Slot) {
        self.messages.free(slot);
        self.messages.sent = self.messages.sent.saturating_sub(1);
        if !self.messages.waiting.is_empty() {
            self.send_waiting();
        }
    }

    /// Returns the bytes that are registered for messages, in both directions.
    pub(crate) fn registered(&self) -> usize {
        self.messages.bytes() + self.receives.bytes()
    }
}
