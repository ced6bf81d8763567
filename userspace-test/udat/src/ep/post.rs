// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posting of data transfer operations (DTOs).

use super::Ep;
use crate::abi::*;
use crate::entry::entry;
use crate::foreign::{self, with_segments, word};
use crate::object::find;
use crate::ret::Result;
use libkdapl::{CompletionFlags, DtoOperation, Segment};

/// Posts an operation. The Endpoint is resolved first, so that an invalid handle is reported before
/// other errors.
fn post(
    ep: DAT_EP_HANDLE,
    operation: DtoOperation,
    (count, iov): (DAT_COUNT, *mut DAT_LMR_TRIPLET),
    cookie: DAT_DTO_COOKIE,
    flags: DAT_COMPLETION_FLAGS,
    remote: impl FnOnce() -> Result<Option<Segment>>,
) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        let remote = remote()?;
        with_segments(iov, count, (2, 3), |segments| {
            let flags = CompletionFlags(flags);
            Ok(ep.dat.post(operation, segments, remote, word(cookie), flags)?)
        })
    })
}

pub extern "C" fn post_send(
    ep: DAT_EP_HANDLE,
    count: DAT_COUNT,
    iov: *mut DAT_LMR_TRIPLET,
    cookie: DAT_DTO_COOKIE,
    flags: DAT_COMPLETION_FLAGS,
) -> DAT_RETURN {
    post(ep, DtoOperation::Send, (count, iov), cookie, flags, || Ok(None))
}

pub extern "C" fn post_recv(
    ep: DAT_EP_HANDLE,
    count: DAT_COUNT,
    iov: *mut DAT_LMR_TRIPLET,
    cookie: DAT_DTO_COOKIE,
    flags: DAT_COMPLETION_FLAGS,
) -> DAT_RETURN {
    post(ep, DtoOperation::Receive, (count, iov), cookie, flags, || Ok(None))
}

pub extern "C" fn post_rdma_read(
    ep: DAT_EP_HANDLE,
    count: DAT_COUNT,
    iov: *mut DAT_LMR_TRIPLET,
    cookie: DAT_DTO_COOKIE,
    remote: *const DAT_RMR_TRIPLET,
    flags: DAT_COMPLETION_FLAGS,
) -> DAT_RETURN {
    let remote = || foreign::remote(remote, 5).map(Some);
    post(ep, DtoOperation::RdmaRead, (count, iov), cookie, flags, remote)
}

pub extern "C" fn post_rdma_write(
    ep: DAT_EP_HANDLE,
    count: DAT_COUNT,
    iov: *mut DAT_LMR_TRIPLET,
    cookie: DAT_DTO_COOKIE,
    remote: *const DAT_RMR_TRIPLET,
    flags: DAT_COMPLETION_FLAGS,
) -> DAT_RETURN {
    let remote = || foreign::remote(remote, 5).map(Some);
    post(ep, DtoOperation::RdmaWrite, (count, iov), cookie, flags, remote)
}

pub extern "C" fn post_send_with_invalidate(
    ep: DAT_EP_HANDLE,
    count: DAT_COUNT,
    iov: *mut DAT_LMR_TRIPLET,
    cookie: DAT_DTO_COOKIE,
    flags: DAT_COMPLETION_FLAGS,
    invalidate: DAT_BOOLEAN,
    context: DAT_RMR_CONTEXT,
) -> DAT_RETURN {
    if invalidate == DAT_FALSE {
        return post_send(ep, count, iov, cookie, flags);
    }
    let rmr = || Ok(Some(Segment { context, ..Default::default() }));
    post(ep, DtoOperation::SendWithInvalidate, (count, iov), cookie, flags, rmr)
}

pub extern "C" fn post_rdma_read_to_rmr(
    ep: DAT_EP_HANDLE,
    local: *const DAT_RMR_TRIPLET,
    cookie: DAT_DTO_COOKIE,
    remote: *const DAT_RMR_TRIPLET,
    flags: DAT_COMPLETION_FLAGS,
) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        let (local, remote) = (foreign::remote(local, 2)?, foreign::remote(remote, 4)?);
        let (cookie, flags) = (word(cookie), CompletionFlags(flags));
        Ok(ep.dat.post_rdma_read_to_rmr(local, remote, cookie, flags)?)
    })
}
