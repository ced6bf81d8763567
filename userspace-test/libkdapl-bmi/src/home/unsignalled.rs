// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages that are posted without events of their own.
//!
//! An Endpoint executes its requests in their order, so the event of a later message says that the
//! earlier ones were sent, too. Until then they keep their buffers, and their entries in the send
//! queue. Requests that fail end the connection, signalled or not.

use super::messages::Sent;
use crate::bmi::engine::{Meaning, RailId};
use rustc_hash::FxHashMap;

/// Messages of a rail for one event, without the message that has it. A send queue has room for
/// more: for the messages of a window, and for RDMA.
const OF_A_RAIL: usize = 7;

/// The same, of all rails together: each keeps a buffer while its rail is idle.
const OF_ALL: usize = 64;

/// Unsignalled messages of all rails, oldest first.
#[derive(Default)]
pub(super) struct Unsignalled {
    of_rails: FxHashMap<RailId, Vec<Sent>>,
    count: usize,
}

impl Unsignalled {
    /// Returns whether one more message of a rail can go without an event. DONE needs one: its
    /// event ends the operation.
    pub(super) fn has_room(&self, rail: RailId, meaning: Meaning) -> bool {
        let of_rail = self.of_rails.get(&rail).map_or(0, Vec::len);
        meaning != Meaning::Done && of_rail < OF_A_RAIL && self.count < OF_ALL
    }

    /// Adds a message that was posted, for the next event of its rail.
    pub(super) fn add(&mut self, rail: RailId, sent: Sent) {
        self.of_rails.entry(rail).or_default().push(sent);
        self.count += 1;
    }

    /// Takes the messages of a rail.
    pub(super) fn take(&mut self, rail: RailId) -> Vec<Sent> {
        let sent = self.of_rails.remove(&rail).unwrap_or_default();
        self.count -= sent.len();
        sent
    }
}
