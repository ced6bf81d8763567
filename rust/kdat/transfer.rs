// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transfers of memory that the consumer owns, described by a scatterlist.
//!
//! A transfer is one RDMA read or write, or several if the list has more entries than a DTO may
//! have segments. Only the last request has a completion, which returns the memory: requests of an
//! Endpoint complete in their order. If an earlier one fails, its event has no memory, and the last
//! is flushed.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    batch::Batch,
    bindings,
    dto::{
        Dto,
        Remote,
        Segments, //
    },
    error::{
        to_result,
        Error,
        Result, //
    },
    memory::LOCAL,
    post::{
        hand_over,
        take_back, //
    },
    pz::Pz, //
};
use core::any::TypeId;
use kernel::{
    bindings::{
        scatterlist,
        sg_next, //
    },
    prelude::*,
    sync::Arc, //
};

/// Largest number of DTOs of a transfer: 1 MiB, if each has one page.
const MAX_PIECES: usize = 256;

/// Cookie of a request that has no slot.
const NO_SLOT: u64 = u64::MAX;

/// Memory of the consumer that is mapped for DTOs: a Local Memory Region (LMR) without remote
/// privileges, whose addresses begin at 0.
pub struct Lmr {
    handle: Handle,
    context: u32,
    /// Lengths of the requests of a transfer.
    lengths: Arc<KVec<u32>>,
    pz: Pz,
}

impl Lmr {
    /// Returns whether the memory is of a Protection Zone.
    pub(crate) fn is_of(&self, pz: &Pz) -> bool {
        Arc::ptr_eq(&self.pz.0, &pz.0)
    }

    /// Maps a scatterlist.
    ///
    /// # Safety
    ///
    /// As of [`Pz::map`].
    pub(crate) unsafe fn new(
        pz: &Pz,
        list: *mut scatterlist,
        (entries, length): (u32, u32),
        segments: u32,
    ) -> Result<Self> {
        // SAFETY: By the safety requirement.
        let lengths = unsafe { pieces(list, (entries, length), segments) }?;
        let lengths = Arc::new(lengths, GFP_KERNEL)?;
        let description = bindings::DAT_REGION_DESCRIPTION {
            for_platform: list.cast(),
        };
        let (mut lmr, mut context) = (core::ptr::null_mut(), 0);
        // SAFETY: The list describes at least `length` bytes, as `pieces` has found, and is read
        // during the call. Its memory stays until the LMR was freed, by the safety requirement.
        // The output pointers are valid for writes, or NULL where the header allows it.
        to_result(unsafe {
            bindings::dat_lmr_kcreate(
                pz.0.adapter.ia.raw(),
                bindings::DAT_MEM_TYPE_PLATFORM,
                description,
                length.into(),
                pz.0.handle.raw(),
                LOCAL,
                bindings::DAT_VA_TYPE_ZB,
                bindings::DAT_MEM_OPTIMIZE_DONT_CARE,
                &raw mut lmr,
                &raw mut context,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        })?;
        Ok(Self {
            handle: Handle::from_raw(lmr),
            context,
            lengths,
            pz: pz.clone(),
        })
    }

    /// Returns the number of requests of a transfer.
    pub fn requests(&self) -> usize {
        self.lengths.len()
    }
}

impl Drop for Lmr {
    /// A DTO that names the memory has a [`Memory`] with the LMR until its completion, or until its
    /// Endpoint was freed. So none is in flight.
    fn drop(&mut self) {
        // SAFETY: The call has no pointers. No DTO names the memory, as above.
        unsafe { bindings::kdapl_lmr_free_unused(self.handle.raw()) };
    }
}

/// Splits the first `length` bytes of a list into pieces of up to `segments` entries.
///
/// # Safety
///
/// The list has as many entries.
unsafe fn pieces(
    list: *mut scatterlist,
    (entries, length): (u32, u32),
    segments: u32,
) -> Result<KVec<u32>> {
    let too_long = Error::new(bindings::DAT_LENGTH_ERROR, 0);
    let (mut lengths, mut entry) = (KVec::new(), list);
    let (mut left, mut piece, mut in_piece) = (length, 0, 0);
    for _ in 0..entries {
        if left == 0 || entry.is_null() {
            break;
        }
        // SAFETY: By the safety requirement.
        let size = unsafe { (*entry).length }.min(left);
        (left, piece, in_piece) = (left - size, piece + size, in_piece + 1);
        if in_piece == segments || left == 0 {
            lengths.push(piece, GFP_KERNEL)?;
            (piece, in_piece) = (0, 0);
        }
        // SAFETY: By the safety requirement. The result for the last entry is NULL.
        entry = unsafe { sg_next(entry) };
    }
    if left != 0 || lengths.is_empty() || lengths.len() > MAX_PIECES {
        return Err(too_long);
    }
    Ok(lengths)
}

/// Memory that a DTO takes, and that its completion returns.
///
/// # Safety
///
/// [`Memory::lmr`] returns the same LMR as long as the value is not changed. While the value is in
/// a box, only the owner of the box accesses the memory of the LMR. A drop of the value drops the
/// LMR before the memory. [`Memory::type_id`] is not overridden.
pub unsafe trait Memory: Send + 'static {
    /// Returns the LMR; `None` for a value that has no data to move.
    fn lmr(&self) -> Option<&Lmr>;

    /// Returns the type of the value.
    fn type_id(&self) -> TypeId {
        TypeId::of::<Self>()
    }
}

/// Returns the memory as the type that it has. `None` if that is another one.
pub fn downcast<T: Memory>(memory: KBox<dyn Memory>) -> Option<KBox<T>> {
    if (*memory).type_id() != TypeId::of::<T>() {
        return None;
    }
    let raw: *mut dyn Memory = KBox::into_raw(memory);
    // SAFETY: The box was made of a `KBox<T>`, as its type says.
    Some(unsafe { KBox::from_raw(raw.cast::<T>()) })
}

/// Requests of a transfer, of which each names a part of an LMR.
struct Requests {
    operation: u32,
    remote: Remote,
    context: u32,
    lengths: Arc<KVec<u32>>,
}

impl Requests {
    /// Keeps what the requests need: another thread may drop the memory while they are posted, and
    /// they are refused then.
    fn new(dto: &Dto, remote: Remote, operation: u32) -> Result<Self> {
        let lmr = dto.memory.as_ref().and_then(|memory| memory.lmr());
        let nothing = Error::new(bindings::DAT_LENGTH_ERROR, 0);
        let lmr = lmr.ok_or(nothing)?;
        Ok(Self {
            operation,
            remote,
            context: lmr.context,
            lengths: lmr.lengths.clone(),
        })
    }

    /// Returns the local and the remote segment of each request.
    fn segments(
        &self,
    ) -> impl Iterator<Item = (bindings::DAT_LMR_TRIPLET, bindings::DAT_RMR_TRIPLET)> + '_ {
        let mut offset = 0_u64;
        self.lengths.iter().map(move |length| {
            let local = bindings::DAT_LMR_TRIPLET {
                virtual_address: offset,
                segment_length: *length,
                lmr_context: self.context,
            };
            let remote = bindings::DAT_RMR_TRIPLET {
                virtual_address: self.remote.address.wrapping_add(offset),
                segment_length: *length,
                rmr_context: self.remote.context,
            };
            offset = offset.wrapping_add(u64::from(*length));
            (local, remote)
        })
    }
}

/// Posts DTOs in batches.
struct Poster {
    ep: Handle,
    batch: Batch,
    /// Number of DTOs that were posted.
    posted: usize,
}

impl Poster {
    fn add(
        &mut self,
        dto: bindings::DAT_LIST_DTO,
        segments: &[bindings::DAT_LMR_TRIPLET],
    ) -> Result {
        if !self.batch.has_room(segments.len()) {
            self.flush()?;
        }
        self.batch.push(dto, segments);
        Ok(())
    }

    fn flush(&mut self) -> Result {
        let (posted, outcome) = self.batch.post(self.ep);
        self.posted += posted;
        self.batch = Batch::default();
        outcome
    }
}

/// Posts requests in batches. `last` has the cookie of the transfer. If it is not one of the
/// requests, it is posted after them with these segments.
fn post_all(
    poster: &mut Poster,
    requests: &Requests,
    last: &bindings::DAT_LIST_DTO,
    segments: Option<&Segments>,
) -> Result {
    for (index, (local, remote)) in requests.segments().enumerate() {
        let is_last = segments.is_none() && index + 1 == requests.lengths.len();
        let request = bindings::DAT_LIST_DTO {
            operation: requests.operation,
            flags: match is_last {
                true => last.flags,
                false => bindings::DAT_COMPLETION_SUPPRESS_FLAG,
            },
            cookie: match is_last {
                true => last.cookie,
                false => bindings::DAT_DTO_COOKIE { as_64: NO_SLOT },
            },
            remote,
            ..*last
        };
        poster.add(request, &[local])?;
    }
    if let Some(segments) = segments {
        poster.add(*last, segments.as_slice())?;
    }
    poster.flush()
}

/// Posts the requests that move the memory of a DTO, and the DTO if it is a send.
///
/// If only a part was posted, the memory stays in the table until the Endpoint is freed: there is
/// no completion after which the device has finished with it.
pub(crate) fn post(adapter: &Adapter, ep: Handle, dto: &mut Dto, remote: Remote) -> Result {
    let send = dto.operation == crate::Operation::Send;
    let operation = match dto.operation {
        crate::Operation::Send => bindings::DAT_DTO_RDMA_WRITE,
        crate::Operation::Read if !dto.has_buffer() => bindings::DAT_DTO_RDMA_READ,
        _ => return Err(Error::new(bindings::DAT_INVALID_PARAMETER, 0)),
    };
    let segments = dto.segments()?;
    let requests = Requests::new(dto, remote, operation)?;
    let mut last = dto.raw(segments.as_slice());
    last.cookie = hand_over(adapter, ep, dto)?;
    let mut poster = Poster {
        ep,
        batch: Batch::default(),
        posted: 0,
    };
    let outcome = post_all(&mut poster, &requests, &last, send.then_some(&segments));
    if outcome.is_err() && poster.posted == 0 {
        take_back(adapter, dto, last.cookie);
    }
    outcome
}
