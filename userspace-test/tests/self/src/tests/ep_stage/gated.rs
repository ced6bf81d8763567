// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! States of an endpoint whose ready gate is closed.

use super::{view_of, with_receive, Stage};
use crate::context::Context;
use crate::end::{End, Gated, Pair, Shape};
use anyhow::Result;
use libkdapl::{Close, EpChange, EpState};

/// RDMA reads that the peer of a gated endpoint accepts and makes. Fewer than the default, so that
/// the negotiated number differs from the endpoint's own.
const PEER_READS: u32 = 3;

/// Connects a pair, of which one side closes its ready gate. Returns the view of that side.
fn gated(context: &Context, active: bool) -> Result<Stage> {
    let pair = Pair::unconnected(context, Shape::default())?;
    let reads = EpChange::new().max_rdma_read_in(PEER_READS).max_rdma_read_out(PEER_READS);
    let (end, peer) =
        if active { (&pair.client, &pair.server) } else { (&pair.server, &pair.client) };
    peer.ep.modify(reads)?;
    let depths = || -> Result<_> {
        let attr = end.ep.query()?.raw.attr;
        Ok((attr.max_rdma_read_in, attr.max_rdma_read_out))
    };
    let own = depths()?;
    pair.connect_gated(context, Gated { client: active, server: !active })?;
    // The peer may be established earlier. Only the negotiated depths tell.
    context.until("the connection is established", || Ok(depths()? != own))?;
    Ok(view_of(context, pair, active))
}

pub fn gated_active(context: &Context) -> Result<Stage> {
    with_receive(gated(context, true)?)?.begins_in(EpState::ActiveConnectionPending)
}

pub fn gated_passive(context: &Context) -> Result<Stage> {
    with_receive(gated(context, false)?)?.begins_in(EpState::CompletionPending)
}

/// The peer disconnects before the gate is opened.
pub fn gated_ended(context: &Context) -> Result<Stage> {
    let stage = gated(context, false)?;
    for peer in stage.hold.iter().filter_map(|held| held.downcast_ref::<End>()) {
        peer.ep.disconnect(Close::Abrupt)?;
    }
    let ended = || Ok(stage.state()? == EpState::DisconnectPending);
    context.until("the connection has ended", ended)?;
    stage.begins_in(EpState::DisconnectPending)
}
