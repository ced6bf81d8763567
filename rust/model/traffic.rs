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
}
