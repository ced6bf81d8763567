// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Binds and unbinds of RMRs, in a limited number at a time.
//!
//! They are requests on an Endpoint beside those of the engine, which has a share of the send queue
//! of its own.

use super::{
    KernelHome,
    Request,
    Work, //
};
use crate::engine::{
    Error,
    Place,
    RailId, //
};
use kdat::{
    kind,
    Access,
    Ep,
    Rmr,
    Shared, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

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

/// A bind or an unbind.
pub(super) enum Step {
    /// Binds the RMR with this number in the exposure to a part of memory.
    Bind {
        memory: Shared,
        offset: usize,
        length: usize,
        access: Access,
    },
    /// Unbinds the RMR with this number in the exposure.
    Unbind(usize),
}

/// Steps that wait, and the number of those that are outstanding on each rail.
pub(super) struct Binds {
    outstanding: KVVec<(RailId, usize)>,
    waiting: KVVec<(RailId, Place, Step)>,
    /// Bytes of a bind at most.
    pub(super) longest: usize,
}

impl Binds {
    pub(super) fn new() -> Self {
        Self {
            outstanding: KVVec::new(),
            waiting: KVVec::new(),
            longest: BYTES,
        }
    }

    /// Returns the counter of a rail.
    fn counter(&mut self, rail: RailId) -> Option<&mut usize> {
        let mut counters = self.outstanding.iter_mut();
        counters
            .find(|(other, _)| *other == rail)
            .map(|(_, count)| count)
    }
}

impl KernelHome {
    /// Posts a step, or lets it wait for earlier ones. Unbinds go first: they let operations end.
    pub(super) fn queue_bind(&mut self, rail: RailId, place: Place, step: Step) {
        let turn = match step {
            Step::Bind { .. } => self.binds.waiting.len(),
            Step::Unbind(_) => 0,
        };
        let queued = self.binds.waiting.reserve(1, GFP_KERNEL).is_ok()
            && (self.binds.counter(rail).is_some()
                || self.binds.outstanding.push((rail, 0), GFP_KERNEL).is_ok());
        if !queued {
            return self.step_ended(place, Err(Error::NoMemory));
        }
        let _ = self
            .binds
            .waiting
            .insert_within_capacity(turn, (rail, place, step));
        self.post_binds(rail);
    }

    /// Posts steps that wait, as many as are allowed.
    fn post_binds(&mut self, rail: RailId) {
        if self.connections.ep(rail).is_none() {
            return self.forget_binds(rail);
        }
        while self.binds.counter(rail).is_some_and(|count| *count < MOST) {
            let waiting = &mut self.binds.waiting;
            let Some(turn) = waiting.iter().position(|(other, ..)| *other == rail) else {
                return;
            };
            let Ok((_, place, step)) = waiting.remove(turn) else {
                return;
            };
            if let Some(count) = self.binds.counter(rail) {
                *count += 1;
            }
            let length = match &step {
                Step::Bind { length, .. } => *length,
                Step::Unbind(_) => 0,
            };
            if let Err(error) = self.post_bind(rail, place, step) {
                if error.kind() == kind::LENGTH_ERROR && length > PAGE {
                    // Other binds of the same length may have failed before.
                    self.binds.longest = self.binds.longest.min((length / 2).max(PAGE));
                    self.too_long(place);
                }
                self.bind_ended(rail, place, Err(reason(&error)));
            }
        }
    }

    fn post_bind(&mut self, rail: RailId, place: Place, step: Step) -> kdat::Result {
        let work = Work::Bind(place);
        let number = self.requests.insert(Request { rail, work })?;
        let posted = match self.connections.ep(rail) {
            Some(ep) => post(
                &mut self.exposures,
                &self.devices.adapter(place.device).pz,
                (place, step),
                ep,
                number,
            ),
            None => Err(AllocError.into()),
        };
        if posted.is_err() {
            self.requests.remove(number);
        }
        posted
    }

    fn bind_ended(&mut self, rail: RailId, place: Place, result: Result<(), Error>) {
        if let Some(count) = self.binds.counter(rail) {
            *count = count.saturating_sub(1);
        }
        self.step_ended(place, result);
    }

    /// Processes the completion of a bind or of an unbind. One that fails breaks the connection, or
    /// the connection has ended before.
    pub(crate) fn bind_completed(&mut self, rail: RailId, place: Place, success: bool) {
        self.bind_ended(
            rail,
            place,
            if success { Ok(()) } else { Err(Error::Reset) },
        );
        self.post_binds(rail);
    }

    /// Fails the steps that wait for a rail which has ended.
    pub(super) fn forget_binds(&mut self, rail: RailId) {
        self.binds.outstanding.retain(|(other, _)| *other != rail);
        while let Some(turn) = self
            .binds
            .waiting
            .iter()
            .position(|(other, ..)| *other == rail)
        {
            if let Ok((_, place, _)) = self.binds.waiting.remove(turn) {
                self.step_ended(place, Err(Error::Reset));
            }
        }
    }
}

/// Returns the reason why a step was not posted.
fn reason(error: &kdat::Error) -> Error {
    match error.kind() {
        // The connection has ended.
        kind::INVALID_STATE => Error::Reset,
        _ => Error::NoMemory,
    }
}

/// Posts a step of an operation.
fn post(
    exposures: &mut super::Exposures,
    pz: &kdat::Pz,
    (place, step): (Place, Step),
    ep: &Ep,
    number: u64,
) -> kdat::Result {
    match step {
        Step::Unbind(index) => match exposures.rmr_mut(place, index) {
            Some(rmr) => rmr.unbind(ep, number),
            None => Ok(()),
        },
        Step::Bind {
            memory,
            offset,
            length,
            access,
        } => {
            let mut rmr: Rmr = exposures.take_rmr(place.device, pz)?;
            let remote = rmr.bind(&memory, (offset, length as u32), access, ep, number)?;
            exposures.bound(place, rmr, remote)
        }
    }
}
