// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counts of Data Transfer Operations (DTOs) that have completed.

use super::{
    dto::{
        Dto,
        DtoResult, //
    },
    event::DtoStatus,
    handle::Direction, //
};

/// Counts of one direction. They start with zero and wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transfers {
    /// Number of DTOs that have transferred their data.
    pub(crate) dtos: u64,
    /// Bytes of these DTOs.
    pub(crate) bytes: u64,
}

impl Transfers {
    fn add(&mut self, dtos: u64, bytes: u64) {
        self.dtos = self.dtos.wrapping_add(dtos);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    fn advance_to(&mut self, other: &Self) {
        advance(&mut self.dtos, other.dtos);
        advance(&mut self.bytes, other.bytes);
    }
}

/// Sets a count to a value of a later time, unless that is lower. Counts wrap around.
fn advance(count: &mut u64, value: u64) {
    if value.wrapping_sub(*count) <= u64::MAX / 2 {
        *count = value;
    }
}

/// Counts of the completed DTOs of an Endpoint, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Sends, RDMA reads and writes, and atomic operations.
    pub(crate) requests: Transfers,
    /// Receives.
    pub(crate) receives: Transfers,
    /// DTOs of both directions that have failed. Flushed ones do not count.
    pub(crate) failures: u64,
}

impl Traffic {
    /// Counts a DTO. Requests that concern memory of this side only do not count unless they fail.
    #[inline]
    pub(crate) fn count(&mut self, dto: &Dto, result: DtoResult) {
        match result.status {
            DtoStatus::Success if dto.operation.is_local() => {}
            DtoStatus::Success => match dto.operation.direction() {
                Direction::Request => self.requests.add(1, result.length),
                Direction::Receive => self.receives.add(1, result.length),
            },
            DtoStatus::Flushed => {}
            _ => self.failures = self.failures.wrapping_add(1),
        }
    }

    /// Adds the counts of another Endpoint.
    pub(crate) fn add(&mut self, other: &Self) {
        self.requests.add(other.requests.dtos, other.requests.bytes);
        self.receives.add(other.receives.dtos, other.receives.bytes);
        self.failures = self.failures.wrapping_add(other.failures);
    }

    /// Sets each count to that of a later time, unless that is lower.
    fn advance_to(&mut self, other: &Self) {
        self.requests.advance_to(&other.requests);
        self.receives.advance_to(&other.receives);
        advance(&mut self.failures, other.failures);
    }
}

/// Counts of all Endpoints of an Interface Adapter.
///
/// A reader adds the counts of the Endpoints one after the other. Those of an Endpoint that is
/// freed meanwhile may be missing in its sum. So a sum that is lower than an earlier one is not
/// reported.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Counts of Endpoints that were freed.
    past: Traffic,
    /// Counts that were reported last.
    reported: Traffic,
}

impl Totals {
    /// Adds the counts of an Endpoint that was freed.
    pub(crate) fn add_past(&mut self, endpoint: &Traffic) {
        self.past.add(endpoint);
    }

    /// Returns the counts of Endpoints that were freed. A reader adds those of the others.
    pub(crate) fn past(&self) -> Traffic {
        self.past
    }

    /// Returns the counts to report for this sum.
    pub(crate) fn report(&mut self, sum: &Traffic) -> Traffic {
        self.reported.advance_to(sum);
        self.reported
    }
}
