// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts of data transfer operations (DTOs).

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    bindings,
    error::{
        to_result,
        Error,
        Result, //
    },
    event::Operation,
    memory::Buffer,
    slots::Posted, //
};
use kernel::prelude::*;
use zerocopy_derive::{
    Immutable,
    KnownLayout, //
};

/// Memory of a peer, as that has told it. Messages may contain this struct.
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

/// DTO to post.
pub struct Dto {
    operation: Operation,
    buffer: Option<Buffer>,
    length: usize,
    context: u64,
    remote: Remote,
    flags: u32,
}

impl Dto {
    fn new(operation: Operation, buffer: Option<Buffer>, length: usize) -> Self {
        Self {
            operation,
            buffer,
            length,
            context: 0,
            remote: Remote::default(),
            flags: bindings::DAT_COMPLETION_DEFAULT_FLAG,
        }
    }

    /// Sends the first `length` bytes of a buffer.
    pub fn send(buffer: Buffer, length: usize) -> Self {
        Self::new(Operation::Send, Some(buffer), length)
    }

    /// Sends a message without data.
    pub fn empty_send() -> Self {
        Self::new(Operation::Send, None, 0)
    }

    /// Receives a message into a buffer.
    pub fn receive(buffer: Buffer) -> Self {
        let length = buffer.len();
        Self::new(Operation::Receive, Some(buffer), length)
    }

    /// Writes the first `length` bytes of a buffer to memory of the peer.
    pub fn write(buffer: Buffer, length: usize, remote: Remote) -> Self {
        Self {
            remote,
            ..Self::new(Operation::Write, Some(buffer), length)
        }
    }

    /// Reads `length` bytes of the peer's memory into a buffer.
    pub fn read(buffer: Buffer, length: usize, remote: Remote) -> Self {
        Self {
            remote,
            ..Self::new(Operation::Read, Some(buffer), length)
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

    /// Returns the segment of the buffer. Without a buffer it is empty.
    fn segment(&self) -> Result<bindings::DAT_LMR_TRIPLET> {
        match &self.buffer {
            Some(buffer) => buffer.segment(self.length),
            None => Ok(bindings::DAT_LMR_TRIPLET::default()),
        }
    }

    /// Returns the C form, with the segment at `local`.
    fn raw(&self, local: *const bindings::DAT_LMR_TRIPLET, cookie: u64) -> bindings::DAT_LIST_DTO {
        bindings::DAT_LIST_DTO {
            operation: match self.operation {
                Operation::Send => bindings::DAT_DTO_SEND,
                Operation::Write => bindings::DAT_DTO_RDMA_WRITE,
                Operation::Read => bindings::DAT_DTO_RDMA_READ,
                Operation::Receive => bindings::DAT_DTO_RECEIVE,
                Operation::Other(number) => number,
            },
            flags: self.flags,
            segments: i32::from(self.buffer.is_some()),
            local,
            cookie: bindings::DAT_DTO_COOKIE { as_64: cookie },
            remote: bindings::DAT_RMR_TRIPLET {
                virtual_address: self.remote.address,
                segment_length: self.remote.length,
                rmr_context: self.remote.context,
            },
        }
    }
}

/// DTO that was refused, with its buffer.
pub struct Refused {
    /// Reason.
    pub error: Error,
    /// Buffer of the DTO.
    pub buffer: Option<Buffer>,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

impl From<Refused> for kernel::error::Error {
    fn from(refused: Refused) -> Self {
        refused.error.into()
    }
}

/// Hands the buffer of a DTO to the table of the adapter, and returns the cookie.
fn hand_over(adapter: &Adapter, owner: Handle, dto: &mut Dto) -> Result<u64> {
    let posted = Posted {
        owner,
        buffer: dto.buffer.take(),
        context: dto.context,
    };
    adapter
        .slots
        .lock()
        .insert(posted)
        .map_err(|(error, posted)| {
            dto.buffer = posted.buffer;
            error
        })
}

/// Takes the buffer of a refused DTO back. After a close of the adapter there is none.
fn take_back(adapter: &Adapter, dto: &mut Dto, cookie: u64) {
    let posted = adapter.slots.lock().take(cookie);
    dto.buffer = posted.and_then(|posted| posted.buffer);
}

/// Posts a receive of a Shared Receive Queue.
pub(crate) fn post_to_srq(
    adapter: &Adapter,
    srq: Handle,
    buffer: Buffer,
    context: u64,
) -> Result<(), Refused> {
    let mut dto = Dto::receive(buffer).context(context);
    let posted = dto.segment().and_then(|segment| {
        let cookie = hand_over(adapter, srq, &mut dto)?;
        let as_64 = bindings::DAT_DTO_COOKIE { as_64: cookie };
        // SAFETY: The segment is valid for reads during the call. Its memory belongs to the table
        // until the event of the receive, or until the queue was freed.
        let ret = unsafe { bindings::dat_srq_post_recv(srq.raw(), 1, &raw const segment, as_64) };
        to_result(ret).inspect_err(|_| take_back(adapter, &mut dto, cookie))
    });
    posted.map_err(|error| Refused {
        error,
        buffer: dto.buffer.take(),
    })
}

/// Posts one DTO to an Endpoint.
pub(crate) fn post(adapter: &Adapter, ep: Handle, mut dto: Dto) -> Result<(), Refused> {
    let posted = dto.segment().and_then(|segment| {
        let mut raw = dto.raw(&raw const segment, 0);
        raw.cookie.as_64 = hand_over(adapter, ep, &mut dto)?;
        // SAFETY: The DTO and its segment are valid for reads during the call. Its memory belongs
        // to the table until its event, or until the Endpoint was freed.
        let ret = unsafe {
            bindings::kdapl_ep_post_list(ep.raw(), 1, &raw const raw, core::ptr::null_mut())
        };
        // SAFETY: The cookie is a number.
        let cookie = unsafe { raw.cookie.as_64 };
        to_result(ret).inspect_err(|_| take_back(adapter, &mut dto, cookie))
    });
    posted.map_err(|error| Refused {
        error,
        buffer: dto.buffer.take(),
    })
}

/// Posts DTOs to an Endpoint, in their order, up to the first that is refused. Those that were
/// posted are taken out of `dtos`.
pub(crate) fn post_list(adapter: &Adapter, ep: Handle, dtos: &mut KVec<Dto>) -> Result {
    let number = dtos.len();
    let mut segments = KVec::with_capacity(number, GFP_KERNEL)?;
    for dto in dtos.iter() {
        segments.push(dto.segment()?, GFP_KERNEL)?;
    }
    let mut list: KVec<bindings::DAT_LIST_DTO> = KVec::with_capacity(number, GFP_KERNEL)?;
    let mut prepared = Ok(());
    for (dto, segment) in dtos.iter_mut().zip(&segments) {
        let mut raw = dto.raw(core::ptr::from_ref(segment), 0);
        prepared = hand_over(adapter, ep, dto).and_then(|cookie| {
            raw.cookie.as_64 = cookie;
            Ok(list.push(raw, GFP_KERNEL)?)
        });
        if prepared.is_err() {
            break;
        }
    }
    let mut posted = 0;
    let outcome = prepared.and_then(|()| {
        // SAFETY: The list and its segments are valid for reads during the call. The memory belongs
        // to the table, as in `post`.
        to_result(unsafe {
            bindings::kdapl_ep_post_list(
                ep.raw(),
                i32::try_from(number).unwrap_or(i32::MAX),
                list.as_ptr(),
                &raw mut posted,
            )
        })
    });
    let posted = usize::try_from(posted).unwrap_or(0);
    for (dto, raw) in dtos.iter_mut().zip(&list).skip(posted) {
        // SAFETY: The cookie is a number.
        take_back(adapter, dto, unsafe { raw.cookie.as_64 });
    }
    for _ in 0..posted {
        let _ = dtos.remove(0);
    }
    outcome
}
