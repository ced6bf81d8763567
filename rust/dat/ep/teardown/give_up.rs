// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Gives up data transfer operations (DTOs) that will not complete any more.

use crate::{
    dat::ep::{
        Ep,
        Inner, //
    },
    model::{
        completion::CompletionFlags,
        dto::ScanPart,
        ep::Phase,
        event::DtoStatus,
        handle::Direction, //
    },
};

/// Number of DTOs that are given up in one critical section.
const GIVE_UP_BATCH: u32 = 64;

impl Ep {
    /// Reports DTOs in flight as flushed, as far as there is room, and gives them up. Receives that
    /// are held back are reported before.
    ///
    /// The caller has drained before, so that DTOs that have completed are not among them.
    pub(super) fn give_up_dtos(&self) {
        self.release_all_held();
        for direction in [Direction::Receive, Direction::Request] {
            let mut next = Some(0);
            while let Some(from) = next {
                let mut inner = self.inner.lock();
                next = self.give_up_some_dtos(&mut inner, direction, from);
            }
        }
        let shares = {
            let mut inner = self.inner.lock();
            inner.srq_receives.end();
            inner.give_up_probes();
            inner.shares.take()
        };
        drop(shares);
        // Discards the completions of the DTOs that were given up.
        self.drain_evds();
    }

    /// Gives up some of the DTOs in flight, from slot `from` on. Returns the slot to continue from,
    /// or `None` at the end.
    fn give_up_some_dtos(&self, inner: &mut Inner, direction: Direction, from: u32) -> Option<u32> {
        let evd = match direction {
            Direction::Receive => inner.parts.recv_evd(),
            Direction::Request => inner.parts.request_evd(),
        };
        let (mut count, mut flushed) = (0_u32, 0_u32);
        let mut part = ScanPart::new(from, GIVE_UP_BATCH);
        while let Some((slot, dto)) = part.advance(|from| inner.find_busy(direction, from)) {
            let _ = match direction {
                Direction::Receive => inner.receives.complete(slot),
                Direction::Request => inner.requests.complete(slot),
            };
            inner.registrations.end(slot, &dto, DtoStatus::Flushed);
            count = count.saturating_add(1);
            let is_silent = inner.phase == Phase::Freed || dto.flags.has(CompletionFlags::MARKER);
            if let (Ok(evd), false) = (evd, is_silent) {
                // The room beyond the queue length is reserved for connection events.
                let is_queued = evd.post(&dto.flushed(self.handle())).is_ok();
                flushed = flushed.saturating_add(is_queued.into());
            }
        }
        if let Some(shares) = &inner.shares {
            shares.give_up(direction, count);
        }
        if direction == Direction::Receive {
            self.count_flushed(inner, flushed);
        }
        part.rest()
    }
}
