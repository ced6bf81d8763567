// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts lists of data transfer operations (DTOs).
//!
//! Requests go to the driver in chains. A receive, and a request that no chain takes or that is
//! refused, is posted alone, which also finds the error to report.

use super::Post;
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
        handle::{
            Direction,
            WrId, //
        },
    },
    rdma::{
        qp::{
            SendChain,
            MAX_CHAIN, //
        },
        wr::SgList, //
    },
};

/// Slots and DTOs of the requests of a chain.
struct Chained([Option<(u32, Dto)>; MAX_CHAIN]);

impl Ep {
    /// Posts DTOs in their order, up to the first that is refused. Returns the number of DTOs that
    /// were posted, and the error of the refused one.
    ///
    /// Context: process; sleeps. Errors are those of [`Ep::post`].
    pub(crate) fn post_list(&self, posts: &[Post<'_>]) -> (usize, DatResult) {
        let mut left = posts;
        while let [first, rest @ ..] = left {
            left = match self.post_chain(left) {
                0 => match self.post(first) {
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
        if posts.len() < 2 {
            return 0;
        }
        let (mut chain, mut chained) = (SendChain::new(), Chained([const { None }; MAX_CHAIN]));
        let mut inner = self.inner.lock();
        for (post, place) in posts.iter().zip(&mut chained.0) {
            *place = self.chain(&mut inner, post, &mut chain);
            if place.is_none() {
                break;
            }
        }
        let posted = match &inner.qp {
            Some(qp) => qp.post_send_chain(&mut chain),
            None => 0,
        };
        for (number, (slot, dto)) in chained.0.iter().flatten().enumerate() {
            if number < posted {
                self.trace_post(&mut inner, *slot, dto);
            } else {
                inner.requests.cancel(*slot);
            }
        }
        posted
    }

    /// Appends a request to the chain. Returns its slot, or `None` if it has to be posted alone.
    fn chain(
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
        let (request, fence) = self.work_request(&dto, post).ok()?;
        let slot = inner.requests.post(dto)?;
        let wr = WrId::new(slot, inner.life, Direction::Request, self.handle.key());
        if !chain.push(wr.into_raw(), request, fence, &list) {
            inner.requests.cancel(slot);
            return None;
        }
        Some((slot, dto))
    }
}
