// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Lists of data transfer operations (DTOs) that are posted in one call.

use super::{
    dto::{
        segments_of,
        unless_atomic, //
    },
    export::{
        count as count_out,
        export,
        In,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        base::Segment,
        ep::{
            Ep,
            NotPosted,
            Operands,
            Post, //
        },
        prelude::*, //
    },
    model::{
        event::Operation,
        handle::KernelHandle, //
    },
    rdma::qp::MAX_CHAIN,
};
use kdapl_bindings as bindings;
use kernel::sync::rcu;

/// Converts a DTO from its C form.
///
/// # Errors
///
/// INVALID_PARAMETER: (operation) for another operation; as for [`segments_of`].
///
/// # Safety
///
/// The list of local segments has as many triplets as the DTO says, unless it is NULL.
unsafe fn describe(dto: &bindings::DAT_LIST_DTO) -> DatResult<Post<'_>> {
    let operation = match dto.operation {
        bindings::DAT_DTO_SEND => Operation::Send,
        bindings::KDAPL_DTO_SEND_WITH_INVALIDATE => Operation::SendWithInvalidate,
        bindings::DAT_DTO_RECEIVE => Operation::Receive,
        bindings::DAT_DTO_RDMA_WRITE => Operation::RdmaWrite,
        bindings::DAT_DTO_RDMA_READ => Operation::RdmaRead,
        _ => return Err(DatError::Invalid(Arg::Operation)),
    };
    Ok(Post {
        operation,
        flags: dto.flags,
        // SAFETY: Every bit pattern is a valid cookie.
        cookie: unsafe { dto.cookie.as_64 },
        // SAFETY: By the safety requirement.
        local: unsafe { segments_of(dto.segments, dto.local) }?,
        remote: remote_of(operation, &dto.remote),
        operands: Operands::default(),
    })
}

/// Returns the memory of the peer that a DTO names. A send with invalidate has only its context.
fn remote_of(operation: Operation, triplet: &bindings::DAT_RMR_TRIPLET) -> Segment {
    let context = triplet.rmr_context;
    let (address, length) = match operation {
        Operation::SendWithInvalidate => (0, 0),
        _ => (triplet.virtual_address, triplet.segment_length),
    };
    Segment {
        address,
        length,
        context,
    }
}

/// Posts DTOs with `post_list`, in their order, up to the first that is refused. Returns the number
/// of DTOs that were posted, and the error of the refused one.
///
/// # Safety
///
/// As for [`describe`], for each DTO.
unsafe fn post_with<E: From<DatError>>(
    list: &[bindings::DAT_LIST_DTO],
    mut post_list: impl FnMut(&[Post<'_>]) -> (usize, Result<(), E>),
) -> (usize, Result<(), E>) {
    if let [dto] = list {
        // SAFETY: By the safety requirement.
        return match unsafe { describe(dto) } {
            Ok(post) => post_list(core::slice::from_ref(&post)),
            Err(error) => (0, Err(E::from(error))),
        };
    }
    let mut done = 0_usize;
    for part in list.chunks(MAX_CHAIN) {
        let mut posts = [Post::NOTHING; MAX_CHAIN];
        let (mut count, mut refused) = (0_usize, Ok(()));
        for (dto, slot) in part.iter().zip(&mut posts) {
            // SAFETY: By the safety requirement.
            match unsafe { describe(dto) } {
                Ok(post) => *slot = post,
                Err(error) => {
                    refused = Err(E::from(error));
                    break;
                }
            }
            count = count.saturating_add(1);
        }
        let (posted, result) = post_list(posts.get(..count).unwrap_or_default());
        done = done.saturating_add(posted);
        if let Err(error) = result.and(refused) {
            return (done, Err(error));
        }
    }
    (done, Ok(()))
}

/// Posts DTOs in their order, up to the first that is refused. Returns the number of DTOs that were
/// posted, and the error of the refused one.
///
/// Context: as of a single post.
///
/// # Safety
///
/// As for [`describe`], for each DTO.
unsafe fn post_all(ep: KernelHandle, list: &[bindings::DAT_LIST_DTO]) -> (usize, DatResult) {
    let (done, result) = {
        let guard = rcu::read_lock();
        match Adapter::borrow::<Ep>(&guard, ep) {
            // SAFETY: By the safety requirement.
            Ok(ep) => unsafe { post_with(list, |posts| ep.post_list_at_once(posts)) },
            Err(error) => (0, Err(NotPosted::from(error))),
        }
    };
    let Err(refusal) = result else {
        return (done, Ok(()));
    };
    let again = unless_atomic(refusal).and_then(|()| Adapter::object::<Ep>(ep));
    match again {
        Ok(ep) => {
            let left = list.get(done..).unwrap_or_default();
            // SAFETY: By the safety requirement.
            let (more, result) = unsafe { post_with(left, |posts| ep.post_list(posts)) };
            (done.saturating_add(more), result)
        }
        Err(error) => (done, Err(error)),
    }
}

/// Borrows the DTOs of a list.
///
/// # Errors
///
/// INVALID_PARAMETER: (number of DTOs) for a negative one; (operation) for NULL, unless `count` is
/// 0.
///
/// # Safety
///
/// `list` refers to at least `count` DTOs, unless it is NULL.
unsafe fn dtos(
    list: &In<bindings::DAT_LIST_DTO>,
    count: i32,
) -> DatResult<&[bindings::DAT_LIST_DTO]> {
    let count = usize::try_from(count).map_err(|_| DatError::Invalid(Arg::Dtos))?;
    // SAFETY: By the safety requirement.
    unsafe { list.slice(count, Arg::Operation) }
}

export! {
    /// `kdapl_ep_post_list`.
    fn kdapl_ep_post_list(
        ep: KernelHandle,
        count: i32,
        list: In<bindings::DAT_LIST_DTO>,
        posted: Out<i32>,
    ) {
        posted.put(0);
        // SAFETY: The header obliges the caller to pass `count` DTOs, unless `list` is NULL.
        let list = unsafe { dtos(&list, count) };
        // The handle is checked before the other arguments.
        let list = list.or_else(|error| Adapter::check::<Ep>(ep).and(Err(error)))?;
        // SAFETY: The header obliges the caller to pass the segments of each.
        let (done, result) = unsafe { post_all(ep, list) };
        posted.put(count_out(u32::try_from(done).unwrap_or(u32::MAX)));
        result
    }
}
