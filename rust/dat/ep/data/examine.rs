// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Checks the arguments of posts.

use super::Post;
use crate::{
    dat::{
        ep::{
            Ep,
            EpAttr,
            EpQp,
            Inner, //
        },
        prelude::*,
        pz::{
            add_segments,
            Pz,
            Recent,
            Use, //
        },
    },
    model::{
        completion::CompletionFlags,
        dto::{
            Dto,
            PostMark, //
        },
        event::Operation,
        handle::Direction, //
    },
    rdma::wr::SgList,
};

impl Ep {
    /// Checks a post. Returns the DTO, and fills `list` with its segments.
    #[inline(always)]
    pub(in crate::dat::ep) fn examine(
        &self,
        operation: Operation,
        inner: &mut Inner,
        post: &Post<'_>,
        list: &mut SgList,
    ) -> DatResult<Dto> {
        let mode = inner.attr.mode(operation.direction());
        let flags = CompletionFlags::of_dto(post.flags, operation, mode)
            .ok_or(DatError::Invalid(Arg::Flags))?;
        let limit = iov_limit(&inner.attr, operation);
        let exceeds = |count| usize::try_from(limit).map_or(true, |limit| count > limit);
        let too_many = DatError::Invalid(Arg::SegmentCount);
        if exceeds(post.local.len()) {
            return Err(too_many);
        }
        let recent = match operation.direction() {
            Direction::Request => &mut inner.recent.requests,
            Direction::Receive => &mut inner.recent.receives,
        };
        let length = self.gather(operation, inner.parts.pz()?, recent, post, list)?;
        // A segment of memory that is not contiguous for the device takes several entries.
        if exceeds(list.len()) {
            return Err(too_many);
        }
        Ok(Dto {
            cookie: post.cookie,
            operation,
            flags,
            length,
            posted: PostMark::NONE,
        })
    }

    /// Fills the scatter/gather list. Returns the number of bytes in it.
    #[inline(always)]
    fn gather(
        &self,
        operation: Operation,
        pz: &Pz,
        recent: &mut Recent,
        post: &Post<'_>,
        list: &mut SgList,
    ) -> DatResult<u64> {
        let to = if operation.writes_local_memory() {
            Use::Write
        } else {
            Use::Read
        };
        let length = if operation.names_local_rmrs() {
            add_segments(post.local, |segment| pz.add_rmr(list, segment))?
        } else {
            pz.add_recent(recent, list, post.local, to)?
        };
        if length > self.context.ia.attr().max_message_size {
            return Err(Kind::LengthError.into());
        }
        let remote = &post.remote;
        operation.check_remote(length, remote.address, remote.length)?;
        Ok(length)
    }
}

/// Checks whether the driver carries out a request of this length.
///
/// # Errors
///
/// MODEL_NOT_SUPPORTED.
#[inline]
pub(super) fn check_length(dto: &Dto, qp: &EpQp) -> DatResult {
    if dto.length == 0 && dto.operation.is_rdma_read() && !qp.answers_empty_reads() {
        return Err(Kind::ModelNotSupported.into());
    }
    Ok(())
}

/// Returns the number of segments that the attributes allow.
fn iov_limit(attr: &EpAttr, operation: Operation) -> u32 {
    match operation {
        Operation::Receive => attr.max_recv_iov,
        Operation::RdmaRead => attr.max_rdma_read_iov,
        Operation::RdmaWrite | Operation::RdmaWriteImmed => attr.max_rdma_write_iov,
        // These calls take one segment.
        Operation::RdmaReadToRmr | Operation::FetchAdd | Operation::CmpSwap => 1,
        _ => attr.max_request_iov,
    }
}
