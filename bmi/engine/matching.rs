// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Matching of messages and receives, in order, by peer and tag.
//!
//! Receives and unmatched messages are in hash buckets, so that finding a partner does not depend
//! on the number of peers and operations.

use super::{
    close::is_whole,
    error::Error,
    home::{
        Home,
        Rdma,
        Source, //
    },
    lists::Shared,
    op::{
        OpId,
        Queue,
        State,
        BY_STATE, //
    },
    peer::PeerId,
    table::List,
    wire::{
        Header,
        Kind, //
    },
    Class,
    Engine,
    Storage, //
};
use core::ops::DerefMut;

/// Receives and arrivals of peers and tags with the same hash, oldest first. Receives and arrivals
/// of offers whose peers and operations have the same hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    pub(super) receives: List,
    pub(super) arrivals: List,
    pub(super) offers: List,
}

impl Bucket {
    /// Returns the value that new storage is filled with.
    pub(crate) const fn new() -> Self {
        Self {
            receives: List::new(),
            arrivals: List::new(),
            offers: List::new(),
        }
    }
}

impl<B: DerefMut<Target = [Bucket]>> Shared<B> {
    /// Returns the bucket of a peer and a tag.
    pub(super) fn bucket_mut(&mut self, peer: PeerId, tag: i32) -> Option<&mut Bucket> {
        // A cast that keeps the bits of the tag.
        self.bucket_of((u64::from(peer.0.index()) << 32) | u64::from(tag as u32))
    }

    /// Returns the offers of a peer's operations with the same hash.
    pub(super) fn offers_mut(&mut self, peer: PeerId, operation: u64) -> Option<&mut List> {
        let key = (u64::from(peer.0.index()) << 32) ^ operation;
        Some(&mut self.bucket_of(key)?.offers)
    }

    fn bucket_of(&mut self, key: u64) -> Option<&mut Bucket> {
        // Fibonacci hashing: the multiplier is 2^64 divided by the golden ratio.
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let count = u64::try_from(self.buckets.len()).ok()?;
        let index = hash.checked_rem(count)?;
        self.buckets.get_mut(usize::try_from(index).ok()?)
    }
}

impl<S: Storage> Engine<S> {
    /// Returns the oldest receive for a message.
    pub(super) fn find_receive(&mut self, peer: PeerId, tag: i32) -> Option<OpId> {
        let list = self.shared.bucket_mut(peer, tag)?.receives;
        self.find(list, peer, tag)
    }

    /// Returns the oldest message for a receive.
    ///
    /// While a session closes, and after it, an offer of it is of no use.
    pub(super) fn find_arrival(&mut self, peer: PeerId, tag: i32) -> Option<OpId> {
        let list = self.shared.bucket_mut(peer, tag)?.arrivals;
        let open = self.phase(peer).is_some_and(|phase| phase.is_open());
        let found = self.find(list, peer, tag)?;
        let whole = self.op(found).is_some_and(is_whole);
        (open || whole).then_some(found)
    }

    fn find(&self, list: List, peer: PeerId, tag: i32) -> Option<OpId> {
        let mut next = self.ops.first(&list);
        while let Some(key) = next {
            let post = self.ops.get(key)?.post;
            if (post.peer, post.tag) == (peer, tag) {
                return Some(OpId(key));
            }
            next = self.ops.next(BY_STATE, key);
        }
        None
    }

    /// Matches a receive that was posted with the oldest message, or queues it.
    pub(super) fn match_receive(&mut self, home: &mut impl Home, id: OpId) {
        let Some(post) = self.op(id).map(|op| op.post) else {
            return;
        };
        let arrival = self.find_arrival(post.peer, post.tag);
        let found = arrival.and_then(|arrival| {
            let op = self.op(arrival)?;
            Some((arrival, op.rail, op.header()?))
        });
        match found {
            Some((arrival, rail, header)) => {
                self.take(home, id, &header, rail, Source::Stash(arrival));
            }
            None => self.enqueue(id, Queue::Receives),
        }
    }

    /// Lets a receive take a message.
    pub(super) fn take(
        &mut self,
        home: &mut impl Home,
        id: OpId,
        header: &Header,
        rail: u8,
        source: Source,
    ) {
        self.dequeue(id);
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        let (peer, fits) = (op.post.peer, header.length <= op.post.length);
        op.actual = header.length;
        match header.kind {
            Kind::Rts => {
                op.peers = header.operation;
                self.list_offer(id);
                self.take_offer(home, id, header, fits, source);
            }
            _ if fits => {
                home.deliver(id, source);
                self.conclude(home, id);
            }
            _ => self.conclude_with(home, id, Error::TooLong),
        }
        self.consume(home, peer, rail, Class::Data, source);
    }

    /// Answers an offer: refuses it, reads the message, or exposes the receive's memory.
    fn take_offer(
        &mut self,
        home: &mut impl Home,
        id: OpId,
        header: &Header,
        fits: bool,
        source: Source,
    ) {
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        op.pull = Some(header.descriptors > 0);
        if !fits {
            self.refuse(id, Error::TooLong);
        } else if header.descriptors > 0 {
            let rails = home.keep(id, source, header.names_rails());
            self.begin_transfer(home, id, rails);
        } else {
            op.state = State::Matched;
            self.expose(home, id, Rdma::Write);
        }
    }
}
