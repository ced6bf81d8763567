// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Outcomes of transfers that must fail.

use crate::context::Context;
use crate::end::{End, Pair};
use crate::expect::{connection_over, one_of};
use anyhow::{bail, Result};
use libkdapl::{DtoStatus, Error, Event, Type};

/// Waits for the end of both connections.
pub fn both_over(context: &Context, pair: &Pair) -> Result<()> {
    for end in [&pair.client, &pair.server] {
        connection_over(&context.next(&end.connect)?)?;
    }
    Ok(())
}

/// Checks that an operation was refused at once, or that its completion on `end` has one of
/// `statuses`.
pub fn fails(
    context: &Context,
    end: &End,
    posted: Result<(), Error>,
    statuses: &[DtoStatus],
) -> Result<()> {
    match posted {
        Err(error) => one_of::<()>(
            Err(error),
            &[
                (Type::INVALID_PARAMETER, None),
                (Type::PROTECTION_VIOLATION, None),
                (Type::PRIVILEGES_VIOLATION, None),
                (Type::LENGTH_ERROR, None),
            ],
        ),
        Ok(()) => match context.next(&end.request)? {
            Event::Dto(dto) if statuses.contains(&dto.status) => Ok(()),
            other => bail!("expected one of {statuses:?}, got {other}"),
        },
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

/// Soft-RoCE loses the reason why it stopped a request of its own side. Then it is only flushed.
pub const LOCAL: [DtoStatus; 3] =
    [DtoStatus::LocalProtection, DtoStatus::LocalLength, DtoStatus::Flushed];
/// Soft-RoCE may also report a bad receive buffer as a malformed request.
pub const RECEIVE: [DtoStatus; 4] = [
    DtoStatus::LocalLength,
    DtoStatus::LocalProtection,
    DtoStatus::LocalEp,
    DtoStatus::RemoteResponder,
];
