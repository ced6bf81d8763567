// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages to peers, and the buffers that they are sent from.
//!
//! All connections share the buffers, of which there are as many as messages were on their way at
//! the same time. If no memory can be registered for another buffer, messages wait for one of the
//! others, in their order.

use super::buffers::Buffers;
use super::{Adapter, DatHome, Report, Request};
use crate::bmi::engine::{
    encode_descriptor, encode_group, Body, Cookie, Descriptor, Groups, Header, OpId, Place, RailId,
    HEADER,
};
use crate::home::Device;
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
    device: u8,
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

/// The send buffers of a device.
pub(super) struct Messages {
    device: u8,
    small: Buffers,
    large: Buffers,
    waiting: VecDeque<Waiting>,
    /// Messages that are posted, and whose buffers are freed.
    sent: usize,
}

impl Messages {
    pub(super) fn new(device: u8, options: &Options) -> Self {
        let large = (options.message as usize).max(SMALL);
        let buffers = |size| Buffers::new(size, (CHUNK / size).max(1), Privileges::LOCAL_READ);
        Self {
            device,
            small: buffers(SMALL),
            large: buffers(large),
            waiting: VecDeque::new(),
            sent: 0,
        }
    }

    fn buffers(&mut self, large: bool) -> &mut Buffers {
        match large {
            true => &mut self.large,
            false => &mut self.small,
        }
    }

    fn take(&mut self, adapter: &Adapter, length: usize) -> libkdapl::Result<Slot> {
        let large = length > SMALL;
        let buffer = self.buffers(large).take(adapter)?;
        Ok(Slot { device: self.device, large, buffer })
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
            Body::Descriptors(op, groups) => {
                self.describe(op, groups, header.length, &mut start);
                None
            }
        };
        // Without a device, the end of the rail is reported.
        let Some(device) = self.connections.device(rail) else { return };
        let waiting = &mut self.devices.get_mut(device).messages.waiting;
        waiting.push_back(Waiting { rail, cookie, start, payload });
        self.send_waiting(device);
    }

    /// Appends the descriptors of an operation's exposed memory, for a message of `length` bytes.
    fn describe(&self, op: OpId, groups: Groups, length: u64, to: &mut Vec<u8>) {
        for (device, rails) in groups.devices() {
            let segments = self.exposures.segments(Place { op, device });
            if groups.named {
                to.extend(encode_group(rails, segments.len() as u16));
            }
            let mut left = length;
            for Segment { address, length, context } in segments {
                let length = u64::from(length).min(left) as u32;
                left -= u64::from(length);
                to.extend(encode_descriptor(Descriptor { address, length, context, rails }));
            }
        }
    }

    /// Posts messages for which there are buffers.
    fn send_waiting(&mut self, device: u8) {
        loop {
            let Device { messages, adapter, .. } = self.devices.get_mut(device);
            let Some(message) = messages.waiting.front() else { return };
            let length = message.start.len() + message.payload.map_or(0, |(_, length)| length);
            let Ok(slot) = messages.take(adapter, length) else {
                // A buffer that is freed is passed on. Without one, nothing would continue.
                if messages.sent == 0 {
                    self.fail_waiting(device);
                }
                return;
            };
            if let Some(message) = messages.waiting.pop_front() {
                self.post_message(&message, slot, length);
            }
        }
    }

    fn fail_waiting(&mut self, device: u8) {
        for message in self.devices.get_mut(device).messages.waiting.drain(..) {
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
            self.devices.get_mut(slot.device).messages.sent += 1;
            return;
        }
        self.requests.remove(number as usize);
        self.devices.get_mut(slot.device).messages.free(slot);
        // The event of the connection's end follows, after the messages that came before it.
        let ends = |error: libkdapl::Error| error.kind() == Some(Type::INVALID_STATE);
        if posted.is_some_and(|posted| posted.is_err_and(|error| !ends(error))) {
            self.reports.push_back(Report::Completed(message.rail, message.cookie, false));
        }
    }

    /// Copies a message to a buffer.
    fn fill(&mut self, message: &Waiting, slot: Slot, length: usize) -> Segment {
        let buffers = self.devices.get_mut(slot.device).messages.buffers(slot.large);
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
        let messages = &mut self.devices.get_mut(slot.device).messages;
        messages.free(slot);
        messages.sent = messages.sent.saturating_sub(1);
        if !messages.waiting.is_empty() {
            self.send_waiting(slot.device);
        }
    }

    /// Returns the bytes that are registered for messages, in both directions.
    pub(crate) fn registered(&self) -> usize {
        self.devices.registered()
    }
}
