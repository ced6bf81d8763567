// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! InfiniBand extensions of DAT: RDMA Write with immediate data, and atomic operations.

use super::{Dto, Ep};
use crate::error::Result;
use crate::event::DtoOperation;
use crate::flags::CompletionFlags;
use crate::Segment;
use std::slice;

impl<'a> Dto<'a> {
    /// Makes an RDMA Write with immediate data; the arguments are those of
    /// [`Ep::post_rdma_write_immed`].
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

    /// Makes a Fetch and Add; the arguments are those of [`Ep::post_fetch_and_add`].
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

    /// Makes a Compare and Swap; the arguments are those of [`Ep::post_cmp_and_swap`].
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
    /// Posts an RDMA Write of `segments` to the peer's `remote`, with immediate data. It consumes
    /// one of the peer's receives and leaves its memory unchanged. That receive completes as
    /// [`RecvImmed`](DtoOperation::RecvImmed) once all bytes are written, with `immed_data` and the
    /// number of bytes written.
    ///
    /// The four bytes of `immed_data` are sent in the order in which they lie in memory.
    ///
    /// # Errors
    /// Those of [`post_rdma_write`](Self::post_rdma_write); `MODEL_NOT_SUPPORTED` without
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

    /// Posts a Fetch and Add: adds `add` (modulo 2^64) to the 64 bits of the peer's `remote` and
    /// writes the old value to `local`. Each value is in the byte order of its machine. The
    /// operation is atomic with respect to other atomic operations of the peer's device.
    ///
    /// `remote` is aligned to 8 bytes, in a region with
    /// [`REMOTE_ATOMIC`](crate::Privileges::REMOTE_ATOMIC). `local` has 8 bytes and is writable.
    ///
    /// # Errors
    /// Those of [`post_rdma_read`](Self::post_rdma_read); `LENGTH_ERROR` unless `local` has 8
    /// bytes; `INVALID_PARAMETER` (argument 5) for an address that is not aligned;
    /// `MODEL_NOT_SUPPORTED` without [`FETCH_AND_ADD`](crate::Extensions::FETCH_AND_ADD).
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

    /// Posts a Compare and Swap: sets the 64 bits of the peer's `remote` to `swap` if they equal
    /// `compare`. Writes the old value to `local` in either case. Otherwise like
    /// [`post_fetch_and_add`](Self::post_fetch_and_add).
    ///
    /// # Errors
    /// Those of [`post_fetch_and_add`](Self::post_fetch_and_add), with argument 6 for the address;
    /// `MODEL_NOT_SUPPORTED` without [`CMP_AND_SWAP`](crate::Extensions::CMP_AND_SWAP).
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
