// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Data transfer operations (DTOs): posting of sends, receives, RDMA Writes and RDMA Reads.

use super::{
    export::{
        export,
        In, //
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
    sys::task::CallContext,
};
use core::mem::offset_of;
use kdapl_bindings as bindings;
use kernel::sync::rcu;

// `DAT_LMR_TRIPLET` and `Segment` have the same layout.
const _: () = {
    assert!(size_of::<bindings::DAT_LMR_TRIPLET>() == size_of::<Segment>());
    assert!(offset_of!(bindings::DAT_LMR_TRIPLET, virtual_address) == offset_of!(Segment, address));
    assert!(offset_of!(bindings::DAT_LMR_TRIPLET, segment_length) == offset_of!(Segment, length));
    assert!(offset_of!(bindings::DAT_LMR_TRIPLET, lmr_context) == offset_of!(Segment, context));
};

/// Segment for operations that do not address the peer's memory.
const NOWHERE: Segment = Segment {
    address: 0,
    length: 0,
    context: 0,
};

/// Arguments that all post calls have.
pub(super) struct Common {
    pub(super) count: i32,
    pub(super) local: In<bindings::DAT_LMR_TRIPLET>,
    pub(super) cookie: bindings::DAT_CONTEXT,
    pub(super) flags: u32,
}

/// Borrows the segments of local memory.
///
/// # Errors
///
/// INVALID_PARAMETER: (number of segments) for a negative one or too many; (segments) for NULL,
/// unless `count` is 0.
///
/// # Safety
///
/// `local` refers to at least `count` triplets, unless it is NULL.
pub(super) unsafe fn segments(
    count: i32,
    local: &In<bindings::DAT_LMR_TRIPLET>,
) -> DatResult<&[Segment]> {
    // SAFETY: By the safety requirement.
    unsafe { segments_of(count, local.as_ptr()) }
}

/// As [`segments`], for a pointer.
///
/// # Safety
///
/// As for [`segments`], and the triplets live as long as the result.
pub(super) unsafe fn segments_of<'a>(
    count: i32,
    local: *const bindings::DAT_LMR_TRIPLET,
) -> DatResult<&'a [Segment]> {
    let count = u32::try_from(count)
        .ok()
        .filter(|count| *count <= bindings::KDAPL_IOV_MAX)
        .and_then(|count| usize::try_from(count).ok())
        .ok_or(DatError::Invalid(Arg::SegmentCount))?;
    // SAFETY: By the safety requirement.
    unsafe { triplets(count, local) }
}

/// Borrows any number of triplets.
///
/// # Errors
///
/// INVALID_PARAMETER (segments) for NULL, unless `count` is 0.
///
/// # Safety
///
/// As for [`segments_of`]. The triplets have at most `isize::MAX` bytes.
pub(super) unsafe fn triplets<'a>(
    count: usize,
    local: *const bindings::DAT_LMR_TRIPLET,
) -> DatResult<&'a [Segment]> {
    if count == 0 {
        return Ok(&[]);
    }
    if local.is_null() {
        return Err(DatError::Invalid(Arg::Segments));
    }
    // SAFETY: By the safety requirement. The layout of a triplet is that of `Segment`, as asserted
    // above.
    Ok(unsafe { core::slice::from_raw_parts(local.cast::<Segment>(), count) })
}

/// Posts a send or a receive.
// Inlined with a constant operation, which lets the compiler remove the code for the others.
#[inline(always)]
fn post_to_peer(ep: KernelHandle, operation: Operation, common: &Common) -> DatResult {
    post(ep, operation, common, NOWHERE, Operands::default())
}

/// Posts an operation that addresses the peer's memory.
pub(super) fn post_to_memory(
    ep: KernelHandle,
    operation: Operation,
    common: &Common,
    peer: &In<bindings::DAT_RMR_TRIPLET>,
    operands: Operands,
) -> DatResult {
    let remote = of_rmr(peer).ok_or(DatError::Invalid(Arg::RemoteSegment))?;
    post_any(ep, operation, common, remote, operands)
}

/// Posts any operation.
#[inline(never)]
fn post_any(
    ep: KernelHandle,
    operation: Operation,
    common: &Common,
    remote: Segment,
    operands: Operands,
) -> DatResult {
    post(ep, operation, common, remote, operands)
}

/// Returns a segment that an RMR context names; `None` for NULL.
fn of_rmr(triplet: &In<bindings::DAT_RMR_TRIPLET>) -> Option<Segment> {
    triplet.get().map(|triplet| Segment {
        address: triplet.virtual_address,
        length: triplet.segment_length,
        context: triplet.rmr_context,
    })
}

#[inline(always)]
fn post(
    ep: KernelHandle,
    operation: Operation,
    common: &Common,
    remote: Segment,
    operands: Operands,
) -> DatResult {
    post_to(ep, || {
        Ok(Post {
            operation,
            flags: common.flags,
            // SAFETY: Every bit pattern is a valid cookie.
            cookie: unsafe { common.cookie.as_64 },
            // SAFETY: The header obliges the caller to pass at least `count` triplets, unless
            // `local` is NULL.
            local: unsafe { segments(common.count, &common.local) }?,
            remote,
            operands,
        })
    })
}

/// Posts to the Endpoint with this handle. The handle is checked before the arguments.
///
/// Context: any. Sleeps only where it may, to find a slot, and for a receive that has to wait for a
/// connection.
#[inline(always)]
fn post_to<'a>(ep: KernelHandle, post: impl Fn() -> DatResult<Post<'a>>) -> DatResult {
    let refusal = {
        let guard = rcu::read_lock();
        let ep = Adapter::borrow::<Ep>(&guard, ep)?;
        match ep.post_at_once(&post()?) {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        }
    };
    // Built once more. Otherwise the first one would be written to memory for this rare call.
    post_after(refusal, ep, &post()?)
}

/// Posts once more what was not posted at once.
#[cold]
fn post_after(refusal: NotPosted, ep: KernelHandle, post: &Post<'_>) -> DatResult {
    unless_atomic(refusal)?;
    Adapter::object::<Ep>(ep)?.post(post)
}

/// Checks that a refused post may be tried again by a call that sleeps.
///
/// # Errors
///
/// The error of the post if the caller may not sleep.
#[cold]
pub(super) fn unless_atomic(refusal: NotPosted) -> DatResult {
    match refusal {
        NotPosted::Refused(error) if !CallContext::current().may_sleep() => Err(error),
        // Without CONFIG_PREEMPT_COUNT the context is not known.
        NotPosted::Waits if cfg!(CONFIG_PREEMPT_COUNT) && !CallContext::current().may_sleep() => {
            Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateEpUnconnected,
            ))
        }
        NotPosted::Waits | NotPosted::Refused(_) => Ok(()),
    }
}

export! {
    /// `dat_ep_post_send`.
    fn dat_ep_post_send(
        ep: KernelHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        flags: u32,
    ) {
        let common = Common { count, local, cookie, flags };
        post_to_peer(ep, Operation::Send, &common)
    }

    /// `dat_ep_post_send_with_invalidate`.
    fn dat_ep_post_send_with_invalidate(
        ep: KernelHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        flags: u32,
        invalidate: i32,
        rmr_context: u32,
    ) {
        let common = Common { count, local, cookie, flags };
        if invalidate == bindings::DAT_FALSE as i32 {
            return post_any(ep, Operation::Send, &common, NOWHERE, Operands::default());
        }
        let remote = Segment { context: rmr_context, ..NOWHERE };
        post_any(ep, Operation::SendWithInvalidate, &common, remote, Operands::default())
    }

    /// `dat_ep_post_recv`.
    fn dat_ep_post_recv(
        ep: KernelHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        flags: u32,
    ) {
        let common = Common { count, local, cookie, flags };
        post_to_peer(ep, Operation::Receive, &common)
    }

    /// `dat_ep_post_rdma_write`.
    fn dat_ep_post_rdma_write(
        ep: KernelHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        peer: In<bindings::DAT_RMR_TRIPLET>,
        flags: u32,
    ) {
        let common = Common { count, local, cookie, flags };
        post_to_memory(ep, Operation::RdmaWrite, &common, &peer, Operands::default())
    }

    /// `dat_ep_post_rdma_read`.
    fn dat_ep_post_rdma_read(
        ep: KernelHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        peer: In<bindings::DAT_RMR_TRIPLET>,
        flags: u32,
    ) {
        let common = Common { count, local, cookie, flags };
        post_to_memory(ep, Operation::RdmaRead, &common, &peer, Operands::default())
    }

    /// `dat_ep_post_rdma_read_to_rmr`.
    fn dat_ep_post_rdma_read_to_rmr(
        ep: KernelHandle,
        local: In<bindings::DAT_RMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        peer: In<bindings::DAT_RMR_TRIPLET>,
        flags: u32,
    ) {
        let segment = of_rmr(&local);
        let local = segment.as_ref();
        post_to(ep, || {
            Ok(Post {
                operation: Operation::RdmaReadToRmr,
                flags,
                // SAFETY: Every bit pattern is a valid cookie.
                cookie: unsafe { cookie.as_64 },
                local: core::slice::from_ref(local.ok_or(DatError::Invalid(Arg::Segments))?),
                remote: of_rmr(&peer).ok_or(DatError::Invalid(Arg::RemoteSegment))?,
                operands: Operands::default(),
            })
        })
    }
}
