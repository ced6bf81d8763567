// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The types of DAT 2.0, generated from `include/dat2`.
//!
//! bindgen's layout tests compare each offset with the C compiler's. The sizes below are those that
//! existing programs were compiled with: a header with other sizes is not the right one.
#![allow(unsafe_code, missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#![allow(unused, clippy::all, clippy::pedantic)]

use libc::sockaddr;

include!(concat!(env!("OUT_DIR"), "/dat.rs"));

macro_rules! published_sizes {
    ($($type:ident = $bytes:literal),* $(,)?) => {
        $(const _: () = assert!(
            size_of::<$type>() == $bytes,
            concat!(stringify!($type), " is not of its published size")
        );)*
    };
}

published_sizes! {
    DAT_PROVIDER = 648, DAT_PROVIDER_INFO = 268, DAT_EVENT = 120,
    DAT_DTO_COMPLETION_EVENT_DATA = 32,
    DAT_CR_ARRIVAL_EVENT_DATA = 40, DAT_CONNECTION_EVENT_DATA = 24, DAT_IA_ATTR = 688,
    DAT_PROVIDER_ATTR = 520, DAT_EP_ATTR = 88, DAT_EP_PARAM = 184, DAT_EVD_PARAM = 32,
    DAT_LMR_PARAM = 80, DAT_RMR_PARAM = 48, DAT_CNO_PARAM = 32, DAT_CR_PARAM = 40,
    DAT_PSP_PARAM = 32, DAT_RSP_PARAM = 32, DAT_CSP_PARAM = 32, DAT_PZ_PARAM = 8, DAT_SRQ_ATTR = 12,
    DAT_SRQ_PARAM = 48, DAT_COMM = 12, DAT_LMR_TRIPLET = 16, DAT_RMR_TRIPLET = 16,
    DAT_REGION_DESCRIPTION = 16, DAT_OS_WAIT_PROXY_AGENT = 16, DAT_CONTEXT = 8,
    DAT_IB_EXTENSION_EVENT_DATA = 64,
}
