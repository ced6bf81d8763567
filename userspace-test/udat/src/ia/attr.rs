// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Attributes of an IA and of its provider.

use super::Ia;
use crate::abi::*;
use crate::extension;
use crate::foreign::{name_field, Named};
use crate::qualifier::Mapping;
use libkdapl::{IaQuery, Transport};

/// `DAT_IA_FIELD_ALL` and `DAT_PROVIDER_FIELD_ALL`.
pub const IA_FIELDS: DAT_IA_ATTR_MASK = 0x3f_ffff_ffff;
pub const PROVIDER_FIELDS: DAT_PROVIDER_ATTR_MASK = 0x7fff_ffff;

/// Returns the attributes that programs look up by name.
pub fn named(limits: &IaQuery) -> Named {
    let mode = match limits.transport {
        Transport::InfiniBand => "IB",
        Transport::RoCE => "ROCE",
        Transport::IWarp => "IWARP",
        Transport::Other(_) => "OTHER",
    };
    let mut list = vec![
        ("DAT_IB_PROVIDER_NAME", "kdapl"),
        ("DAT_IB_DEVICE_NAME", limits.adapter_name.as_str()),
        ("DAT_IB_CONNECTIVITY_MODE", mode),
        ("DAT_IB_RDMA_READ", "TRUE"),
    ];
    let mtu = limits.raw.mtu.to_string();
    if limits.raw.mtu != 0 {
        list.push(("DAT_IB_TRANSPORT_MTU", &mtu));
    }
    list.extend(extension::attributes(limits.extensions).into_iter().map(|name| (name, "TRUE")));
    Named::new(&list)
}

/// Converts a limit; a larger one becomes the maximum of DAT's field.
fn count(limit: u32) -> DAT_COUNT {
    DAT_COUNT::try_from(limit).unwrap_or(DAT_COUNT::MAX)
}

fn length(limit: u64) -> DAT_SEG_LENGTH {
    DAT_SEG_LENGTH::try_from(limit).unwrap_or(DAT_SEG_LENGTH::MAX)
}

pub fn ia(ia: &Ia) -> DAT_IA_ATTR {
    let raw = &ia.limits.raw;
    DAT_IA_ATTR {
        adapter_name: name_field(&ia.limits.adapter_name),
        vendor_name: name_field(&format!("{:#x}", raw.vendor_id)),
        hardware_version_major: raw.hw_version,
        hardware_version_minor: 0,
        firmware_version_major: (raw.fw_version >> 32) as u32,
        firmware_version_minor: raw.fw_version as u32,
        ia_address_ptr: ia.address(),
        max_eps: count(raw.max_eps),
        max_dto_per_ep: count(raw.max_dto_per_ep),
        max_rdma_read_per_ep_in: count(raw.max_rdma_read_per_ep_in),
        max_rdma_read_per_ep_out: count(raw.max_rdma_read_per_ep_out),
        max_evds: count(raw.max_evds),
        max_evd_qlen: count(raw.max_evd_qlen),
        max_iov_segments_per_dto: count(raw.max_iov_segments_per_dto),
        max_lmrs: count(raw.max_lmrs),
        max_lmr_block_size: length(raw.max_lmr_size),
        max_lmr_virtual_address: u64::MAX,
        max_pzs: count(raw.max_pzs),
        max_message_size: length(raw.max_message_size),
        max_rdma_size: length(raw.max_rdma_size),
        max_rmrs: count(raw.max_rmrs),
        max_rmr_target_address: u64::MAX,
        max_srqs: count(raw.max_srqs),
        max_ep_per_srq: if raw.max_srqs == 0 { 0 } else { count(raw.max_eps) },
        max_recv_per_srq: count(raw.max_recv_per_srq),
        max_iov_segments_per_rdma_read: count(raw.max_iov_segments_per_rdma_read),
        max_iov_segments_per_rdma_write: count(raw.max_iov_segments_per_rdma_write),
        max_rdma_read_in: count(raw.max_rdma_read_per_ep_in),
        max_rdma_read_out: count(raw.max_rdma_read_per_ep_out),
        max_rdma_read_per_ep_in_guaranteed: DAT_TRUE,
        max_rdma_read_per_ep_out_guaranteed: DAT_TRUE,
        zb_supported: raw.zb_supported,
        extension_supported: extension::supported(ia.limits.extensions),
        extension_version: extension::VERSION,
        num_transport_attr: 0,
        transport_attr: std::ptr::null_mut(),
        num_vendor_attr: 0,
        vendor_attr: std::ptr::null_mut(),
    }
}

pub fn provider(ia: &Ia) -> DAT_PROVIDER_ATTR {
    let raw = &ia.limits.raw;
    // DAT has a single limit: the size that every message can carry.
    let private = raw.max_private_data_connect;
    let private = private.min(raw.max_private_data_accept).min(raw.max_private_data_reject);
    DAT_PROVIDER_ATTR {
        provider_name: name_field(&ia.origin.name),
        provider_version_major: 1,
        provider_version_minor: 0,
        dapl_version_major: 2,
        dapl_version_minor: 0,
        // Bits, of which that of virtual memory is 0.
        lmr_mem_types_supported: DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL,
        // Posting a DTO copies the list of segments.
        iov_ownership_on_return: DAT_IOV_CONSUMER,
        dat_qos_supported: DAT_QOS_HIGH_THROUGHPUT
            | DAT_QOS_LOW_LATENCY
            | DAT_QOS_ECONOMY
            | DAT_QOS_PREMIUM,
        completion_flags_supported: DAT_COMPLETION_SUPPRESS_FLAG
            | DAT_COMPLETION_SOLICITED_WAIT_FLAG
            | DAT_COMPLETION_UNSIGNALLED_FLAG
            | DAT_COMPLETION_BARRIER_FENCE_FLAG
            | DAT_COMPLETION_EVD_THRESHOLD_FLAG,
        is_thread_safe: ia.origin.thread_safe.into(),
        max_private_data_size: count(private),
        supports_multipath: DAT_FALSE,
        ep_creator: DAT_PSP_CREATES_EP_IFASKED,
        pz_support: DAT_PZ_UNIQUE,
        optimal_buffer_alignment: DAT_OPTIMAL_ALIGNMENT,
        evd_stream_merging_supported: [[DAT_TRUE; 6]; 6],
        srq_supported: (raw.max_srqs != 0).into(),
        srq_watermarks_supported: (raw.max_srqs != 0).into(),
        srq_ep_pz_difference_supported: DAT_FALSE,
        srq_info_supported: (raw.max_srqs != 0).into(),
        ep_recv_info_supported: 1,
        lmr_sync_req: DAT_FALSE,
        dto_async_return_guaranteed: DAT_TRUE,
        rdma_write_for_rdma_read_req: (ia.limits.transport == Transport::IWarp).into(),
        rdma_read_lmr_rmr_context_exposure: (ia.limits.transport == Transport::IWarp).into(),
        rmr_scope_supported: DAT_RMR_SCOPE_PZ,
        is_signal_safe: DAT_FALSE,
        ha_supported: DAT_FALSE,
        ha_loadbalancing: 0,
        num_provider_specific_attr: ia.attributes.count(),
        provider_specific_attr: ia.attributes.address(),
    }
}

impl Ia {
    /// Returns the mapping of connection qualifiers of this IA.
    pub fn mapping(&self) -> Mapping {
        self.origin.options.mapping
    }
}
