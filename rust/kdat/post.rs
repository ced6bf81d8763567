// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts of data transfer operations (DTOs).

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    batch::Batch,
    bindings,
    dto::Dto,
    error::{
        to_result,
        Error,
        Result, //
    },
    memory::Buffer,
    shared::Part,
    slots::Posted,
    transfer::{
        self,
        Memory, //
    }, //
};
use kernel::prelude::*;

/// DTO that was refused, with its memory. It has none of it if a part of its transfer was posted,
/// or if its Endpoint was freed during the call: the memory is dropped with the Endpoint then.
pub struct Refused {
    /// Reason.
    pub error: Error,
    /// Buffer of the DTO.
    pub buffer: Option<Buffer>,
    /// Buffers that [`Dto::with`] has added.
    pub more: KVec<Buffer>,
    /// Parts of memory that this side shares with its peers.
    pub parts: KVec<Part>,
    /// Memory that [`Dto::carrying`] or [`Dto::read_memory`] has.
    pub memory: Option<KBox<dyn Memory>>,
}

impl Refused {
    pub(crate) fn new(error: Error, dto: Dto) -> Self {
        Self {
            error,
            buffer: dto.buffer,
            more: dto.more,
            parts: dto.parts,
            memory: dto.memory,
        }
    }
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

/// Hands the buffers of a DTO to the table of the adapter, and returns the cookie.
pub(crate) fn hand_over(
    adapter: &Adapter,
    owner: Handle,
    dto: &mut Dto,
) -> Result<bindings::DAT_DTO_COOKIE> {
    let posted = || Posted {
        buffer: dto.buffer.take(),
        more: core::mem::replace(&mut dto.more, KVec::new()),
        parts: core::mem::replace(&mut dto.parts, KVec::new()),
        memory: dto.memory.take(),
        context: dto.context,
        ..Posted::default()
    };
    let as_64 = adapter.slots.insert(owner, posted)?;
    Ok(bindings::DAT_DTO_COOKIE { as_64 })
}

/// Takes the buffers of a refused DTO back. Returns whether they were there. They are not after a
/// free of the Endpoint, or a close of the adapter, has dropped them.
pub(crate) fn take_back(
    adapter: &Adapter,
    dto: &mut Dto,
    cookie: bindings::DAT_DTO_COOKIE,
) -> bool {
    // SAFETY: The cookie is a number.
    let Some(posted) = adapter.slots.take(unsafe { cookie.as_64 }) else {
        return false;
    };
    dto.buffer = posted.buffer;
    dto.more = posted.more;
    dto.parts = posted.parts;
    dto.memory = posted.memory;
    true
}

/// Posts one DTO by a call of DAT, which gets its C form.
#[inline]
fn post_by(
    adapter: &Adapter,
    owner: Handle,
    dto: &mut Dto,
    call: impl FnOnce(&bindings::DAT_LIST_DTO) -> u32,
) -> Result {
    let (only, several);
    let segments = match dto.only_buffer() {
        Some(buffer) => {
            only = [buffer.segment()?];
            only.as_slice()
        }
        None => {
            several = dto.segments()?;
            several.as_slice()
        }
    };
    let mut raw = dto.raw(segments);
    raw.cookie = hand_over(adapter, owner, dto)?;
    to_result(call(&raw)).inspect_err(|_| {
        take_back(adapter, dto, raw.cookie);
    })
}

/// Posts a receive of a Shared Receive Queue.
pub(crate) fn post_to_srq(
    adapter: &Adapter,
    srq: Handle,
    buffer: Buffer,
    context: u64,
) -> Result<(), Refused> {
    let mut dto = Dto::receive(buffer).context(context);
    let posted = post_by(adapter, srq, &mut dto, |raw| {
        // SAFETY: The segment is valid for reads during the call. Its memory belongs to the table
        // until the event of the receive, or until the queue was freed.
        unsafe { bindings::dat_srq_post_recv(srq.raw(), raw.segments, raw.local, raw.cookie) }
    });
    posted.map_err(|error| Refused::new(error, dto))
}

/// Posts one DTO to an Endpoint. A DTO that is refused keeps its memory.
#[inline]
pub(crate) fn post(adapter: &Adapter, ep: Handle, dto: &mut Dto) -> Result {
    if let Some(remote) = dto.transfer {
        return transfer::post(adapter, ep, dto, remote);
    }
    post_by(adapter, ep, dto, |raw| {
        // SAFETY: The DTO and its segments are valid for reads during the call. Their memory
        // belongs to the table until the event of the DTO, or until the Endpoint was freed.
        unsafe { bindings::kdapl_ep_post_list(ep.raw(), 1, raw, core::ptr::null_mut()) }
    })
}

/// Converts DTOs to their C form, as many as there is room for, and gives their buffers to the
/// adapter's table. Stops at the first error; the remaining DTOs keep their buffers.
fn prepare(adapter: &Adapter, ep: Handle, dtos: &mut [Dto], batch: &mut Batch) -> Result {
    for dto in dtos {
        let segments = dto.segments()?;
        let segments = segments.as_slice();
        if !batch.has_room(segments.len()) {
            break;
        }
        let mut raw = dto.raw(segments);
        raw.cookie = hand_over(adapter, ep, dto)?;
        batch.push(raw, segments);
    }
    Ok(())
}

/// Posts DTOs to an Endpoint, in their order, up to the first that is refused. Those that were
/// posted are taken out of `dtos`, and those whose buffers a free of the Endpoint has dropped
/// during the call. A transfer of memory is LENGTH_ERROR here: post it alone.
pub(crate) fn post_list(adapter: &Adapter, ep: Handle, dtos: &mut KVec<Dto>) -> Result {
    if dtos.iter().any(|dto| dto.transfer.is_some()) {
        return Err(Error::new(bindings::DAT_LENGTH_ERROR, 0));
    }
    let (mut done, mut outcome) = (0, Ok(()));
    while outcome.is_ok() && done < dtos.len() {
        let left = dtos.get_mut(done..).unwrap_or_default();
        let mut batch = Batch::default();
        let prepared = prepare(adapter, ep, left, &mut batch);
        let (posted, refused) = batch.post(ep);
        let back = left.iter_mut().zip(batch.dtos()).skip(posted);
        let are_back = back.fold(true, |all, (dto, raw)| {
            take_back(adapter, dto, raw.cookie) && all
        });
        done += if are_back { posted } else { batch.dtos().len() };
        outcome = refused.and(prepared);
    }
    let mut number = 0;
    dtos.retain(|_| {
        number += 1;
        number > done
    });
    outcome
}
