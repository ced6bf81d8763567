// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the positions of arguments with the header of kernel consumers. Those that the header
//! does not have are compared with a list in this file, which repeats `docs/ioctl/`.

use crate::rust::model::code::{
    order,
    Arg,
    DatError,
    Order, //
};

/// Header that consumers include.
const HEADER: &str = include_str!("../../../../../include/rdma/kdat.h");

/// Header of the InfiniBand extensions.
const EXTENSIONS: &str = include_str!("../../../../../include/rdma/kdat_ib_extensions.h");

/// Lists the headers that [`HEADER`] includes, each with its text.
macro_rules! parts {
    ($($name:literal)+) => {
        &[$((
            $name,
            include_str!(concat!("../../../../../include/rdma/kdat/", $name, ".h")),
        )),+]
    };
}

const PARTS: &[(&str, &str)] = parts! {
    "types" "error" "event" "ia" "pz" "lmr" "rmr" "evd" "cno" "ep" "connect" "post" "srq" "service"
    "cr" "gate"
};

/// Lists calls, each with its name.
macro_rules! calls {
    ($($call:ident)+) => {
        &[$((stringify!($call), order::$call)),+]
    };
}

const EXPORTED: &[(&str, &Order)] = calls! {
    dat_ia_openv dat_ia_query dat_ia_close dat_get_handle_type dat_strerror
    dat_ia_memtype_hint
    dat_pz_create dat_pz_query dat_pz_free
    dat_lmr_kcreate dat_lmr_query dat_lmr_free dat_lmr_sync_rdma_read dat_lmr_sync_rdma_write
    dat_lmr_allocate dat_lmr_fmr dat_lmr_invalidate dat_ia_reserved_lmr
    dat_rmr_create dat_rmr_query dat_rmr_bind dat_rmr_free
    dat_evd_kcreate dat_evd_modify_upcall dat_evd_query dat_evd_modify_cno dat_evd_enable
    dat_evd_disable dat_evd_set_unwaitable dat_evd_clear_unwaitable dat_evd_wait dat_evd_dequeue
    dat_evd_resize dat_evd_post_se dat_evd_free
    dat_cno_create dat_cno_modify_agent dat_cno_query dat_cno_wait dat_cno_trigger dat_cno_free
    dat_srq_create dat_srq_post_recv dat_srq_query dat_srq_resize dat_srq_set_lw dat_srq_free
    dat_ep_create dat_ep_create_with_srq dat_ep_query dat_ep_modify dat_ep_connect
    dat_ep_dup_connect
    dat_ep_common_connect dat_ep_disconnect dat_ep_get_status
    dat_ep_set_watermark dat_ep_recv_query dat_ep_reset dat_ep_free
    dat_ep_post_send dat_ep_post_send_with_invalidate dat_ep_post_recv dat_ep_post_rdma_write
    dat_ep_post_rdma_read
    dat_ep_post_rdma_read_to_rmr
    dat_ib_post_rdma_write_immed dat_ib_post_fetch_and_add dat_ib_post_cmp_and_swap
    dat_psp_create dat_psp_create_any dat_psp_query dat_psp_free
    dat_rsp_create dat_rsp_query dat_rsp_free
    dat_csp_create dat_csp_query dat_csp_free
    dat_cr_query dat_cr_accept dat_cr_reject dat_cr_handoff
    kdapl_ep_post_list kdapl_lmr_free_unused kdapl_ep_private_data kdapl_cr_private_data
    kdapl_ep_addresses kdapl_cr_address kdapl_ia_open_net kdapl_evd_create_bh
    kdapl_ep_ready kdapl_ep_dup_connect kdapl_ep_common_connect kdapl_cr_accept
    kdapl_cr_handoff_to_user
};

/// Arguments that the exported call does not have, or not under a name of its own, with their
/// numbers in `docs/ioctl/`.
const OTHERS: [(&Order, Arg, u32); 11] = [
    (order::dat_ep_modify, Arg::Attr, 3),
    (order::dat_ep_modify, Arg::RecvEvd, 3),
    (order::dat_ep_modify, Arg::RequestEvd, 4),
    (order::dat_ep_modify, Arg::ConnectEvd, 5),
    (order::dat_psp_create, Arg::Backlog, 4),
    (order::dat_evd_create, Arg::Qlen, 2),
    (order::dat_evd_create, Arg::Flags, 4),
    (order::dat_evd_create, Arg::Vector, 6),
    (order::dat_lmr_create, Arg::Privileges, 6),
    (order::kdapl_ep_post, Arg::Operation, 1),
    (order::dat_ep_modify, Arg::Pz, 3),
];

/// Returns the names that the headers give to an argument.
fn names(arg: Arg) -> &'static [&'static str] {
    match arg {
        Arg::Agent => &["agent"],
        Arg::AsyncEvd => &["async_evd"],
        Arg::Attr => &["attr"],
        Arg::Budget => &["budget"],
        Arg::Code => &["value"],
        Arg::Communicator => &["comm"],
        Arg::ConnQual => &["conn_qual"],
        Arg::ConnectEvd => &["connect_evd"],
        Arg::Ep => &["ep"],
        Arg::Event => &["event"],
        Arg::Evd => &["evd"],
        Arg::Flags => &["flags", "flag"],
        Arg::Handle => &[
            "ia", "pz", "lmr", "rmr", "srq", "evd", "cno", "ep", "psp", "rsp", "csp",
        ],
        Arg::HandleType => &["type"],
        Arg::Region => &["region"],
        Arg::Scope => &["scope"],
        Arg::LmrContext => &["lmr_context"],
        Arg::Major => &["major"],
        Arg::Mask => &["mask"],
        Arg::Minor => &["minor"],
        Arg::Net => &["net"],
        Arg::Optimize => &["optimize"],
        Arg::Param => &["param"],
        Arg::PrivateData => &["private_data"],
        Arg::PrivateDataSize => &["private_data_size"],
        Arg::Privileges => &["privileges"],
        Arg::Pz => &["pz"],
        Arg::Qlen => &["qlen", "async_evd_qlen"],
        Arg::RecvEvd => &["recv_evd"],
        Arg::RemoteSegment => &["remote"],
        Arg::RequestEvd => &["request_evd"],
        // An atomic operation has no number of segments.
        Arg::SegmentCount => &["segments", "local"],
        Arg::Segments => &["local"],
        Arg::Threshold => &["threshold"],
        Arg::Timeout => &["timeout"],
        Arg::Upcall => &["upcall"],
        Arg::UpcallPolicy => &["policy"],
        Arg::VaType => &["va_type"],
        Arg::HardWatermark => &["hard_high"],
        Arg::Watermark => &["low_watermark", "soft_high"],
        // No exported call has these.
        Arg::Backlog | Arg::Dtos | Arg::Operation | Arg::Vector => &[],
    }
}

/// Returns the headers that declare the exported calls.
fn headers() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|part| part.1).chain([EXTENSIONS])
}

/// Returns the text before and after the name of an exported call in its declaration.
fn declaration(call: &str) -> (&'static str, &'static str) {
    let start = format!("\nDAT_RETURN {call}(");
    headers()
        .find_map(|header| header.split_once(&start))
        .expect(call)
}

/// Returns the names of the arguments of an exported call.
fn parameters(call: &str) -> Vec<&'static str> {
    let (_, rest) = declaration(call);
    let (list, _) = rest.split_once(");").expect("its end");
    let name = |parameter: &'static str| parameter.rsplit([' ', '*']).next().expect("a name");
    list.split(',').map(name).collect()
}

fn is_other(order: &Order, arg: Arg) -> bool {
    OTHERS.iter().any(|row| row.0 == order && row.1 == arg)
}

fn number(order: &Order, arg: Arg) -> u32 {
    DatError::Invalid(arg).code(order) - 0x8006_0000 - 36
}

#[test]
fn the_header_includes_each_part() {
    let included = HEADER
        .lines()
        .filter_map(|line| line.strip_prefix("#include <rdma/kdat/"));
    let included: Vec<_> = included
        .filter_map(|name| name.strip_suffix(".h>"))
        .collect();
    let parts: Vec<_> = PARTS.iter().map(|part| part.0).collect();
    assert_eq!(included, parts);
}

#[test]
fn each_argument_has_the_position_of_the_header() {
    let mut compared = 0;
    // The arguments of a list are those of its DTOs: see `the_other_arguments_have_their_numbers`.
    let is_list = |call: &str| call == "kdapl_ep_post_list";
    for (call, order) in EXPORTED.iter().filter(|(call, _)| !is_list(call)) {
        let parameters = parameters(call);
        assert!(order.len() >= parameters.len(), "{call}");
        for (place, args) in order.iter().enumerate() {
            for &arg in args.iter().filter(|&&arg| !is_other(order, arg)) {
                let name = parameters.get(place).copied().expect(call);
                assert!(names(arg).contains(&name), "{arg:?} of {call} is {name}");
                compared += 1;
            }
        }
    }
    assert!(compared > 90, "{compared}");
}

#[test]
fn each_exported_call_has_an_order() {
    let declared = headers().flat_map(|header| header.split("\nDAT_RETURN "));
    let mut declared: Vec<_> = declared
        .filter_map(|text| text.split_once('('))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("dat_") || name.starts_with("kdapl_"))
        .collect();
    let mut listed: Vec<_> = EXPORTED.iter().map(|(call, _)| *call).collect();
    declared.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, declared);
}

#[test]
fn the_other_arguments_have_their_numbers() {
    for (order, arg, expected) in OTHERS {
        assert_eq!(number(order, arg), expected, "{arg:?}");
    }
    // The wait of a submit has the numbers of `dat_evd_wait`.
    assert_eq!(number(order::kdapl_ep_submit, Arg::Dtos), 2);
    for arg in [Arg::Threshold, Arg::Event] {
        let expected = number(order::dat_evd_wait, arg);
        assert_eq!(number(order::kdapl_ep_submit, arg), expected);
    }
    assert_eq!(number(order::kdapl_ep_submit, Arg::Operation), 1);
    assert_eq!(number(order::kdapl_ep_post_list, Arg::Dtos), 2);
    for order in [order::kdapl_ep_private_data, order::kdapl_cr_private_data] {
        assert_eq!(number(order, Arg::PrivateDataSize), 2);
        assert_eq!(number(order, Arg::PrivateData), 3);
    }
    // A refused DTO of a list.
    for arg in [
        Arg::Operation,
        Arg::SegmentCount,
        Arg::Segments,
        Arg::RemoteSegment,
        Arg::Flags,
    ] {
        assert_eq!(number(order::kdapl_ep_post_list, arg), 3);
    }
}

#[test]
fn each_call_is_described_with_all_its_arguments() {
    for (call, _) in EXPORTED {
        let (before, _) = declaration(call);
        let comment = before.strip_suffix("*/").expect(call);
        let (_, description) = comment.rsplit_once("/**\n").expect("kernel-doc");
        assert!(
            description.starts_with(&format!(" * {call}() - ")),
            "{call}"
        );
        for name in parameters(call) {
            assert!(
                description.contains(&format!("\n * @{name}: ")),
                "{name} of {call}"
            );
        }
        assert!(description.contains("\n * Return: DAT_SUCCESS"), "{call}");
    }
}
