// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Order of the arguments of each call.
//!
//! INVALID_PARAMETER has the position of the argument as its subtype, counted from 1. An error
//! inside the module names the argument instead ([`Arg`]). Each consumer interface looks up its
//! position here when it returns the error.
#![allow(
    non_upper_case_globals,
    reason = "an order has the name of its call, by which `export!` finds it"
)]

use super::Arg;

/// Names of the arguments of a call, in its order.
///
/// An argument has no name if no error refers to it, and several if errors refer to it or to parts
/// of it.
pub(crate) type Order = [&'static [Arg]];

/// Returns the names of one argument. `_` is an argument without a name.
macro_rules! names {
    (_) => { &[] };
    ($($arg:ident)|+) => { &[$(Arg::$arg),+] };
}

macro_rules! orders {
    ($($call:ident($($($arg:tt)|+),+);)+) => {
        $(pub(crate) const $call: &Order = &[$(names!($($arg)|+)),+];)+
    };
}

// Interface Adapters, Protection Zones, memory.
orders! {
    dat_ia_openv(_, Qlen, AsyncEvd, Handle, _, _, _);
    dat_ia_query(_, _, _, _, _, _);
    dat_ia_close(_, Flags);
    dat_get_handle_type(_, HandleType);
    dat_strerror(Code, Major, Minor);
    dat_ia_memtype_hint(_, _, _, Optimize, _, _);
    dat_ia_reserved_lmr(_, Handle, LmrContext);

    dat_pz_create(_, Handle);
    dat_pz_query(_, _, Param);
    dat_pz_free(_);

    dat_lmr_create(_, _, _, _, _, Privileges, _, _, _, _, _, _);
    dat_lmr_kcreate(_, _, Region, _, _, Privileges, _, Optimize, Handle, LmrContext, _, _, _);
    dat_lmr_query(_, _, Param);
    dat_lmr_free(_);
    dat_lmr_sync_rdma_read(_, Segments, SegmentCount);
    dat_lmr_sync_rdma_write(_, Segments, SegmentCount);
    dat_lmr_allocate(_, _, _, Scope, Handle);
    dat_lmr_fmr(_, _, Region, _, Privileges, _, _, _, Flags, LmrContext, _);
    dat_lmr_invalidate(_, _, _, Flags);

    dat_rmr_create(_, Handle);
    dat_rmr_query(_, _, Param);
    dat_rmr_bind(_, _, Segments, Privileges, VaType, Ep, _, Flags, _);
    dat_rmr_free(_);
}

// Events. The completion vector of `dat_evd_create` follows DAT's arguments.
orders! {
    dat_evd_create(_, Qlen, _, Flags, _, Vector);
    dat_evd_kcreate(_, Qlen, UpcallPolicy, Upcall, Flags, Handle);
    dat_evd_modify_upcall(_, UpcallPolicy, Upcall, Flags);
    dat_evd_query(_, _, Param);
    dat_evd_modify_cno(_, _);
    dat_evd_enable(_);
    dat_evd_disable(_);
    dat_evd_set_unwaitable(_);
    dat_evd_clear_unwaitable(_);
    dat_evd_wait(_, _, Threshold, Event, _);
    dat_evd_dequeue(_, Event);
    dat_evd_resize(_, Qlen);
    dat_evd_post_se(Evd, Event);
    dat_evd_free(_);

    dat_cno_create(_, Agent, Handle);
    dat_cno_modify_agent(_, Agent);
    dat_cno_query(_, _, Param);
    dat_cno_wait(_, _, Evd);
    dat_cno_trigger(_);
    dat_cno_free(_);
}

// Endpoints. The EVDs of `dat_ep_modify` have the positions that they have in `dat_ep_create`.
orders! {
    dat_ep_create(_, _, RecvEvd, RequestEvd, ConnectEvd, Attr, Handle);
    dat_ep_create_with_srq(_, Pz, RecvEvd, RequestEvd, ConnectEvd, _, Attr, Handle);
    dat_ep_query(_, Mask, Param);
    dat_ep_modify(_, Mask, Param | Attr | Pz | RecvEvd, RequestEvd, ConnectEvd);
    dat_ep_connect(_, _, ConnQual, Timeout, PrivateDataSize, PrivateData, _, _);
    dat_ep_dup_connect(_, _, Timeout, PrivateDataSize, PrivateData, _);
    dat_ep_common_connect(_, _, Timeout, PrivateDataSize, PrivateData);
    dat_ep_disconnect(_, Flags);
    dat_ep_get_status(_, _, _, _);
    dat_ep_set_watermark(_, Watermark, HardWatermark);
    dat_ep_recv_query(_, _, _);
    dat_ep_reset(_);
    dat_ep_free(_);
}

// Data transfer operations (DTOs). An atomic operation has one segment, and no number of them.
orders! {
    dat_ep_post_send(_, SegmentCount, Segments, _, Flags);
    dat_ep_post_send_with_invalidate(_, SegmentCount, Segments, _, Flags, _, _);
    dat_ep_post_recv(_, SegmentCount, Segments, _, Flags);
    dat_ep_post_rdma_write(_, SegmentCount, Segments, _, RemoteSegment, Flags);
    dat_ep_post_rdma_read(_, SegmentCount, Segments, _, RemoteSegment, Flags);
    dat_ep_post_rdma_read_to_rmr(_, SegmentCount | Segments, _, RemoteSegment, Flags);
    dat_ib_post_rdma_write_immed(_, SegmentCount, Segments, _, RemoteSegment, _, Flags);
    dat_ib_post_fetch_and_add(_, _, SegmentCount | Segments, _, RemoteSegment, Flags);
    dat_ib_post_cmp_and_swap(_, _, _, SegmentCount | Segments, _, RemoteSegment, Flags);
}

// Messages of `/dev/kdapl` and exported functions that are no call of DAT. A DTO that is refused
// has the order of the call that posts it.
orders! {
    kdapl_ep_post(Operation);
    kdapl_ep_submit(Operation, Dtos, Threshold, Event);
    kdapl_evd_create_bh(_, Qlen, UpcallPolicy, Upcall, Budget, Flags, Handle);
    kdapl_ia_open_net(_, Net, Qlen, AsyncEvd, Handle);
    kdapl_ep_post_list(_, Dtos, Operation | SegmentCount | Segments | RemoteSegment | Flags, _);
    kdapl_lmr_free_unused(_);
    kdapl_ep_private_data(_, PrivateDataSize, PrivateData);
    kdapl_cr_private_data(_, PrivateDataSize, PrivateData);
    kdapl_ep_addresses(_, _, _);
    kdapl_cr_address(_, _);
    kdapl_ep_ready(_);
    kdapl_ep_dup_connect(_, _, Timeout, PrivateDataSize, PrivateData, _, _);
    kdapl_ep_common_connect(_, _, Timeout, PrivateDataSize, PrivateData, _);
    kdapl_cr_accept(_, Ep, PrivateDataSize, PrivateData, Flags);
    kdapl_cr_handoff_to_user(_, ConnQual, _);
}

// Shared Receive Queues.
orders! {
    dat_srq_create(_, _, Attr, Handle);
    dat_srq_post_recv(_, SegmentCount, Segments, _);
    dat_srq_query(_, _, Param);
    dat_srq_resize(_, Qlen);
    dat_srq_set_lw(_, Watermark);
    dat_srq_free(_);
}

// Service points and connection requests.
orders! {
    dat_psp_create(_, ConnQual, Evd, Flags | Backlog, Handle);
    dat_psp_create_any(_, ConnQual, Evd, Flags, Handle);
    dat_psp_query(_, _, Param);
    dat_psp_free(_);

    dat_rsp_create(_, ConnQual, _, Evd, Handle);
    dat_rsp_query(_, _, Param);
    dat_rsp_free(_);

    dat_csp_create(_, Communicator, _, Evd, Handle);
    dat_csp_query(_, _, Param);
    dat_csp_free(_);

    dat_cr_query(_, _, Param);
    dat_cr_accept(_, Ep, PrivateDataSize, PrivateData);
    dat_cr_reject(_, PrivateDataSize, PrivateData);
    dat_cr_handoff(_, ConnQual);
}
