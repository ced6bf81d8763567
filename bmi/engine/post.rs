// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts of operations.

use super::{
    error::Error,
    home::Home,
    op::{
        Op,
        OpId,
        Post,
        Queue,
        Role,
        BY_PEER, //
    },
    peer::Phase,
    wire::HEADER,
    Engine,
    Storage,
    MAX_CONTEXTS, //
};

/// Bytes of the longest message. With messages of 16 KiB, the peer can describe the memory for it
/// by descriptors of 512 KiB.
pub(crate) const LONGEST: u64 = 1 << 29;

impl<S: Storage> Engine<S> {
    /// Creates an operation. The home stores its buffers under the number, and then starts it with
    /// [`start`](Self::start).
    ///
    /// Errors: `Invalid`, also for a stale peer; `TooLong` for a message longer than allowed;
    /// `NoMemory` if the storage has to grow; `NotConnected` if only the peer can connect, and no
    /// message for a receive is left.
    pub(crate) fn post(&mut self, post: Post) -> Result<OpId, Error> {
        self.check(&post)?;
        let kept = post.role == Role::Receive && self.find_arrival(post.peer, post.tag).is_some();
        let peer = self.peers.get_mut(post.peer.0).ok_or(Error::Invalid)?;
        if !kept && !peer.active && matches!(peer.phase, Phase::Idle | Phase::Closing) {
            return Err(Error::NotConnected);
        }
        let op = Op::new(post, peer.session_of_post());
        if self.room() == 0 {
            return Err(Error::NoMemory);
        }
        self.link(op)
    }

    /// Checks what does not depend on the peer. A home may do so before it registers memory.
    pub(crate) fn check(&self, post: &Post) -> Result<(), Error> {
        let context = usize::from(post.context);
        if post.role == Role::Arrival || context >= MAX_CONTEXTS || !self.is_open(post.context) {
            return Err(Error::Invalid);
        }
        let longest = match post.role {
            Role::Send => LONGEST,
            Role::SendUnexpected => self.unexpected_limit(),
            // Its message may be shorter.
            Role::Receive | Role::Arrival => u64::MAX,
        };
        match post.length > longest {
            true => Err(Error::TooLong),
            false => Ok(()),
        }
    }

    /// Returns the number of bytes that an unexpected message may have. A peer that takes less
    /// makes the operation fail.
    pub(crate) fn unexpected_limit(&self) -> u64 {
        let message = usize::try_from(self.config.message).unwrap_or(usize::MAX);
        u64::try_from(message.saturating_sub(HEADER)).unwrap_or(0)
    }

    /// Inserts an operation, and links it to its peer.
    pub(super) fn link(&mut self, op: Op) -> Result<OpId, Error> {
        let peer = self.peers.get_mut(op.post.peer.0).ok_or(Error::Invalid)?;
        let id = self.ops.insert(op).ok_or(Error::NoMemory)?;
        self.ops.push(&mut peer.ops, BY_PEER, id);
        Ok(OpId(id))
    }

    /// Starts an operation that was just created. It may be complete on return.
    pub(crate) fn start(&mut self, home: &mut impl Home, id: OpId) {
        let Some(op) = self.op(id) else { return };
        let post = op.post;
        match post.role {
            Role::Send | Role::SendUnexpected => {
                self.enqueue(id, Queue::Sends);
                self.prepare(home, id);
            }
            Role::Receive => self.match_receive(home, id),
            Role::Arrival => {}
        }
        let peer = self.peers.get(post.peer.0);
        if peer.is_some_and(|peer| peer.phase == Phase::Idle && peer.active) {
            self.connect(home, post.peer);
        }
        self.pump(home, post.peer);
    }
}
