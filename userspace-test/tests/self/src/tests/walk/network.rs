// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What the network may do to an endpoint, as far as the walk knows.

use crate::rust::model::ep::{self, Call, Input, Phase, Progress};

/// What may have come to an endpoint by now, or may still come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// Somebody called the service point that it is reserved for.
    pub requested: bool,
    /// The request of this attempt was accepted.
    pub accepted: bool,
    /// It was rejected.
    pub rejected: bool,
    /// Nobody may have listened for it.
    pub turned: bool,
    /// Its time may be over.
    pub timed_out: bool,
    /// The peer has ended it, or lets go of it.
    pub peer_ended: bool,
    /// The peer's time may be over.
    pub peer_timed_out: bool,
    /// Over TCP. That the peer ends it may break what is under way; and siw lets a caller wait in vain
    /// that its listener had not looked at when it went.
    pub tcp: bool,
}

impl Network {
    /// What may come in a phase, besides nothing.
    pub fn inputs(self, phase: Phase) -> Vec<Input> {
        let peer_over = self.peer_ended || self.peer_timed_out;
        let breaks = peer_over && self.tcp;
        let possible: &[(bool, Input)] = match phase {
            Phase::Reserved(_) => &[(self.requested, Call::Requested.into())],
            Phase::Connecting(_) => &[
                (self.accepted, ep::Network::Established.into()),
                (self.rejected, ep::Network::PeerRejected.into()),
                (self.turned, ep::Network::NonPeerRejected.into()),
                (self.turned && self.tcp, ep::Network::Unreachable.into()),
                (self.timed_out, ep::Network::TimedOut.into()),
                (peer_over, ep::Network::PeerDisconnected.into()),
            ],
            Phase::Accepting(_) => &[
                (self.accepted, ep::Network::Established.into()),
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
            Phase::Unconnected(_)
            | Phase::Passive(_)
            | Phase::Tentative(_)
            | Phase::Disconnected
            | Phase::Freed => &[],
        };
        possible.iter().filter(|(when, _)| *when).map(|(_, input)| *input).collect()
    }
}
