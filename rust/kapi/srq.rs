// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Shared Receive Queues (SRQs).

use super::{
    dto::segments,
    export::{
        count,
        export,
        raw_handle,
        In,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        prelude::*,
        srq::{
            Receive,
            Srq,
            SrqAttr, //
        },
    },
    model::handle::KernelHandle,
    sys::task::CallContext, //
};
use kdapl_bindings as bindings;
use kernel::{
    ffi::c_void,
    sync::rcu, //
};

/// Converts a count from its C form. A negative one becomes a number above every limit.
fn number(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Converts SRQ attributes from their C form.
///
/// # Errors
///
/// INVALID_PARAMETER (attributes) for NULL, and for a low watermark: there are no receives yet.
fn attr_in(attr: &In<bindings::DAT_SRQ_ATTR>) -> DatResult<SrqAttr> {
    let attr = attr
        .get()
        .filter(|attr| attr.low_watermark == bindings::DAT_SRQ_LW_DEFAULT as i32)
        .ok_or(DatError::Invalid(Arg::Attr))?;
    Ok(SrqAttr {
        max_recv_dtos: number(attr.max_recv_dtos),
        max_recv_iov: number(attr.max_recv_iov),
    })
}

/// Posts a receive. Sleeps only where it may, to find a slot.
fn post(srq: KernelHandle, receive: &Receive<'_>) -> DatResult {
    let posted = {
        let guard = rcu::read_lock();
        Adapter::borrow::<Srq>(&guard, srq)?.post_at_once(receive)
    };
    match posted {
        Err(_) if CallContext::current().may_sleep() => Adapter::object::<Srq>(srq)?.post(receive),
        result => result,
    }
}

export! {
    /// `dat_srq_create`.
    fn dat_srq_create(
        ia: KernelHandle,
        pz: KernelHandle,
        attr: In<bindings::DAT_SRQ_ATTR>,
        srq: Out<*mut c_void>,
    ) {
        srq.needed(Arg::Handle)?;
        let adapter = Adapter::of(ia)?;
        let attr = attr_in(&attr)?;
        srq.put(adapter.raw(adapter.ia.create_srq(adapter.inner(pz), attr)?));
        Ok(())
    }

    /// `dat_srq_post_recv`.
    fn dat_srq_post_recv(
        srq: KernelHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
    ) {
        // SAFETY: Every bit pattern is a valid cookie.
        let cookie = unsafe { cookie.as_64 };
        Adapter::check::<Srq>(srq)?;
        // SAFETY: The header obliges the caller to pass `count` triplets, unless `local` is NULL.
        let local = unsafe { segments(count, &local) }?;
        post(srq, &Receive { cookie, local })
    }

    /// `dat_srq_query`.
    fn dat_srq_query(srq: KernelHandle, _mask: u64, result: Out<bindings::DAT_SRQ_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, srq) = Adapter::find::<Srq>(srq)?;
        let param = srq.query()?;
        result.put(bindings::DAT_SRQ_PARAM {
            ia_handle: raw_handle(adapter.handle()),
            srq_state: bindings::DAT_SRQ_STATE_OPERATIONAL,
            pz_handle: adapter.raw(param.pz),
            max_recv_dtos: count(param.attr.max_recv_dtos),
            max_recv_iov: count(param.attr.max_recv_iov),
            low_watermark: count(param.low_watermark),
            available_dto_count: count(param.available),
            outstanding_dto_count: count(param.outstanding),
        });
        Ok(())
    }

    /// `dat_srq_resize`.
    fn dat_srq_resize(srq: KernelHandle, max_recv_dtos: i32) {
        let (adapter, srq) = Adapter::of_object::<Srq>(srq)?;
        let srq = adapter.ia.get::<Srq>(srq)?;
        adapter.ia.resize_srq(&srq, number(max_recv_dtos))
    }

    /// `dat_srq_set_lw`.
    fn dat_srq_set_lw(srq: KernelHandle, low_watermark: i32) {
        Adapter::object::<Srq>(srq)?.set_low_watermark(number(low_watermark))
    }

    /// `dat_srq_free`.
    fn dat_srq_free(srq: KernelHandle) {
        let (adapter, srq) = Adapter::of_object::<Srq>(srq)?;
        adapter.ia.free::<Srq>(srq)
    }
}
