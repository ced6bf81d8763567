// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages to peers, and the buffers that they are sent from.
//!
//! All connections share the buffers, of which there are as many as messages were on their way at
//! the same time. If no memory can be registered for another buffer, messages wait for one of the
//! others, in their order.

use super::buffers::Buffers;
use super::{Adapter, DatHome, Report, Request, SILENT};
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

/// A message that was posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) cookie: Cookie,
    pub(crate) slot: Slot,
}

/// A message that waits for a buffer.
struct Waiting {
    rail: RailId,
    cookie: Cookie,
    start: Vec<u8>,
    payload: Option<(OpId, usize)>,
}

impl Waiting {
    fn length(&self) -> usize {
        self.start.len() + self.payload.map_or(0, |(_, length)| length)
    }
}

/// The send buffers of a device.
pub(super) struct Messages {
    device: u8,
    small: Buffers,
    large: Buffers,
    waiting: VecDeque<Waiting>,
    /// Posted messages that are signalled.
    signalled: usize,
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
            signalled: 0,
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
    /// Posts a message, or lets it wait for a buffer. Returns whether it was posted.
    pub(super) fn send_message(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        header: &Header,
        body: Body,
    ) -> bool {
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
        let Some(device) = self.connections.device(rail) else { return false };
        let message = Waiting { rail, cookie, start, payload };
        let Device { messages, adapter, .. } = self.devices.get_mut(device);
        if messages.waiting.is_empty() {
            if let Ok(slot) = messages.take(adapter, message.length()) {
                let signalled = !self.may_be_unsignalled(&message, slot);
                return self.post_message(&message, slot, signalled);
            }
        }
        self.devices.get_mut(device).messages.waiting.push_back(message);
        self.send_waiting(device);
        false
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

    /// Posts messages for which there are buffers. They are signalled: each may be an eager one
    /// whose operation completes with its event.
    fn send_waiting(&mut self, device: u8) {
        loop {
            let Device { messages, adapter, .. } = self.devices.get_mut(device);
            let Some(message) = messages.waiting.front() else { return };
            let Ok(slot) = messages.take(adapter, message.length()) else {
                // A buffer that is freed is passed on. Without one, nothing would continue.
                if messages.signalled == 0 {
                    self.fail_waiting(device);
                }
                return;
            };
            if let Some(message) = messages.waiting.pop_front() {
                self.post_message(&message, slot, true);
            }
        }
    }

    fn fail_waiting(&mut self, device: u8) {
        for message in self.devices.get_mut(device).messages.waiting.drain(..) {
            self.reports.push_back(Report::Completed(message.rail, message.cookie, false));
        }
    }

    /// Posts a message. Returns whether it was posted.
    fn post_message(&mut self, message: &Waiting, slot: Slot, signalled: bool) -> bool {
        let segment = self.fill(message, slot);
        let (number, flags) = match signalled {
            true => (self.requests.vacant_key() as u64, CompletionFlags::default()),
            false => (SILENT, CompletionFlags::SUPPRESS),
        };
        let posted = self.ep(message.rail).map(|ep| ep.post_send(&[segment], number, flags));
        if let Some(Ok(())) = posted {
            self.posted(message.rail, Sent { cookie: message.cookie, slot }, signalled);
            return true;
        }
        self.devices.get_mut(slot.device).messages.free(slot);
        // The event of the connection's end follows, after the messages that came before it.
        let ends = |error: libkdapl::Error| error.kind() == Some(Type::INVALID_STATE);
        if posted.is_some_and(|posted| posted.is_err_and(|error| !ends(error))) {
            self.reports.push_back(Report::Completed(message.rail, message.cookie, false));
        }
        false
    }

    /// Returns whether a message needs no event of its own. One with the last free buffer has one,
    /// for messages that wait for a buffer.
    fn may_be_unsignalled(&mut self, message: &Waiting, slot: Slot) -> bool {
        let buffers = self.devices.get_mut(slot.device).messages.buffers(slot.large);
        buffers.has_free() && self.unsignalled.has_room(message.rail, message.cookie.meaning)
    }

    /// Records a message that was posted. The event of a signalled one reports those before it.
    fn posted(&mut self, rail: RailId, sent: Sent, signalled: bool) {
        self.unsignalled.add(rail, sent);
        if signalled {
            self.requests.insert(Request::Messages(rail, self.unsignalled.take(rail)));
            self.devices.get_mut(sent.slot.device).messages.signalled += 1;
        }
    }

    /// Copies a message to a buffer.
    fn fill(&mut self, message: &Waiting, slot: Slot) -> Segment {
        let buffers = self.devices.get_mut(slot.device).messages.buffers(slot.large);
        let (memory, at) = buffers.memory(slot.buffer);
        memory.write(at, &message.start);
        if let Some((op, length)) = message.payload {
            if let Some(held) = self.held.get(&op) {
                held.parts.copy_to(memory, at + HEADER, length);
            }
        }
        buffers.segment(slot.buffer, message.length())
    }

    /// Frees the buffers of messages that were sent, or flushed: of a signalled one, and of those
    /// before it.
    pub(crate) fn messages_ended(&mut self, sent: &[Sent]) {
        if let Some(last) = sent.last() {
            let messages = &mut self.devices.get_mut(last.slot.device).messages;
            messages.signalled = messages.signalled.saturating_sub(1);
        }
        self.free_slots(sent);
    }

    /// Frees the buffers of messages of a rail whose Endpoint was freed, so that no event reports
    /// them.
    pub(super) fn forget_unsignalled(&mut self, rail: RailId) {
        let sent = self.unsignalled.take(rail);
        self.free_slots(&sent);
    }

    /// Frees the buffers of a rail's messages, which are on one device, and passes them on.
    fn free_slots(&mut self, sent: &[Sent]) {
        for Sent { slot, .. } in sent {
            self.devices.get_mut(slot.device).messages.free(*slot);
        }
        if let Some(last) = sent.last() {
            self.send_waiting(last.slot.device);
        }
    }

    /// Returns the bytes that are registered for messages, in both directions.
    pub(crate) fn registered(&self) -> usize {
        self.devices.registered()
    }
}
