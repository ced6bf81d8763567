// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Attributes of an Interface Adapter.

use super::private_data;
use crate::{
    model::{
        allowance::Item,
        extension::Extensions, //
    },
    rdma::{
        addr::SockAddr,
        device::{
            Device,
            Transport,
            NAME_LEN, //
        },
        port_address::PortAddress,
    },
    sys::user::most,
};
use kernel::page::PAGE_SIZE;

/// Largest queue length of an EVD, a power of two. Its ring takes 2 MiB.
const MAX_EVD_QLEN: u32 = 32_768;

/// Attributes that are known when an adapter is opened: a part of `DAT_IA_ATTR`.
pub(crate) struct IaAttr {
    pub(crate) adapter_name: [u8; NAME_LEN],
    pub(crate) netdev_name: [u8; NAME_LEN],
    pub(crate) address: SockAddr,
    pub(crate) port: u32,
    pub(crate) transport: Transport,
    pub(crate) vendor_id: u32,
    pub(crate) hw_version: u32,
    pub(crate) fw_version: u64,
    pub(crate) max_lmr_size: u64,
    pub(crate) max_message_size: u64,
    /// Maximum payload of a packet in bytes, or 0 if it is unknown.
    pub(crate) mtu: u32,
    pub(crate) max_eps: u32,
    pub(crate) max_dto_per_ep: u32,
    pub(crate) max_read_in: u32,
    pub(crate) max_read_out: u32,
    pub(crate) max_evds: u32,
    pub(crate) max_evd_qlen: u32,
    pub(crate) max_iov: u32,
    pub(crate) max_read_iov: u32,
    pub(crate) max_lmrs: u32,
    pub(crate) max_pzs: u32,
    /// 0 if work requests of the device cannot register memory.
    pub(crate) max_rmrs: u32,
    /// Largest part of an LMR that an RMR is bound to, in bytes.
    pub(crate) max_rmr_size: u64,
    /// 0 if the device has no Shared Receive Queues (SRQs).
    pub(crate) max_srqs: u32,
    pub(crate) max_recv_per_srq: u32,
    pub(crate) max_srq_iov: u32,
    pub(crate) completion_vectors: u32,
    pub(crate) extensions: Extensions,
    /// LMRs of processes can be created, and RMRs bound to them.
    pub(crate) registers_process_memory: bool,
    /// LMRs of processes may have zero-based addresses.
    pub(crate) zb_supported: bool,
    /// Maximum private data of a request, an accept and a reject, in bytes.
    pub(crate) max_private_data: (u32, u32, u32),
}

impl IaAttr {
    /// Collects the attributes of an adapter on a port of `device`, whose own address is `own`.
    /// Numbers of objects are those that the user of the calling process may have.
    ///
    /// Context: process.
    pub(super) fn new(device: &Device, port: u32, own: &PortAddress) -> Self {
        let limits = device.limits();
        let transport = device.port_transport(port);
        let max_iov = limits
            .max_send_sge
            .min(limits.max_recv_sge)
            .min(kdapl_bindings::KDAPL_IOV_MAX);
        let regions = most(Item::Region, limits.max_mr);
        let driver = device.driver();
        Self {
            adapter_name: device.name(),
            netdev_name: own.netdev,
            address: own.address,
            port,
            transport,
            vendor_id: limits.vendor_id,
            hw_version: limits.hw_version,
            fw_version: limits.fw_version,
            max_lmr_size: limits.max_mr_size.min(device.max_region()),
            max_message_size: u64::from(device.max_message_size(port)),
            mtu: device.mtu(port),
            max_eps: most(Item::QueuePair, limits.max_qp),
            max_dto_per_ep: limits.max_qp_wr.min(limits.max_cqe).min(MAX_EVD_QLEN),
            max_read_in: limits.max_qp_rd_atom.min(255),
            max_read_out: limits.max_qp_init_rd_atom.min(255),
            max_evds: most(Item::CompletionQueue, limits.max_cq),
            // Lengths are rounded up, so that the longest one is such a length itself.
            max_evd_qlen: limits.max_cqe.min(MAX_EVD_QLEN).next_power_of_two(),
            max_iov,
            max_read_iov: limits.max_sge_rd.min(max_iov),
            max_lmrs: regions,
            max_pzs: most(Item::Domain, limits.max_pd),
            max_rmrs: match limits.max_fast_reg_pages {
                0 => 0,
                _ => regions,
            },
            max_rmr_size: u64::from(limits.max_fast_reg_pages).saturating_mul(PAGE_SIZE as u64),
            max_srqs: if device.has_srqs() {
                most(Item::SharedReceiveQueue, limits.max_srq)
            } else {
                0
            },
            max_recv_per_srq: limits.max_srq_wr.min(limits.max_cqe).min(MAX_EVD_QLEN),
            max_srq_iov: limits.max_srq_sge.min(max_iov),
            completion_vectors: device.completion_vectors(),
            extensions: Extensions::new(transport == Transport::Iwarp, limits.has_atomics),
            registers_process_memory: driver.registers_user_memory,
            zb_supported: driver.registers_user_memory && driver.rebases_user_regions,
            max_private_data: private_data::limits(transport),
        }
    }
}
