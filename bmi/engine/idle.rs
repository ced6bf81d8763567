// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Silent peers and idle ones.
//!
//! Open sessions are in a list, by the time of the last message. So a tick looks at the silent ones
//! only, and its cost does not depend on the number of peers.
//!
//! An idle session is given up by agreement: BYE, answered by LEAVE if the peer has no operations
//! either, and by STAY otherwise. The home learns when a session stays, and asks the next one.
//! Between BYE and its answer, posts of this side wait. The side that has asked closes the rails:
//! LEAVE comes after all messages of the other side, while the end of a rail may overtake messages
//! on other rails.

use super::{
    arrive::Message,
    error::Error,
    home::{
        Close,
        Home, //
    },
    peer::{
        PeerId,
        Phase, //
    },
    wire::Kind,
    Engine,
    Storage, //
};

/// Sessions that one call looks at for an idle one.
const SCAN: usize = 64;

impl<S: Storage> Engine<S> {
    /// Reports the time, in any unit that only grows.
    pub(crate) fn tick(&mut self, home: &mut impl Home, now: u64) {
        self.now = self.now.max(now);
        self.expire(home);
        if self.asked.is_some_and(|until| until <= self.now) {
            self.asked = None;
            self.stays = true;
        }
        while let Some(id) = self.longest_silent() {
            let Some(peer) = self.peers.get_mut(id.0) else {
                return;
            };
            if peer.heard.saturating_add(self.config.silence) > self.now {
                return;
            }
            if peer.pinged {
                self.fail(home, id, Error::TimedOut);
                continue;
            }
            peer.notices.ping = true;
            self.heard(id);
            if let Some(peer) = self.peers.get_mut(id.0) {
                peer.pinged = true;
            }
            self.pump(home, id);
        }
    }

    fn longest_silent(&self) -> Option<PeerId> {
        self.peers.first(&self.sessions).map(PeerId)
    }

    /// Records that a peer has sent something.
    pub(super) fn heard(&mut self, id: PeerId) {
        self.unlist(id);
        if let Some(peer) = self.peers.get_mut(id.0) {
            peer.heard = self.now;
            peer.pinged = false;
            peer.listed = true;
            self.peers.push(&mut self.sessions, 0, id.0);
        }
    }

    /// Removes a peer from the list of open sessions.
    pub(super) fn unlist(&mut self, id: PeerId) {
        let listed = self
            .peers
            .get_mut(id.0)
            .is_some_and(|peer| core::mem::take(&mut peer.listed));
        if listed {
            self.peers.unlink(&mut self.sessions, 0, id.0);
        }
    }

    /// Answers PING on the rail on which it came.
    pub(super) fn answer_ping(&mut self, message: &Message) {
        if let Some(rail) = self.rail_mut(message.peer, usize::from(message.rail)) {
            rail.asked = true;
        }
    }

    /// Returns, once, whether a session that was asked to leave has answered STAY, or has not
    /// answered in time. A home that lacks an Endpoint still calls [`Self::give_up_idle`] again.
    pub(crate) fn take_stay(&mut self) -> bool {
        core::mem::take(&mut self.stays)
    }

    /// Gives up the session that is idle for the longest time, since Endpoints are short. Returns
    /// whether there is one. A peer that was asked before and has not answered is given up at once.
    /// One that has answered STAY is not asked again for a while.
    pub(crate) fn give_up_idle(&mut self, home: &mut impl Home) -> bool {
        let until = self.now.saturating_add(self.config.silence);
        let mut next = self.peers.first(&self.sessions);
        for _ in 0..SCAN {
            let Some(key) = next else { break };
            next = self.peers.next(0, key);
            let Some(peer) = self.peers.get_mut(key) else {
                break;
            };
            match peer.phase {
                Phase::Up if peer.is_idle() && peer.stays <= self.now => {
                    peer.phase = Phase::Asked(until);
                    peer.notices.bye = true;
                    self.asked = Some(until);
                    self.pump(home, PeerId(key));
                    return true;
                }
                Phase::Asked(until) if until <= self.now => {
                    self.fail(home, PeerId(key), Error::TimedOut);
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// Processes BYE, LEAVE and STAY.
    pub(super) fn process_farewell(&mut self, home: &mut impl Home, message: &Message) {
        let Some(peer) = self.peers.get_mut(message.peer.0) else {
            return;
        };
        match (message.header.kind, peer.phase) {
            (Kind::Bye, Phase::Up) if peer.ops.is_empty() => {
                peer.phase = Phase::Agreeing;
                peer.notices.leave = true;
            }
            (Kind::Bye, Phase::Up) => peer.notices.stay = true,
            // Both sides have asked. The side that connected agrees.
            (Kind::Bye, Phase::Asked(_)) if peer.active => {
                peer.phase = Phase::Agreeing;
                peer.notices.leave = true;
            }
            (Kind::Leave, Phase::Asked(_)) => {
                self.close(home, message.peer, Close::Graceful, None);
            }
            (Kind::Stay, Phase::Asked(_)) => {
                peer.phase = Phase::Up;
                peer.stays = self.now.saturating_add(self.config.silence);
                self.stays = true;
            }
            _ => {}
        }
    }
}
