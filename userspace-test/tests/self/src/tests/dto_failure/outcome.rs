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

/// Length of a message or RDMA write that siw sends in one piece with its header
/// (`MAX_HDR_INLINE`). Such a request is complete when TCP has taken it. After each piece of a
/// longer one siw looks for the end of the connection, which the peer's refusal may have caused
/// already.
pub const SHORT: usize = 32;

/// Returns the statuses that a [`SHORT`] message for a receive that cannot take it may have.
pub fn refused_send(context: &Context) -> &'static [DtoStatus] {
    refused_with(context, &[DtoStatus::RemoteResponder, DtoStatus::Flushed])
}

/// Returns the statuses that a [`SHORT`] RDMA write refused by the peer may have.
pub fn refused_write(context: &Context) -> &'static [DtoStatus] {
    refused_with(context, &[DtoStatus::RemoteAccess, DtoStatus::Flushed])
}

/// Returns the first status, or both over a link that may lose the peer's answer.
fn refused_with(context: &Context, statuses: &'static [DtoStatus; 2]) -> &'static [DtoStatus] {
    match (context.client.is_iwarp(), context.link_is_spoilt()) {
        (true, _) => &[DtoStatus::Success],
        (_, true) => statuses,
        _ => &statuses[..1],
    }
}
