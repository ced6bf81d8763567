// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Outcomes of a connect.

use crate::context::Context;
use crate::expect::{connection, same};
use crate::tests::connect::{carried, Ends};
use anyhow::{Context as _, Result};
use libkdapl::{ConnectionEvent, EpState};

/// Accepts with the server's end, and waits for the connection.
pub fn accepted(context: &Context, ends: &Ends) -> Result<()> {
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    Ok(())
}

/// Checks that `event` is the only one, that the endpoint is DISCONNECTED and its receive flushed,
/// and that it connects after a reset.
pub fn failed_as(context: &Context, ends: &Ends, event: ConnectionEvent) -> Result<()> {
    let client = &ends.client;
    connection(&context.next(&client.connect)?, event)?;
    same("state", client.ep.query()?.state, EpState::Disconnected)?;
    context.next(&client.recv).context("the posted receive")?;
    context.quiet(&client.connect)?;
    client.ep.reset()?;
    same("state", client.ep.query()?.state, EpState::Unconnected)?;
    ends.call(context, b"again")?;
    let mut cr = ends.listener.request(context)?;
    carried("request", &cr.query()?.private_data, b"again")?;
    cr.accept(&ends.server.ep, &[])?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)
}
