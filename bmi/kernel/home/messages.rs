// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages to peers, and the buffers that they are sent from.
//!
//! The connections over a device share its buffers, of which there are as many as messages were on
//! their way at the same time.

use super::{
    devices::Device,
    KernelHome,
    Report,
    Request,
    Work, //
};
use crate::{
    engine::{
        encode_descriptor,
        encode_group,
        Body,
        Cookie,
        Groups,
        Header,
        OpId,
        Place,
        RailId,
        HEADER, //
    },
    options::Options, //
};
use kdat::{
    kind,
    Buffer,
    Dto,
    Pz,
    Refused, //
};
use kernel::prelude::*;

/// Bytes of a buffer for messages without payload.
const SMALL: usize = 256;

/// Bytes that are registered together.
const CHUNK: usize = 256 * 1024;

/// Bytes of a descriptor, and of the head of a group of them.
const ENTRY: usize = size_of::<kdat::Remote>();

/// The send buffers of a device that are free.
pub(super) struct Messages {
    small: KVVec<Buffer>,
    large: KVVec<Buffer>,
    size: usize,
}

impl Messages {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            small: KVVec::new(),
            large: KVVec::new(),
            size: (options.message as usize).max(SMALL),
        }
    }

    fn take(&mut self, pz: &Pz, length: usize) -> kdat::Result<Buffer> {
        let (free, size) = match length > SMALL {
            true => (&mut self.large, self.size),
            false => (&mut self.small, SMALL),
        };
        if free.is_empty() {
            for buffer in pz.buffers((CHUNK / size).max(1), size)? {
                free.push(buffer, GFP_KERNEL)?;
            }
        }
        match free.pop() {
            Some(buffer) => Ok(buffer),
            None => pz.buffer(size),
        }
    }

    /// Gives back a buffer, or drops it if there is no memory for the list.
    pub(super) fn give_back(&mut self, buffer: Buffer) {
        let free = match buffer.len() > SMALL {
            true => &mut self.large,
            false => &mut self.small,
        };
        let _ = free.push(buffer, GFP_KERNEL);
    }
}

impl KernelHome {
    /// Posts a message. Returns whether it was posted.
    pub(super) fn send_message(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        header: &Header,
        body: Body,
    ) -> bool {
        // The event of the connection's end follows, after the messages that came before it.
        let ends = |error: kdat::Error| error.kind() == kind::INVALID_STATE;
        let posted = self.post_message(rail, cookie, header, body);
        if posted.is_err_and(|error| !ends(error)) {
            self.report(Report::Completed(rail, cookie, false));
        }
        posted.is_ok_and(|posted| posted)
    }

    fn post_message(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        header: &Header,
        body: Body,
    ) -> kdat::Result<bool> {
        let length = HEADER + self.body_length(header, body);
        let Some(device) = self.connections.device(rail) else {
            // Its end is reported.
            return Ok(false);
        };
        let Device {
            messages, adapter, ..
        } = self.devices.get_mut(device);
        let mut buffer = messages.take(&adapter.pz, length)?;
        self.fill(&mut buffer, header, body);
        let work = Work::Last(cookie);
        let request = self.requests.insert(Request { rail, work })?;
        let dto = Dto::send(buffer, length).context(request);
        let Some(ep) = self.connections.ep(rail) else {
            self.requests.remove(request);
            return Ok(false);
        };
        ep.post(dto).map_err(|Refused { error, buffer, .. }| {
            self.requests.remove(request);
            self.free_message(device, buffer);
            error
        })?;
        Ok(true)
    }

    fn body_length(&self, header: &Header, body: Body) -> usize {
        match body {
            Body::Empty => 0,
            Body::Payload(_) => header.length as usize,
            Body::Descriptors(op, groups) => {
                let count = |(device, _)| self.exposures.segments(Place { op, device }).len();
                let entries = groups
                    .devices()
                    .map(|group| count(group) + usize::from(groups.named));
                entries.sum::<usize>() * ENTRY
            }
        }
    }

    /// Writes a message to a buffer, which has room for it.
    fn fill(&self, buffer: &mut [u8], header: &Header, body: Body) {
        let Some((start, rest)) = buffer.split_at_mut_checked(HEADER) else {
            return;
        };
        start.copy_from_slice(&header.encode());
        match body {
            Body::Empty => {}
            Body::Payload(op) => self.fill_payload(rest, op, header.length as usize),
            Body::Descriptors(op, groups) => self.fill_descriptors(rest, op, groups, header.length),
        }
    }

    /// Writes the descriptors of an operation's exposed memory, for a message of `length` bytes.
    fn fill_descriptors(&self, to: &mut [u8], op: OpId, groups: Groups, length: u64) {
        let mut places = to.chunks_exact_mut(ENTRY);
        let mut put = |entry: [u8; ENTRY]| {
            if let Some(place) = places.next() {
                place.copy_from_slice(&entry);
            }
        };
        for (device, rails) in groups.devices() {
            let place = Place { op, device };
            if groups.named {
                put(encode_group(
                    rails,
                    self.exposures.segments(place).len() as u16,
                ));
            }
            for descriptor in self.exposures.descriptors(place, rails, length) {
                put(encode_descriptor(descriptor));
            }
        }
    }

    fn fill_payload(&self, to: &mut [u8], op: OpId, length: usize) {
        if let (Some(held), Some(to)) = (self.held(op), to.get_mut(..length)) {
            held.read(to);
        }
    }

    /// Takes back the buffer of a message.
    pub(crate) fn free_message(&mut self, device: u8, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer {
            self.devices.get_mut(device).messages.give_back(buffer);
        }
    }
}
