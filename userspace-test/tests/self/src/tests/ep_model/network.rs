// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Possible acts of the network on an endpoint.

use crate::rust::model::ep::{self, Call, Input, Phase, Progress};

/// Events that may have reached an endpoint by now, or may still reach it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// A connect to its reserved service point.
    pub requested: bool,
    /// The accept of this attempt.
    pub accepted: bool,
    /// The reject of this attempt.
    pub rejected: bool,
    /// A reject of the transport, without a listener. `rdma_cm` reports it as the peer's while the
    /// listener is ending (`docs/ioctl/service-points.md`, `KDAPL_PSP_FREE`).
    pub turned: bool,
    /// The time-out of the connect.
    pub timed_out: bool,
    /// The peer's disconnect, reset or free.
    pub peer_ended: bool,
    /// The peer's time-out.
    pub peer_timed_out: bool,
    /// Set over TCP. The end of the peer may break the connection. An accept is not confirmed, so
    /// that the connection is established before the peer's end is noticed. If a listener goes
    /// before siw has seen a caller, siw lets that caller wait in vain.
    pub tcp: bool,
}

impl Network {
    /// Returns the inputs that a phase may get.
    pub fn inputs(self, phase: Phase) -> Vec<Input> {
        let peer_over = self.peer_ended || self.peer_timed_out;
        let breaks = peer_over && self.tcp;
        let possible: &[(bool, Input)] = match phase {
            Phase::Reserved(_) => &[(self.requested, Call::Requested.into())],
            Phase::Connecting(_) => &[
                (self.accepted, ep::Network::Established.into()),
                (self.rejected || self.turned, ep::Network::PeerRejected.into()),
                (self.turned, ep::Network::NonPeerRejected.into()),
                (self.turned && self.tcp, ep::Network::Unreachable.into()),
                (self.timed_out, ep::Network::TimedOut.into()),
                (peer_over, ep::Network::PeerDisconnected.into()),
            ],
            Phase::Accepting(_) => &[
                (self.accepted || breaks, ep::Network::Established.into()),
                (peer_over, ep::Network::AcceptFailed.into()),
                (peer_over, ep::Network::PeerDisconnected.into()),
            ],
            Phase::Connected(_) => &[
                (peer_over, ep::Network::PeerDisconnected.into()),
                (breaks, ep::Network::Broken.into()),
            ],
            Phase::Draining => &[
                (true, Progress::RequestsIdle.into()),
                (true, Progress::Idle.into()),
                (peer_over, ep::Network::PeerDisconnected.into()),
                (breaks, ep::Network::Broken.into()),
            ],
            Phase::Flushing(_) => &[(true, Progress::Idle.into())],
            // No act closes a ready gate.
            Phase::Gated(_) | Phase::GatedEnded(_) => &[],
            Phase::Unconnected(_)
            | Phase::Passive(_)
            | Phase::Tentative(_)
            | Phase::Disconnected
            | Phase::Freed => &[],
        };
        possible.iter().filter(|(when, _)| *when).map(|(_, input)| *input).collect()
    }
}
