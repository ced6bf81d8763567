// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The lists that operations are in by their state.

use super::{
    matching::Bucket,
    op::{
        Op,
        OpId,
        Post,
        Queue,
        BY_OFFER,
        BY_STATE, //
    },
    peer::{
        Peer,
        PeerId, //
    },
    table::{
        Entry,
        List,
        Table, //
    },
    Engine,
    Storage,
    MAX_CONTEXTS, //
};
use core::ops::DerefMut;

/// Lists that do not belong to a peer.
pub(super) struct Shared<B> {
    /// Receives and arrivals by peer and tag.
    pub(super) buckets: B,
    /// Complete operations by context.
    pub(super) complete: [List; MAX_CONTEXTS],
    /// Unexpected messages, oldest first.
    pub(super) unexpected: List,
}

impl<B: DerefMut<Target = [Bucket]>> Shared<B> {
    pub(super) const fn new(buckets: B) -> Self {
        Self {
            buckets,
            complete: [List::new(); MAX_CONTEXTS],
            unexpected: List::new(),
        }
    }
}

/// Returns the list that an operation is in.
fn list<'a, P, B>(
    shared: &'a mut Shared<B>,
    peers: &'a mut Table<Peer, P, 1>,
    post: &Post,
    queue: Queue,
) -> Option<&'a mut List>
where
    P: DerefMut<Target = [Entry<Peer, 1>]>,
    B: DerefMut<Target = [Bucket]>,
{
    match queue {
        Queue::Nowhere => None,
        Queue::Complete => shared.complete.get_mut(usize::from(post.context)),
        Queue::Unexpected => Some(&mut shared.unexpected),
        Queue::Receives => Some(&mut shared.bucket_mut(post.peer, post.tag)?.receives),
        Queue::Arrivals => Some(&mut shared.bucket_mut(post.peer, post.tag)?.arrivals),
        Queue::Sends => Some(&mut peers.get_mut(post.peer.0)?.sends),
        Queue::Control => Some(&mut peers.get_mut(post.peer.0)?.control),
        Queue::Data => Some(&mut peers.get_mut(post.peer.0)?.data),
        Queue::Held => Some(&mut peers.get_mut(post.peer.0)?.held),
    }
}

impl<S: Storage> Engine<S> {
    /// Appends an operation to a list, after it was removed from the one it was in.
    pub(super) fn enqueue(&mut self, id: OpId, queue: Queue) {
        self.dequeue(id);
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        let post = op.post;
        if let Some(list) = list(&mut self.shared, &mut self.peers, &post, queue) {
            op.queue = queue;
            self.ops.push(list, BY_STATE, id.0);
        }
        let peer = self.peers.get_mut(post.peer.0);
        if let Some(peer) = peer.filter(|_| queue == Queue::Receives) {
            peer.receives = peer.receives.saturating_add(1);
        }
    }

    /// Removes an operation from its list.
    pub(super) fn dequeue(&mut self, id: OpId) {
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        let (post, queue) = (op.post, core::mem::replace(&mut op.queue, Queue::Nowhere));
        if let Some(list) = list(&mut self.shared, &mut self.peers, &post, queue) {
            self.ops.unlink(list, BY_STATE, id.0);
        }
        let peer = self.peers.get_mut(post.peer.0);
        if let Some(peer) = peer.filter(|_| queue == Queue::Receives) {
            peer.receives = peer.receives.saturating_sub(1);
        }
    }

    /// Lists the receive or the arrival of an offer, so that CANCEL finds it.
    pub(super) fn list_offer(&mut self, id: OpId) {
        let Some(op) = self.op(id).filter(|op| op.has_offer()) else {
            return;
        };
        if let Some(list) = self.shared.offers_mut(op.post.peer, op.peers) {
            self.ops.push(list, BY_OFFER, id.0);
        }
    }

    /// Removes an operation from the list of offers, if it is in one.
    pub(super) fn unlist_offer(&mut self, id: OpId) {
        let Some(op) = self.op(id).filter(|op| op.has_offer()) else {
            return;
        };
        if let Some(list) = self.shared.offers_mut(op.post.peer, op.peers) {
            self.ops.unlink(list, BY_OFFER, id.0);
        }
    }

    /// Returns the receive or the arrival of an offer: that of the peer's operation.
    pub(super) fn find_offer(&mut self, peer: PeerId, operation: u64) -> Option<OpId> {
        let mut next = self.ops.first(self.shared.offers_mut(peer, operation)?);
        while let Some(key) = next {
            let op = self.ops.get(key)?;
            if (op.post.peer, op.peers) == (peer, operation) {
                return Some(OpId(key));
            }
            next = self.ops.next(BY_OFFER, key);
        }
        None
    }

    /// Returns an operation.
    pub(super) fn op(&self, id: OpId) -> Option<&Op> {
        self.ops.get(id.0)
    }

    /// Returns an operation to change it.
    pub(super) fn op_mut(&mut self, id: OpId) -> Option<&mut Op> {
        self.ops.get_mut(id.0)
    }
}
