// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages to peers, and the buffers that they are sent from.
//!
//! All connections share the buffers, of which there are as many as messages were on their way at
//! the same time.

use super::{
    KernelHome,
    Report,
    Request,
    Work, //
};
use crate::{
    engine::{
        encode_descriptor,
        Body,
        Cookie,
        Header,
        OpId,
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

/// The send buffers that are free.
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
    /// Posts a message.
    pub(super) fn send_message(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        header: &Header,
        body: Body,
    ) {
        // The event of the connection's end follows, after the messages that came before it.
        let ends = |error: kdat::Error| error.kind() == kind::INVALID_STATE;
        let posted = self.post_message(rail, cookie, header, body);
        if posted.is_err_and(|error| !ends(error)) {
            self.report(Report::Completed(rail, cookie, false));
        }
    }

    fn post_message(
        &mut self,
        rail: RailId,
        cookie: Cookie,
        header: &Header,
        body: Body,
    ) -> kdat::Result {
        let length = HEADER + self.body_length(header, body);
        let mut buffer = self.messages.take(&self.adapter.pz, length)?;
        self.fill(&mut buffer, header, body);
        let work = Work::Last(cookie);
        let number = self.requests.insert(Request { rail, work })?;
        let dto = Dto::send(buffer, length).context(number);
        let Some(ep) = self.connections.ep(rail) else {
            // Its end is reported.
            self.requests.remove(number);
            return Ok(());
        };
        ep.post(dto).map_err(|Refused { error, buffer, .. }| {
            self.requests.remove(number);
            if let Some(buffer) = buffer {
                self.messages.give_back(buffer);
            }
            error
        })
    }

    fn body_length(&self, header: &Header, body: Body) -> usize {
        match body {
            Body::Empty => 0,
            Body::Payload(_) => header.length as usize,
            Body::Descriptors(op, _) => {
                self.exposures.segments(op).len() * size_of::<kdat::Remote>()
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
            Body::Descriptors(op, _) => {
                let descriptors = self.exposures.descriptors(op, header.length);
                let places = rest.chunks_exact_mut(size_of::<kdat::Remote>());
                for (place, descriptor) in places.zip(descriptors) {
                    place.copy_from_slice(&encode_descriptor(descriptor));
                }
            }
        }
    }

    fn fill_payload(&self, to: &mut [u8], op: OpId, length: usize) {
        if let (Some(held), Some(to)) = (self.held(op), to.get_mut(..length)) {
            held.read(to);
        }
    }

    /// Takes back the buffer of a message.
    pub(crate) fn free_message(&mut self, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer {
            self.messages.give_back(buffer);
        }
    }
}
