// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Conversion of Endpoint attributes between DAT's structure and the kernel's.

use crate::abi::*;
use crate::ret::{Result, Ret};
use libkdapl::EpAttr;

/// Converts the program's attributes; `argument` is their position among the arguments of the call.
pub fn from_dat(attr: &DAT_EP_ATTR, argument: u16) -> Result<EpAttr> {
    let count = |count: DAT_COUNT| u32::try_from(count).map_err(|_| Ret::argument(argument));
    Ok(EpAttr {
        max_message_size: attr.max_message_size.into(),
        max_rdma_size: attr.max_rdma_size.into(),
        service_type: attr.service_type,
        qos: attr.qos,
        recv_completion_flags: attr.recv_completion_flags,
        request_completion_flags: attr.request_completion_flags,
        max_recv_dtos: count(attr.max_recv_dtos)?,
        max_request_dtos: count(attr.max_request_dtos)?,
        max_recv_iov: count(attr.max_recv_iov)?,
        max_request_iov: count(attr.max_request_iov)?,
        max_rdma_read_in: count(attr.max_rdma_read_in)?,
        max_rdma_read_out: count(attr.max_rdma_read_out)?,
        max_rdma_read_iov: count(attr.max_rdma_read_iov)?,
        max_rdma_write_iov: count(attr.max_rdma_write_iov)?,
        // Its named attributes: see `times`.
        ..Default::default()
    })
}

/// Converts the attributes of an Endpoint for the program.
pub fn to_dat(attr: &EpAttr) -> DAT_EP_ATTR {
    let count = |count: u32| DAT_COUNT::try_from(count).unwrap_or(DAT_COUNT::MAX);
    let length = |length: u64| DAT_SEG_LENGTH::try_from(length).unwrap_or(DAT_SEG_LENGTH::MAX);
    DAT_EP_ATTR {
        service_type: attr.service_type,
        max_message_size: length(attr.max_message_size),
        max_rdma_size: length(attr.max_rdma_size),
        qos: attr.qos,
        recv_completion_flags: attr.recv_completion_flags,
        request_completion_flags: attr.request_completion_flags,
        max_recv_dtos: count(attr.max_recv_dtos),
        max_request_dtos: count(attr.max_request_dtos),
        max_recv_iov: count(attr.max_recv_iov),
        max_request_iov: count(attr.max_request_iov),
        max_rdma_read_in: count(attr.max_rdma_read_in),
        max_rdma_read_out: count(attr.max_rdma_read_out),
        srq_soft_hw: 0,
        max_rdma_read_iov: count(attr.max_rdma_read_iov),
        max_rdma_write_iov: count(attr.max_rdma_write_iov),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_survive_the_way_there_and_back() {
        let attr = EpAttr {
            max_message_size: 1 << 30,
            max_rdma_size: 65_536,
            qos: DAT_QOS_PREMIUM,
            recv_completion_flags: DAT_COMPLETION_UNSIGNALLED_FLAG,
            max_recv_dtos: 1,
            max_request_dtos: 2,
            max_recv_iov: 3,
            max_request_iov: 4,
            max_rdma_read_in: 5,
            max_rdma_read_out: 6,
            max_rdma_read_iov: 7,
            max_rdma_write_iov: 8,
            ..Default::default()
        };
        let back = from_dat(&to_dat(&attr), 6).unwrap();
        assert_eq!(format!("{back:?}"), format!("{attr:?}"));
    }

    #[test]
    fn a_negative_count_is_refused() {
        let attr = DAT_EP_ATTR { max_recv_dtos: -1, ..Default::default() };
        assert_eq!(from_dat(&attr, 6).unwrap_err(), Ret::argument(6));
    }
}
