// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Binds and unbinds of RMRs, in a limited number at a time.
//!
//! They are requests on an Endpoint beside those of the engine, which has a share of the send queue
//! of its own.

use super::{DatHome, Request};
use crate::bmi::engine::{Error, Place, RailId};
use libkdapl::{CompletionFlags, Ep, Lmr, Privileges, Rmr, RmrBinding, Segment, Type};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Binds and unbinds that a rail has outstanding at most.
const MOST: usize = 32;

/// Requests of an Endpoint for them. A bind after another request may need a second one, which
/// waits for it.
pub(super) const REQUESTS: u32 = 2 * MOST as u32;

/// Bytes of the first bind: at most 256 pages, wherever they begin. The limit of a device that has
/// fewer is found by halving.
const BYTES: usize = 255 * 4096;

/// Bytes of a page, which each device can bind.
const PAGE: usize = 4096;

/// A bind to post.
pub(super) struct Bind {
    pub(super) lmr: Lmr,
    pub(super) segment: Segment,
    pub(super) privileges: Privileges,
}

/// A bind or an unbind.
pub(super) enum Step {
    Bind(Bind),
    Unbind(Rmr),
}

impl Step {
    /// Returns the number of bytes that are bound.
    fn length(&self) -> usize {
        match self {
            Self::Bind(bind) => bind.segment.length as usize,
            Self::Unbind(_) => 0,
        }
    }
}

/// Steps of a rail.
#[derive(Default)]
struct Queue {
    outstanding: usize,
    waiting: VecDeque<(Place, Step)>,
}

/// Steps of all rails.
pub(super) struct Binds {
    of_rails: FxHashMap<RailId, Queue>,
    /// Bytes of a bind at most.
    pub(super) longest: usize,
}

impl Default for Binds {
    fn default() -> Self {
        Self { of_rails: FxHashMap::default(), longest: BYTES }
    }
}

impl DatHome {
    /// Posts a step, or lets it wait for earlier ones. Unbinds go first: they let operations end.
    pub(super) fn queue_bind(&mut self, rail: RailId, place: Place, step: Step) {
        let queue = self.binds.of_rails.entry(rail).or_default();
        match step {
            Step::Bind(_) => queue.waiting.push_back((place, step)),
            Step::Unbind(_) => queue.waiting.push_front((place, step)),
        }
        self.post_binds(rail);
    }

    /// Posts steps that wait, as many as are allowed.
    fn post_binds(&mut self, rail: RailId) {
        let Some(ep) = self.ep(rail) else { return self.forget_binds(rail) };
        while let Some(queue) = self.binds.of_rails.get_mut(&rail).filter(|q| q.outstanding < MOST)
        {
            let Some((place, step)) = queue.waiting.pop_front() else { return };
            queue.outstanding += 1;
            let length = step.length();
            if let Err(error) = self.post_bind(rail, place, &ep, step) {
                if error.kind() == Some(Type::LENGTH_ERROR) && length > PAGE {
                    // Other binds of the same length may have failed before.
                    self.binds.longest = self.binds.longest.min((length / 2).max(PAGE));
                    self.too_long(place);
                }
                self.bind_ended(rail, place, Err(reason(&error)));
            }
        }
    }

    fn post_bind(
        &mut self,
        rail: RailId,
        place: Place,
        ep: &Ep,
        step: Step,
    ) -> libkdapl::Result<()> {
        let number = self.requests.insert(Request::Bind(rail, place));
        let flags = CompletionFlags::default();
        let posted = match step {
            Step::Unbind(rmr) => rmr.unbind(ep, number as u64, flags),
            Step::Bind(Bind { lmr, segment, privileges }) => {
                self.take_rmr(place.device).and_then(|rmr| {
                    let to = RmrBinding { lmr: &lmr, segment, privileges };
                    let segment = rmr.bind(ep, &to, number as u64, flags)?;
                    self.bound(place, rmr, segment);
                    Ok(())
                })
            }
        };
        if posted.is_err() {
            self.requests.remove(number);
        }
        posted
    }

    fn bind_ended(&mut self, rail: RailId, place: Place, result: Result<(), Error>) {
        if let Some(queue) = self.binds.of_rails.get_mut(&rail) {
            queue.outstanding = queue.outstanding.saturating_sub(1);
        }
        self.step_ended(place, result);
    }

    /// Processes the completion of a bind or of an unbind. One that fails breaks the connection, or
    /// the connection has ended before.
    pub(crate) fn bind_completed(&mut self, rail: RailId, place: Place, success: bool) {
        self.bind_ended(rail, place, if success { Ok(()) } else { Err(Error::Reset) });
        self.post_binds(rail);
    }

    /// Fails the steps that wait for a rail which has ended.
    pub(super) fn forget_binds(&mut self, rail: RailId) {
        let queue = self.binds.of_rails.remove(&rail).unwrap_or_default();
        for (place, _) in queue.waiting {
            self.step_ended(place, Err(Error::Reset));
        }
    }
}

/// Returns the reason why a step was not posted.
fn reason(error: &libkdapl::Error) -> Error {
    match error.kind() {
        // The connection has ended.
        Some(Type::INVALID_STATE) => Error::Reset,
        _ => Error::NoMemory,
    }
}
