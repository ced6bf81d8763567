// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DTOs.

use super::{
    export::{
        export,
        In, //
    },
    registry::Adapter, //
};
use crate::{
    dat::ep::{
        Ep,
        Operands,
        Post,
        Segment, //
    },
    model::{
        code::{
            DatError,
            DatResult, //
        },
        event::Operation,
        handle::OuterHandle,
    },
};
use core::mem::offset_of;
use kdapl_bindings as bindings;

// A triplet of C is a segment of ours, and so is that of a peer.
const _: () = {
    assert!(size_of::<bindings::DAT_LMR_TRIPLET>() == size_of::<Segment>());
    assert!(offset_of!(bindings::DAT_LMR_TRIPLET, virtual_address) == offset_of!(Segment, address));
    assert!(offset_of!(bindings::DAT_LMR_TRIPLET, segment_length) == offset_of!(Segment, length));
    assert!(offset_of!(bindings::DAT_LMR_TRIPLET, lmr_context) == offset_of!(Segment, context));
};

/// No memory of a peer.
const NOWHERE: Segment = Segment {
    address: 0,
    length: 0,
    context: 0,
};

/// What the posts have in common.
pub(super) struct Common {
    pub(super) count: i32,
    pub(super) local: In<bindings::DAT_LMR_TRIPLET>,
    pub(super) cookie: bindings::DAT_CONTEXT,
    pub(super) flags: u32,
}

/// Posts.
fn post(ep: OuterHandle, operation: Operation, common: &Common, remote: Segment) -> DatResult {
    post_with(ep, operation, common, remote, Operands::default())
}

/// Posts an operation that takes more.
pub(super) fn post_with(
    ep: OuterHandle,
    operation: Operation,
    common: &Common,
    remote: Segment,
    operands: Operands,
) -> DatResult {
    let ep = Adapter::object::<Ep>(ep)?;
    let segments = operation.arguments().segments;
    let count = u32::try_from(common.count)
        .ok()
        .filter(|count| *count <= bindings::KDAPL_IOV_MAX)
        .and_then(|count| usize::try_from(count).ok())
        .ok_or(DatError::invalid_parameter(segments))?;
    // Where there is a number of them it comes first.
    let argument = segments.saturating_add((!operation.is_atomic()).into());
    // SAFETY: The header says that there are as many.
    let local = unsafe { common.local.slice(count, argument) }?;
    // SAFETY: A triplet is a segment, as is asserted above.
    let local = unsafe { core::slice::from_raw_parts(local.as_ptr().cast::<Segment>(), count) };
    ep.post(&Post {
        operation,
        flags: common.flags,
        // SAFETY: Any bits are a cookie.
        cookie: unsafe { common.cookie.as_64 },
        local,
        remote,
        operands,
    })
}

/// A peer's memory, for this operation.
pub(super) fn remote(
    triplet: &In<bindings::DAT_RMR_TRIPLET>,
    operation: Operation,
) -> DatResult<Segment> {
    let argument = operation.arguments().remote;
    let triplet = triplet.get().ok_or(DatError::invalid_parameter(argument))?;
    Ok(Segment {
        address: triplet.virtual_address,
        length: triplet.segment_length,
        context: triplet.rmr_context,
    })
}

export! {
    /// `dat_ep_post_send`.
    fn dat_ep_post_send(
        ep: OuterHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        flags: u32,
    ) {
        let common = Common { count, local, cookie, flags };
        post(ep, Operation::Send, &common, NOWHERE)
    }

    /// `dat_ep_post_recv`.
    fn dat_ep_post_recv(
        ep: OuterHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        flags: u32,
    ) {
        let common = Common { count, local, cookie, flags };
        post(ep, Operation::Receive, &common, NOWHERE)
    }

    /// `dat_ep_post_rdma_write`.
    fn dat_ep_post_rdma_write(
        ep: OuterHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        peer: In<bindings::DAT_RMR_TRIPLET>,
        flags: u32,
    ) {
        let operation = Operation::RdmaWrite;
        let common = Common { count, local, cookie, flags };
        post(ep, operation, &common, remote(&peer, operation)?)
    }

    /// `dat_ep_post_rdma_read`.
    fn dat_ep_post_rdma_read(
        ep: OuterHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        peer: In<bindings::DAT_RMR_TRIPLET>,
        flags: u32,
    ) {
        let operation = Operation::RdmaRead;
        let common = Common { count, local, cookie, flags };
        post(ep, operation, &common, remote(&peer, operation)?)
    }
}
