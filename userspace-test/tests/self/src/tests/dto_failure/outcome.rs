// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Outcomes of transfers that must fail.

use crate::context::Context;
use crate::end::End;
use anyhow::{bail, Result};
use libkdapl::{DtoStatus, Event};

/// Checks that the next completion on `end` has one of `statuses`.
pub fn completes_as(context: &Context, end: &End, statuses: &[DtoStatus]) -> Result<()> {
    match context.next(&end.request)? {
        Event::Dto(dto) if statuses.contains(&dto.status) => Ok(()),
        other => bail!("expected one of {statuses:?}, got {other}"),
    }
}

/// Returns the statuses that RDMA refused by the peer may have.
pub fn refused_rdma(context: &Context) -> &'static [DtoStatus] {
    match (context.client.is_iwarp(), context.link_is_spoilt()) {
        // The peer may have disconnected while TCP was still sending.
        (true, _) => &[DtoStatus::Success, DtoStatus::RemoteAccess, DtoStatus::LocalEp],
        // The peer's answer may be lost.
        (_, true) => &[DtoStatus::RemoteAccess, DtoStatus::Flushed],
        _ => &[DtoStatus::RemoteAccess],
    }
}
