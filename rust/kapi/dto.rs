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
struct Common {
    count: i32,
    local: In<bindings::DAT_LMR_TRIPLET>,
    cookie: bindings::DAT_CONTEXT,
    flags: u32,
}

/// Posts.
fn post(ep: OuterHandle, operation: Operation, common: &Common, remote: Segment) -> DatResult {
    let (_, ep) = Adapter::find::<Ep>(ep)?;
    let count = u32::try_from(common.count)
        .ok()
        .filter(|count| *count <= bindings::KDAPL_IOV_MAX)
        .and_then(|count| usize::try_from(count).ok())
        .ok_or(DatError::invalid_parameter(2))?;
    // SAFETY: The header says that there are as many.
    let local = unsafe { common.local.slice(count, 3) }?;
    // SAFETY: A triplet is a segment, as is asserted above.
    let local = unsafe { core::slice::from_raw_parts(local.as_ptr().cast::<Segment>(), count) };
    ep.post(&Post {
        operation,
        flags: common.flags,
        // SAFETY: Any bits are a cookie.
        cookie: unsafe { common.cookie.as_64 },
        local,
        remote,
    })
}

/// A peer's memory.
fn remote(triplet: &In<bindings::DAT_RMR_TRIPLET>) -> DatResult<Segment> {
    let triplet = triplet.get().ok_or(DatError::invalid_parameter(5))?;
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
        let common = Common { count, local, cookie, flags };
        post(ep, Operation::RdmaWrite, &common, remote(&peer)?)
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
        let common = Common { count, local, cookie, flags };
        post(ep, Operation::RdmaRead, &common, remote(&peer)?)
    }
}
