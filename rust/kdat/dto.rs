// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Data transfer operations (DTOs) to post.

use crate::{
    bindings,
    error::{
        Error,
        Result, //
    },
    event::Operation,
    memory::Buffer,
    pz::Pz,
    shared::Part,
    transfer::Memory, //
};
use kernel::prelude::*;
use zerocopy_derive::{
    Immutable,
    KnownLayout, //
};

/// Memory of a peer, as the peer has described it in a message. Messages may contain this struct.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Remote {
    /// Address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub length: u32,
    /// RMR context.
    pub context: u32,
}

/// Largest number of segments of a DTO.
pub const MAX_SEGMENTS: usize = 16;

/// Segments of a DTO.
#[derive(Default)]
pub(crate) struct Segments {
    array: [bindings::DAT_LMR_TRIPLET; MAX_SEGMENTS],
    number: usize,
}

impl Segments {
    pub(crate) fn as_slice(&self) -> &[bindings::DAT_LMR_TRIPLET] {
        self.array.get(..self.number).unwrap_or_default()
    }
}

/// DTO to post.
pub struct Dto {
    pub(crate) operation: Operation,
    pub(crate) buffer: Option<Buffer>,
    pub(crate) more: KVec<Buffer>,
    pub(crate) parts: KVec<Part>,
    pub(crate) context: u64,
    remote: Remote,
    flags: u32,
    /// RMR context of the peer that a send invalidates.
    invalidate: Option<u32>,
    pub(crate) memory: Option<KBox<dyn Memory>>,
    /// Memory of the peer that `memory` is moved from or to.
    pub(crate) transfer: Option<Remote>,
}

impl Dto {
    fn new(operation: Operation, buffer: Option<Buffer>) -> Self {
        Self {
            operation,
            buffer,
            more: KVec::new(),
            parts: KVec::new(),
            context: 0,
            remote: Remote::default(),
            flags: bindings::DAT_COMPLETION_DEFAULT_FLAG,
            invalidate: None,
            memory: None,
            transfer: None,
        }
    }

    /// Sends the first `length` bytes of a buffer.
    pub fn send(buffer: Buffer, length: usize) -> Self {
        Self::new(Operation::Send, Some(buffer.using(length)))
    }

    /// Receives a message into a buffer.
    pub fn receive(buffer: Buffer) -> Self {
        let length = buffer.len();
        Self::new(Operation::Receive, Some(buffer.using(length)))
    }

    /// Writes the first `length` bytes of a buffer to memory of the peer.
    pub fn write(buffer: Buffer, length: usize, remote: Remote) -> Self {
        Self {
            remote,
            ..Self::new(Operation::Write, Some(buffer.using(length)))
        }
    }

    /// Reads `length` bytes of the peer's memory into a buffer.
    pub fn read(buffer: Buffer, length: usize, remote: Remote) -> Self {
        Self {
            remote,
            ..Self::new(Operation::Read, Some(buffer.using(length)))
        }
    }

    /// Reads memory of the peer into `memory`, all of it: as several RDMA reads if it has more
    /// pieces than a DTO may have. There is one completion, after the last.
    pub fn read_memory(memory: KBox<dyn Memory>, remote: Remote) -> Self {
        Self {
            memory: Some(memory),
            transfer: Some(remote),
            ..Self::new(Operation::Read, None)
        }
    }

    /// Writes parts of [`Shared`](crate::Shared) memory to memory of the peer.
    pub fn write_parts(parts: KVec<Part>, remote: Remote) -> Self {
        Self {
            parts,
            remote,
            ..Self::new(Operation::Write, None)
        }
    }

    /// Reads memory of the peer into parts of [`Shared`](crate::Shared) memory.
    pub fn read_parts(parts: KVec<Part>, remote: Remote) -> Self {
        Self {
            parts,
            remote,
            ..Self::new(Operation::Read, None)
        }
    }

    /// Gives a send memory, which its completion returns.
    pub fn carrying(self, memory: KBox<dyn Memory>) -> Self {
        Self {
            memory: Some(memory),
            ..self
        }
    }

    /// Writes the memory that a send carries to the peer before the message. The post of another
    /// DTO with this returns INVALID_PARAMETER.
    pub fn after_writing_to(self, remote: Remote) -> Self {
        Self {
            transfer: Some(remote),
            ..self
        }
    }

    /// Returns whether the DTO has a buffer.
    pub(crate) fn has_buffer(&self) -> bool {
        self.buffer.is_some()
    }

    /// Invalidates an RMR context of the peer by a send.
    pub fn invalidating(self, context: u32) -> Self {
        Self {
            invalidate: Some(context),
            ..self
        }
    }

    /// Sets the number that the completion returns.
    pub fn context(self, context: u64) -> Self {
        Self { context, ..self }
    }

    /// Starts the request after the RDMA reads before it.
    pub fn fenced(mut self) -> Self {
        self.flags |= bindings::DAT_COMPLETION_BARRIER_FENCE_FLAG;
        self
    }

    /// Adds the first `length` bytes of another buffer, as a further segment. The attributes of the
    /// Endpoint limit their number, and so does [`MAX_SEGMENTS`]. Context: process; sleeps.
    pub fn with(mut self, buffer: Buffer, length: usize) -> Result<Self> {
        self.more.push(buffer.using(length), GFP_KERNEL)?;
        Ok(self)
    }

    /// Adds buffers that another completion has returned, with the lengths that they had, or that
    /// [`Buffer::using`] has set.
    pub fn with_all(self, more: KVec<Buffer>) -> Self {
        Self { more, ..self }
    }

    /// Checks that memory to transfer is of a Protection Zone (PZ). The contexts of two zones may
    /// be the same numbers.
    ///
    /// # Errors
    ///
    /// PROTECTION_VIOLATION.
    pub(crate) fn check_zone(&self, pz: &Pz) -> Result {
        let memory = self.memory.as_ref().filter(|_| self.transfer.is_some());
        match memory.and_then(|memory| memory.lmr()) {
            Some(lmr) if !lmr.is_of(pz) => Err(Error::new(bindings::DAT_PROTECTION_VIOLATION, 0)),
            _ => Ok(()),
        }
    }

    /// Returns the buffer if the DTO has one segment, which is that.
    pub(crate) fn only_buffer(&self) -> Option<&Buffer> {
        let is_only = self.more.is_empty() && self.parts.is_empty();
        self.buffer.as_ref().filter(|_| is_only)
    }

    /// Returns the segments.
    pub(crate) fn segments(&self) -> Result<Segments> {
        let mut segments = Segments::default();
        let buffers = Iterator::chain(self.buffer.iter(), self.more.iter()).map(Buffer::segment);
        for segment in Iterator::chain(buffers, self.parts.iter().map(Part::segment)) {
            let too_many = Error::new(bindings::DAT_LENGTH_ERROR, 0);
            *segments.array.get_mut(segments.number).ok_or(too_many)? = segment?;
            segments.number += 1;
        }
        Ok(segments)
    }

    /// Returns the C form, without a cookie. It has the address of the segments.
    pub(crate) fn raw(&self, segments: &[bindings::DAT_LMR_TRIPLET]) -> bindings::DAT_LIST_DTO {
        bindings::DAT_LIST_DTO {
            operation: match self.operation {
                Operation::Send if self.invalidate.is_some() => {
                    bindings::KDAPL_DTO_SEND_WITH_INVALIDATE
                }
                Operation::Send => bindings::DAT_DTO_SEND,
                Operation::Write => bindings::DAT_DTO_RDMA_WRITE,
                Operation::Read => bindings::DAT_DTO_RDMA_READ,
                Operation::Receive => bindings::DAT_DTO_RECEIVE,
                Operation::Register => bindings::DAT_DTO_LMR_FMR,
                Operation::Invalidate => bindings::DAT_DTO_LMR_INVALIDATE,
                Operation::Other(number) => number,
            },
            flags: self.flags,
            segments: segments.len() as i32,
            local: segments.as_ptr(),
            cookie: bindings::DAT_DTO_COOKIE { as_64: 0 },
            remote: bindings::DAT_RMR_TRIPLET {
                virtual_address: self.remote.address,
                segment_length: self.remote.length,
                rmr_context: self.invalidate.unwrap_or(self.remote.context),
            },
        }
    }
}
