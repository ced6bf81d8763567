// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tables of the routes of rails, and of the addresses of peers.

use crate::address::Hosts;
use crate::bmi::engine::{PeerId, RailId, Route};
use rustc_hash::FxHashMap;

/// Address of a peer.
pub(crate) struct Place {
    pub(crate) hosts: Hosts,
    /// Number of the way that is tried first.
    pub(super) first: usize,
}

impl Place {
    pub(crate) fn new(hosts: Hosts) -> Self {
        Self { hosts, first: 0 }
    }
}

/// Routes of all rails, and addresses of all peers.
#[derive(Default)]
pub(crate) struct Routes {
    pub(super) of_rails: FxHashMap<RailId, Route>,
    /// Addresses to which this side connects, or from which a peer has connected.
    pub(crate) places: FxHashMap<PeerId, Place>,
}
