// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Endpoints (EPs).

use super::{
    export::{
        count,
        export,
        raw_address,
        raw_handle,
        In,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        ep::{
            Ep,
            EpAttr,
            EpChange,
            Handles, //
        },
        ia::close_flag,
        prelude::*, //
    },
    model::{
        handle::KernelHandle,
        watermarks::Marks, //
    },
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// Fields of `DAT_EP_PARAM` that a query may ask for: those of DAT, and extensions.
const FIELDS: u64 = bindings::DAT_EP_FIELD_ALL as u64
    | bindings::KDAPL_EP_FIELD_PEER_TIMEOUT
    | bindings::KDAPL_EP_FIELD_KEEPALIVE;

/// Converts EP attributes from their C form.
///
/// # Errors
///
/// INVALID_PARAMETER (attributes) for a count below 0.
fn attr_in(attr: &bindings::DAT_EP_ATTR) -> DatResult<EpAttr> {
    let number = |count: i32| u32::try_from(count).map_err(|_| DatError::Invalid(Arg::Attr));
    Ok(EpAttr {
        max_message_size: attr.max_message_size.into(),
        max_rdma_size: attr.max_rdma_size.into(),
        service_type: attr.service_type,
        qos: attr.qos,
        recv_completion_flags: attr.recv_completion_flags,
        request_completion_flags: attr.request_completion_flags,
        max_recv_dtos: number(attr.max_recv_dtos)?,
        max_request_dtos: number(attr.max_request_dtos)?,
        max_recv_iov: number(attr.max_recv_iov)?,
        max_request_iov: number(attr.max_request_iov)?,
        max_rdma_read_in: number(attr.max_rdma_read_in)?,
        max_rdma_read_out: number(attr.max_rdma_read_out)?,
        max_rdma_read_iov: number(attr.max_rdma_read_iov)?,
        max_rdma_write_iov: number(attr.max_rdma_write_iov)?,
        peer_timeout_ms: attr.peer_timeout_ms,
        keepalive_ms: attr.keepalive_ms,
    })
}

fn attr_out(attr: &EpAttr) -> bindings::DAT_EP_ATTR {
    let size = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    bindings::DAT_EP_ATTR {
        service_type: attr.service_type,
        max_message_size: size(attr.max_message_size),
        max_rdma_size: size(attr.max_rdma_size),
        qos: attr.qos,
        recv_completion_flags: attr.recv_completion_flags,
        request_completion_flags: attr.request_completion_flags,
        max_recv_dtos: count(attr.max_recv_dtos),
        max_request_dtos: count(attr.max_request_dtos),
        max_recv_iov: count(attr.max_recv_iov),
        max_request_iov: count(attr.max_request_iov),
        max_rdma_read_in: count(attr.max_rdma_read_in),
        max_rdma_read_out: count(attr.max_rdma_read_out),
        max_rdma_read_iov: count(attr.max_rdma_read_iov),
        max_rdma_write_iov: count(attr.max_rdma_write_iov),
        peer_timeout_ms: attr.peer_timeout_ms,
        keepalive_ms: attr.keepalive_ms,
    }
}

/// Creates an EP. With DAT_HANDLE_NULL as its Shared Receive Queue (SRQ), the SRQ is invalid.
fn create(
    ia: KernelHandle,
    parts: [KernelHandle; 4],
    srq: Option<KernelHandle>,
    attr: &In<bindings::DAT_EP_ATTR>,
    ep: &Out<*mut c_void>,
) -> DatResult {
    ep.needed(Arg::Handle)?;
    let adapter = Adapter::of(ia)?;
    let [pz, recv_evd, request_evd, connect_evd] = parts.map(|handle| adapter.inner(handle));
    let srq = srq.map_or(Ok(0), |srq| match adapter.inner(srq) {
        0 => Err(DatError::new(
            Kind::InvalidHandle,
            Subtype::InvalidHandleSrq,
        )),
        srq => Ok(srq),
    })?;
    let handles = Handles {
        pz,
        recv_evd,
        request_evd,
        connect_evd,
        srq,
    };
    let asked = attr.get().map(|attr| attr_in(&attr)).transpose()?;
    let (handle, _) = adapter.ia.create_ep(&handles, asked)?;
    ep.put(adapter.raw(handle));
    Ok(())
}

/// Converts a watermark from its C form.
///
/// # Errors
///
/// INVALID_PARAMETER (`arg`) for a negative number other than DAT_WATERMARK_INFINITE.
fn mark(number: i32, arg: Arg) -> DatResult<Option<u32>> {
    if number == bindings::DAT_WATERMARK_INFINITE {
        return Ok(None);
    }
    let number = u32::try_from(number).map_err(|_| DatError::Invalid(arg))?;
    Ok(Some(number))
}

/// Finds an Endpoint for a call that is allowed in any state. The calls that depend on the state
/// refuse a freed one, which keeps its handle while completions are left, by themselves.
pub(super) fn find_in_any_state(ep: KernelHandle) -> DatResult<Arc<Ep>> {
    let ep = Adapter::object::<Ep>(ep)?;
    ep.expect_not_freed()?;
    Ok(ep)
}

export! {
    /// `dat_ep_create`.
    fn dat_ep_create(
        ia: KernelHandle,
        pz: KernelHandle,
        recv_evd: KernelHandle,
        request_evd: KernelHandle,
        connect_evd: KernelHandle,
        attr: In<bindings::DAT_EP_ATTR>,
        ep: Out<*mut c_void>,
    ) {
        create(ia, [pz, recv_evd, request_evd, connect_evd], None, &attr, &ep)
    }

    /// `dat_ep_create_with_srq`.
    fn dat_ep_create_with_srq(
        ia: KernelHandle,
        pz: KernelHandle,
        recv_evd: KernelHandle,
        request_evd: KernelHandle,
        connect_evd: KernelHandle,
        srq: KernelHandle,
        attr: In<bindings::DAT_EP_ATTR>,
        ep: Out<*mut c_void>,
    ) {
        create(ia, [pz, recv_evd, request_evd, connect_evd], Some(srq), &attr, &ep)
    }

    /// `dat_ep_query`.
    fn dat_ep_query(ep: KernelHandle, mask: u64, result: Out<bindings::DAT_EP_PARAM>) {
        result.needed(Arg::Param)?;
        if mask & !FIELDS != 0 {
            return Err(DatError::Invalid(Arg::Mask));
        }
        let (adapter, ep) = Adapter::find::<Ep>(ep)?;
        ep.expect_not_freed()?;
        let param = ep.query();
        let (local, remote) = ep.addresses_at();
        result.put(bindings::DAT_EP_PARAM {
            ia_handle: raw_handle(adapter.handle()),
            ep_state: param.state.number(),
            local_ia_address_ptr: raw_address(local),
            local_port_qual: param.local.port().into(),
            remote_ia_address_ptr: raw_address(remote),
            remote_port_qual: param.remote_qual,
            pz_handle: adapter.raw(param.handles.pz),
            recv_evd_handle: adapter.raw(param.handles.recv_evd),
            request_evd_handle: adapter.raw(param.handles.request_evd),
            connect_evd_handle: adapter.raw(param.handles.connect_evd),
            srq_handle: adapter.raw(param.handles.srq),
            ep_attr: attr_out(&param.attr),
        });
        Ok(())
    }

    /// `dat_ep_modify`.
    fn dat_ep_modify(ep: KernelHandle, mask: u64, param: In<bindings::DAT_EP_PARAM>) {
        let (adapter, ep) = Adapter::find::<Ep>(ep)?;
        let param = param.get().ok_or(DatError::Invalid(Arg::Param))?;
        let handle = |raw: *mut c_void| adapter.inner(KernelHandle::from_raw(raw.addr() as u64));
        let handles = Handles {
            pz: handle(param.pz_handle),
            recv_evd: handle(param.recv_evd_handle),
            request_evd: handle(param.request_evd_handle),
            connect_evd: handle(param.connect_evd_handle),
            srq: 0,
        };
        let change = EpChange::new(mask, &handles, attr_in(&param.ep_attr)?)?;
        adapter.ia.modify_ep(&ep, &change).map(drop)
    }

    /// `dat_ep_disconnect`.
    fn dat_ep_disconnect(ep: KernelHandle, flags: u32) {
        let ep = Adapter::object::<Ep>(ep)?;
        ep.disconnect(close_flag(flags)?)
    }

    /// `dat_ep_get_status`.
    fn dat_ep_get_status(
        ep: KernelHandle,
        state: Out<u32>,
        recv_idle: Out<i32>,
        request_idle: Out<i32>,
    ) {
        let status = find_in_any_state(ep)?.status();
        state.put(status.state.number());
        recv_idle.put((status.receives == 0).into());
        request_idle.put((status.requests == 0).into());
        Ok(())
    }

    /// `dat_ep_set_watermark`.
    fn dat_ep_set_watermark(ep: KernelHandle, soft: i32, hard: i32) {
        let ep = Adapter::object::<Ep>(ep)?;
        ep.set_watermarks(Marks {
            soft: mark(soft, Arg::Watermark)?,
            hard: mark(hard, Arg::HardWatermark)?,
        })
    }

    /// `dat_ep_recv_query`.
    fn dat_ep_recv_query(ep: KernelHandle, allocated: Out<i32>, span: Out<i32>) {
        let buffers = count(find_in_any_state(ep)?.receive_buffers()?);
        allocated.put(buffers);
        // An Endpoint completes its receives in the order in which it has got them.
        span.put(buffers);
        Ok(())
    }

    /// `dat_ep_reset`.
    fn dat_ep_reset(ep: KernelHandle) {
        let ep = Adapter::object::<Ep>(ep)?;
        ep.reset()
    }

    /// `dat_ep_free`.
    fn dat_ep_free(ep: KernelHandle) {
        let (adapter, ep) = Adapter::of_object::<Ep>(ep)?;
        adapter.ia.free::<Ep>(ep)
    }
}
