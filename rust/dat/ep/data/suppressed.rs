// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Frees the slots of requests whose completions are suppressed.
//!
//! A slot is free once its completion, or that of a later request, was taken from its queue. A
//! consumer that suppresses the events of its requests may never dequeue from their EVD, and takes
//! no completions. So a post that finds no slot takes them, and tries again. The request that took
//! the last slot is signalled, so its completion arrives.

use super::{
    post::no_slot,
    Post,
    SEARCH_STEP, //
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
        completion::CompletionFlags,
        dto::ScanPart,
        handle::Direction, //
    },
};

impl Ep {
    /// Drains the completions of suppressed requests, and retries a post that found no slot.
    /// Returns any other `error`.
    ///
    /// Context: process; sleeps.
    #[cold]
    pub(super) fn retry_without_slot(&self, post: &Post<'_>, error: DatError) -> DatResult {
        if post.operation.direction() != Direction::Request {
            return Err(error);
        }
        self.free_suppressed(error)?;
        self.post_again(post)
    }

    /// Takes the completions of suppressed requests, if any are outstanding and `error` says that a
    /// request has found no slot. Returns `error` otherwise.
    ///
    /// Context: process; sleeps.
    #[cold]
    pub(super) fn free_suppressed(&self, error: DatError) -> DatResult {
        if error != no_slot() || !self.has_suppressed() {
            return Err(error);
        }
        let evds = self.inner.lock().parts.dto_evds();
        evds.ok_or(error)?.requests.drain_all();
        Ok(())
    }

    /// Returns whether a suppressed request or a marker is outstanding.
    fn has_suppressed(&self) -> bool {
        let mut next = Search::Left(0);
        // The lock is released between the parts of a long queue.
        while let Search::Left(from) = next {
            next = self.inner.lock().find_suppressed(from);
        }
        matches!(next, Search::Found)
    }
}

/// Progress of a search.
enum Search {
    Found,
    /// Not found so far. The slot to continue from follows.
    Left(u32),
    NotFound,
}

impl Inner {
    /// Looks for a suppressed request or a marker in some slots, from `from` on.
    fn find_suppressed(&self, from: u32) -> Search {
        let mut part = ScanPart::new(from, SEARCH_STEP);
        while let Some((_, dto)) = part.advance(|from| self.requests.find_busy(from)) {
            if dto.flags.has(CompletionFlags::SUPPRESS) {
                return Search::Found;
            }
        }
        part.rest().map_or(Search::NotFound, Search::Left)
    }
}
