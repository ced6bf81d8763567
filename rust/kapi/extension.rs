// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! InfiniBand extensions: RDMA Write with immediate data, and atomic operations.

use super::{
    dto::{
        post_to_memory,
        Common, //
    },
    export::{
        export,
        In, //
    },
};
use crate::{
    dat::ep::Operands,
    model::{
        event::{
            DtoStatus,
            Operation, //
        },
        handle::KernelHandle, //
    },
};
use kdapl_bindings as bindings;

/// Returns `event_extension_data` of a data transfer operation (DTO): the words of a
/// `DAT_IB_EXTENSION_EVENT_DATA`, all 0 for an operation of DAT's own.
pub(super) fn event_data(operation: Operation, status: DtoStatus, immed_data: u32) -> [u64; 8] {
    let (head, data) = match head(operation, status) {
        Some(head) => (head, immed_data.into()),
        // No extension: the consumer does not read the field.
        None => (0, 0),
    };
    [head, data, 0, 0, 0, 0, 0, 0]
}

/// Returns the first word of the extension data, or `None` if the operation is no extension.
fn head(operation: Operation, status: DtoStatus) -> Option<u64> {
    let kind = match operation {
        Operation::FetchAdd => bindings::DAT_IB_FETCH_AND_ADD,
        Operation::CmpSwap => bindings::DAT_IB_CMP_AND_SWAP,
        Operation::RdmaWriteImmed => bindings::DAT_IB_RDMA_WRITE_IMMED,
        Operation::RecvImmed => bindings::DAT_IB_RDMA_WRITE_IMMED_DATA,
        Operation::RecvMsgImmed => bindings::DAT_IB_RECV_IMMED_DATA,
        _ => return None,
    };
    let status = match status {
        DtoStatus::Success => bindings::DAT_OP_SUCCESS,
        _ => bindings::DAT_IB_OP_ERR,
    };
    // `type` is the lower half of a little-endian number.
    const { assert!(cfg!(target_endian = "little")) };
    Some(u64::from(kind) | (u64::from(status) << 32))
}

export! {
    /// `dat_ib_post_rdma_write_immed`.
    fn dat_ib_post_rdma_write_immed(
        ep: KernelHandle,
        count: i32,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        peer: In<bindings::DAT_RMR_TRIPLET>,
        immed_data: u32,
        flags: u32,
    ) {
        let common = Common { count, local, cookie, flags };
        let operands = Operands { immed_data, ..Operands::default() };
        post_to_memory(ep, Operation::RdmaWriteImmed, &common, &peer, operands)
    }

    /// `dat_ib_post_fetch_and_add`.
    fn dat_ib_post_fetch_and_add(
        ep: KernelHandle,
        compare_add: u64,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        peer: In<bindings::DAT_RMR_TRIPLET>,
        flags: u32,
    ) {
        let common = Common { count: 1, local, cookie, flags };
        let operands = Operands { compare_add, ..Operands::default() };
        post_to_memory(ep, Operation::FetchAdd, &common, &peer, operands)
    }

    /// `dat_ib_post_cmp_and_swap`.
    fn dat_ib_post_cmp_and_swap(
        ep: KernelHandle,
        compare_add: u64,
        swap: u64,
        local: In<bindings::DAT_LMR_TRIPLET>,
        cookie: bindings::DAT_CONTEXT,
        peer: In<bindings::DAT_RMR_TRIPLET>,
        flags: u32,
    ) {
        let common = Common { count: 1, local, cookie, flags };
        let operands = Operands { compare_add, swap, ..Operands::default() };
        post_to_memory(ep, Operation::CmpSwap, &common, &peer, operands)
    }
}
