// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The InfiniBand extensions of DAT: RDMA write with immediate data, and atomic operations.

use super::{Dto, Ep};
use crate::error::Result;
use crate::event::DtoOperation;
use crate::flags::CompletionFlags;
use crate::Segment;
use std::slice;

impl<'a> Dto<'a> {
    /// An RDMA write with immediate data, with what [`Ep::post_rdma_write_immed`] takes.
    #[must_use]
    pub fn rdma_write_immed(
        segments: &'a [Segment],
        remote: Segment,
        immed_data: u32,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Self {
        let operation = DtoOperation::RdmaWriteImmed;
        let mut dto = Self::new(operation, segments, Some(remote), cookie, flags);
        dto.0.immed_data = immed_data;
        dto
    }

    /// A fetch and add, with what [`Ep::post_fetch_and_add`] takes.
    #[must_use]
    pub fn fetch_and_add(
        add: u64,
        local: &'a Segment,
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Self {
        let (operation, local) = (DtoOperation::FetchAdd, slice::from_ref(local));
        let mut dto = Self::new(operation, local, Some(remote), cookie, flags);
        dto.0.compare_add = add;
        dto
    }

    /// A compare and swap, with what [`Ep::post_cmp_and_swap`] takes.
    #[must_use]
    pub fn cmp_and_swap(
        compare: u64,
        swap: u64,
        local: &'a Segment,
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Self {
        let (operation, local) = (DtoOperation::CmpSwap, slice::from_ref(local));
        let mut dto = Self::new(operation, local, Some(remote), cookie, flags);
        (dto.0.compare_add, dto.0.swap) = (compare, swap);
        dto
    }
}

impl Ep {
    /// Posts an RDMA write of `segments` to the peer's `remote`, which takes one of the peer's
    /// receives: that completes as [`RecvImmed`](DtoOperation::RecvImmed) once all bytes are there,
    /// with `immed_data` and with the number of bytes written. Its memory is left alone.
    ///
    /// The four bytes of `immed_data` travel as they lie in memory.
    ///
    /// # Errors
    /// As [`post_rdma_write`](Self::post_rdma_write); `MODEL_NOT_SUPPORTED` where there is no
    /// [`IMMED_DATA`](crate::Extensions::IMMED_DATA).
    pub fn post_rdma_write_immed(
        &self,
        segments: &[Segment],
        remote: Segment,
        immed_data: u32,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post_dto(&Dto::rdma_write_immed(segments, remote, immed_data, cookie, flags))
    }

    /// Adds `add` (modulo 2^64) to the 64 bits of the peer's `remote`; `local` gets what was there
    /// before, both in the byte order of their machine. No other atomic operation of that device
    /// comes in between.
    ///
    /// `remote` is aligned to 8 bytes, in a region with
    /// [`REMOTE_ATOMIC`](crate::Privileges::REMOTE_ATOMIC); `local` has 8 bytes and may be written.
    ///
    /// # Errors
    /// As [`post_rdma_read`](Self::post_rdma_read); `LENGTH_ERROR` unless `local` has 8 bytes,
    /// `INVALID_PARAMETER` (argument 5) for an address that is not aligned; `MODEL_NOT_SUPPORTED`
    /// where there is no [`FETCH_AND_ADD`](crate::Extensions::FETCH_AND_ADD).
    pub fn post_fetch_and_add(
        &self,
        add: u64,
        local: Segment,
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post_dto(&Dto::fetch_and_add(add, &local, remote, cookie, flags))
    }

    /// Sets the 64 bits of the peer's `remote` to `swap` if they are `compare`; `local` gets what was
    /// there before, in either case. Otherwise as [`post_fetch_and_add`](Self::post_fetch_and_add).
    ///
    /// # Errors
    /// As there, with argument 6 for the address;
    /// [`CMP_AND_SWAP`](crate::Extensions::CMP_AND_SWAP) is what has to be there.
    pub fn post_cmp_and_swap(
        &self,
        compare: u64,
        swap: u64,
        local: Segment,
        remote: Segment,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<()> {
        self.post_dto(&Dto::cmp_and_swap(compare, swap, &local, remote, cookie, flags))
    }
}
