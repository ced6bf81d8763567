// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts lists of data transfer operations (DTOs).
//!
//! Posts requests to the driver in chains, and receives, too. A DTO that cannot be in a chain, or
//! that the driver refuses in one, is posted alone. That post returns the error.

use super::{
    examine::check_length,
    NotPosted,
    Post, //
};
use crate::{
    dat::{
        ep::{
            Ep,
            Inner, //
        },
        prelude::*, //
    },
    model::{
        dto::Dto,
        ep::{
            flushes_posts,
            may_post_request, //
        },
        event::Operation,
        handle::{
            Direction,
            WrId, //
        },
        requests::Posted,
    },
    rdma::{
        qp::{
            RecvChain,
            SendChain,
            MAX_CHAIN, //
        },
        wr::{
            SendFlags,
            SgList, //
        },
    },
};
use core::array;

/// Slots and DTOs of a chain.
struct Chained([Option<(u32, Dto)>; MAX_CHAIN]);

impl Chained {
    /// Creates an empty chain.
    // A constant array would be copied, with the bytes that have no meaning.
    fn none() -> Self {
        Self(array::from_fn(|_| None))
    }

    /// Appends posts with `chain`, up to the first that it does not take.
    fn fill<'a>(
        &mut self,
        posts: &[Post<'a>],
        mut chain: impl FnMut(&Post<'a>) -> Option<(u32, Dto)>,
    ) {
        for (post, slot) in posts.iter().zip(&mut self.0) {
            *slot = chain(post);
            if slot.is_none() {
                break;
            }
        }
    }
}

impl Ep {
    /// Posts DTOs in their order, up to the first that is refused. Returns the number of DTOs that
    /// were posted, and the error of the refused one.
    ///
    /// Context: process; sleeps. Errors are those of [`Ep::post`].
    pub(crate) fn post_list(&self, posts: &[Post<'_>]) -> (usize, DatResult) {
        self.post_list_with(posts, |post| self.post(post))
    }

    /// As [`Ep::post_list`], but posts no DTO that cannot be posted [at once](Ep::post_at_once).
    ///
    /// Context: any.
    pub(crate) fn post_list_at_once(&self, posts: &[Post<'_>]) -> (usize, Result<(), NotPosted>) {
        self.post_list_with(posts, |post| self.post_at_once(post))
    }

    /// Posts DTOs in chains. Posts those that no chain takes with `post_one`.
    fn post_list_with<'a, E>(
        &self,
        posts: &[Post<'a>],
        post_one: impl Fn(&Post<'a>) -> Result<(), E>,
    ) -> (usize, Result<(), E>) {
        let mut left = posts;
        while let [first, rest @ ..] = left {
            left = match self.post_chain(left) {
                0 => match post_one(first) {
                    Ok(()) => rest,
                    Err(error) => return (posts.len().saturating_sub(left.len()), Err(error)),
                },
                posted => left.get(posted..).unwrap_or_default(),
            };
        }
        (posts.len(), Ok(()))
    }

    /// Posts the first of these DTOs, as far as one chain takes them. Returns their number.
    fn post_chain(&self, posts: &[Post<'_>]) -> usize {
        // A chain of one costs more than a post.
        let [first, _, ..] = posts else { return 0 };
        match first.operation.direction() {
            Direction::Request => self.post_requests(posts),
            Direction::Receive => self.post_receives(posts),
        }
    }

    /// Posts the first of these DTOs, as far as they are requests that one chain takes.
    fn post_requests(&self, posts: &[Post<'_>]) -> usize {
        let (mut chain, mut chained) = (SendChain::new(), Chained::none());
        let mut inner = self.inner.lock();
        chained.fill(posts, |post| {
            self.chain_request(&mut inner, post, &mut chain)
        });
        let posted = match &inner.qp {
            Some(qp) => qp.post_send_chain(&mut chain),
            None => 0,
        };
        self.end_chain(&mut inner, &chained, posted);
        posted
    }

    /// Posts the first of these DTOs, as far as they are receives that one chain takes.
    fn post_receives(&self, posts: &[Post<'_>]) -> usize {
        let (mut chain, mut chained) = (RecvChain::new(), Chained::none());
        let mut inner = self.inner.lock();
        chained.fill(posts, |post| {
            self.chain_receive(&mut inner, post, &mut chain)
        });
        let posted = match &inner.qp {
            Some(qp) => qp.post_recv_chain(&mut chain),
            None => 0,
        };
        self.end_chain(&mut inner, &chained, posted);
        posted
    }

    /// Frees the slots of all but the first `posted` DTOs of a chain, which the driver has
    /// accepted.
    fn end_chain(&self, inner: &mut Inner, chained: &Chained, posted: usize) {
        for (number, (slot, dto)) in chained.0.iter().flatten().enumerate() {
            match dto.operation.direction() {
                _ if number < posted => self.trace_post(inner, *slot, dto),
                Direction::Request => inner.requests.cancel(*slot),
                Direction::Receive => inner.receives.cancel(*slot),
            }
        }
    }

    /// Appends a request to the chain. Returns its slot, or `None` if it has to be posted alone.
    fn chain_request(
        &self,
        inner: &mut Inner,
        post: &Post<'_>,
        chain: &mut SendChain,
    ) -> Option<(u32, Dto)> {
        let operation = post.operation;
        let goes_alone = operation.direction() == Direction::Receive
            || may_post_request(inner.phase).is_err()
            || inner.may_send().is_err()
            || flushes_posts(inner.phase)
            || (operation.reads_remotely() && self.refuses_reads(inner))
            || operation.is_extension();
        if goes_alone {
            return None;
        }
        let mut list = SgList::new();
        let dto = self.examine(operation, inner, post, &mut list).ok()?;
        check_length(&dto, inner.qp.as_ref()?).ok()?;
        let (request, fence) = self.work_request(&dto, post).ok()?;
        let Posted { slot, signalled } = inner.requests.post(dto)?;
        inner.named.requests.name(slot, post.local);
        let wr = WrId::new(slot, inner.life, Direction::Request, self.handle.key());
        let flags = SendFlags { signalled, fence };
        if !chain.push(wr.into_raw(), request, flags, &list) {
            inner.requests.cancel(slot);
            return None;
        }
        Some((slot, dto))
    }

    /// Appends a receive to the chain. Returns its slot, or `None` if it has to be posted alone, or
    /// waits for a connection.
    fn chain_receive(
        &self,
        inner: &mut Inner,
        post: &Post<'_>,
        chain: &mut RecvChain,
    ) -> Option<(u32, Dto)> {
        let goes_alone = post.operation != Operation::Receive
            || inner.preposted_count.is_some()
            || inner.may_post_recv().is_err()
            || flushes_posts(inner.phase);
        if goes_alone {
            return None;
        }
        let mut list = SgList::new();
        let dto = self
            .examine(Operation::Receive, inner, post, &mut list)
            .ok()?;
        let slot = inner.receives.post(dto)?;
        inner.named.receives.name(slot, post.local);
        let wr = WrId::new(slot, inner.life, Direction::Receive, self.handle.key());
        if !chain.push(wr.into_raw(), &list) {
            inner.receives.cancel(slot);
            return None;
        }
        Some((slot, dto))
    }
}
