// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Builds the work request of a data transfer operation (DTO).

use super::{
    Operands,
    Post, //
};
use crate::{
    dat::{
        ep::Ep,
        prelude::*, //
    },
    model::{
        completion::CompletionFlags,
        dto::Dto,
        event::Operation, //
    },
    rdma::wr::{
        Atomic,
        Remote,
        SendRequest, //
    },
};

impl Ep {
    /// Returns the work request of a DTO, and whether it is fenced.
    #[inline(always)]
    pub(super) fn work_request(
        &self,
        dto: &Dto,
        post: &Post<'_>,
    ) -> DatResult<(SendRequest, bool)> {
        let remote = Remote {
            addr: post.remote.address,
            rkey: post.remote.context,
        };
        let solicited = dto.flags.has(CompletionFlags::SOLICITED_WAIT);
        let Operands {
            immed_data: imm_data,
            compare_add,
            swap,
        } = post.operands;
        let request = match dto.operation {
            Operation::Send => SendRequest::Send { solicited },
            Operation::SendWithInvalidate => SendRequest::SendWithInv {
                rkey: remote.rkey,
                solicited,
            },
            Operation::RdmaWrite => SendRequest::RdmaWrite(remote),
            Operation::RdmaRead | Operation::RdmaReadToRmr => SendRequest::RdmaRead(remote),
            Operation::RdmaWriteImmed => SendRequest::RdmaWriteWithImm {
                remote,
                imm_data,
                solicited,
            },
            Operation::FetchAdd => SendRequest::Atomic(remote, Atomic::FetchAndAdd(compare_add)),
            Operation::CmpSwap => {
                let compare = compare_add;
                SendRequest::Atomic(remote, Atomic::CmpAndSwp { compare, swap })
            }
            _ => return Err(Kind::NotImplemented.into()),
        };
        let fence =
            dto.flags.has(CompletionFlags::BARRIER_FENCE) && !self.reads_in_order(dto.operation);
        Ok((request, fence))
    }

    /// Returns whether an operation is ordered after earlier RDMA reads without a fence. Over iWARP
    /// a peer answers reads in their order (RFC 5040, section 5.5), and software iWARP fails a
    /// fenced one.
    fn reads_in_order(&self, operation: Operation) -> bool {
        operation.is_rdma_read() && self.context.ia.is_iwarp()
    }
}
