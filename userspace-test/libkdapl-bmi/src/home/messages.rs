// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages to peers, and the buffers that they are sent from.
//!
//! All connections share the buffers, of which there are as many as messages were on their way at
//! the same time. If no memory can be registered for another buffer, messages wait for one of the
//! others, in their order.

use super::buffers::Buffers;
use super::{Adapter, DatHome, Report, Request};
use crate::bmi::engine::{
    encode_descriptor, Body, Cookie, Descriptor, Header, OpId, RailId, HEADER,
};
use crate::options::Options;
use libkdapl::{CompletionFlags, Privileges, Segment, Type};
use std::collections::VecDeque;

/// Bytes of a buffer for messages without payload.
const SMALL: usize = 256;

/// Bytes that are registered together.
const CHUNK: usize = 256 * 1024;

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
        let buffers = |size| Buffers::new(size, (CHUNK / size).max(1), Privileges::LOCAL_READ);
        Self { small: buffers(SMALL), large: buffers(large), waiting: VecDeque::new(), sent: 0 }
    }

    fn buffers(&mut self, large: bool) -> &mut Buffers {
        match large {
            true => &mut self.large,
            false => &mut self.small,
        }
    }

    fn take(&mut self, adapter: &Adapter, length: usize) -> libkdapl::Result<Slot> {
        let large = length > SMALL;
        Ok(Slot { large, buffer: self.buffers(large).take(adapter)? })
    }

    fn free(&mut self, slot: Slot) {
        self.buffers(slot.large).free(slot.buffer);
    }

    /// Returns the registered bytes.
    pub(super) fn bytes(&self) -> usize {
        self.small.bytes() + self.large.bytes()
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
    fn fill(&mut self, message: &Waiting, slot: Slot, length: usize) -> Segment {
        let buffers = self.messages.buffers(slot.large);
        let (memory, at) = buffers.memory(slot.buffer);
        memory.write(at, &message.start);
        if let Some((op, length)) = message.payload {
            if let Some(held) = self.held.get(&op) {
                held.parts.copy_to(memory, at + HEADER, length);
            }
        }
        buffers.segment(slot.buffer, length)
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
