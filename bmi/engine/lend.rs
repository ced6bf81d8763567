// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Data credits beyond the window, for a receive whose message is on its way behind others.
//!
//! A peer without data credits cannot send, and its credits come back when a consumer takes its
//! messages. If the consumer waits for a message that comes after these, both sides would wait for
//! each other. So while a receive waits, the engine returns the credits that it owes at once, and
//! *lends* further ones, up to a limit for each rail and one for all peers. A lent credit is paid
//! back when an arrival is taken, or forgotten when the rail closes. If all loans are out, a peer
//! may get none. It is looked at again when its next message arrives. That is its answer to PING,
//! at the latest.

use super::{
    peer::{
        Link,
        PeerId,
        Rail,
        MAX_RAILS, //
    },
    Engine,
    Storage, //
};

impl<S: Storage> Engine<S> {
    /// Returns or lends credits on each rail on which a peer has none, if a receive waits.
    pub(super) fn lend(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get(id.0) else {
            return;
        };
        if peer.receives > 0 && peer.phase.may_send() {
            for rail in 0..MAX_RAILS {
                self.lend_on(id, rail);
            }
        }
    }

    fn lend_on(&mut self, id: PeerId, rail: usize) {
        let (mut room, limit) = (self.room(), self.config.lend);
        let Some(peer) = self.peers.get_mut(id.0) else {
            return;
        };
        let Some(state) = peer.rails.get_mut(rail) else {
            return;
        };
        if state.link != Link::Up || !state.credits.peer_has_none() {
            return;
        }
        for _ in 0..state.credits.loan() {
            if room == 0 || state.lent >= limit || self.lent >= self.config.lend_all {
                break;
            }
            room = room.saturating_sub(1);
            state.lent = state.lent.saturating_add(1);
            self.lent = self.lent.saturating_add(1);
            peer.promise = peer.promise.saturating_add(1);
            self.reserved = self.reserved.saturating_add(1);
            state.credits.lend();
        }
        state.asked |= state.credits.owes_data();
    }

    /// Closes a rail, and forgets what was lent on it. Returns the state that it had.
    pub(super) fn take_down(&mut self, id: PeerId, rail: usize) -> Option<Link> {
        let rail = self.peers.get_mut(id.0)?.rails.get_mut(rail)?;
        let Rail { link, lent, .. } = core::mem::replace(rail, Rail::DOWN);
        self.lent = self.lent.saturating_sub(lent);
        Some(link)
    }

    /// Returns the data credits that are lent to all peers.
    pub(crate) const fn lent(&self) -> u32 {
        self.lent
    }
}
