// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Thresholds: the number of events that a consumer waits for.

use super::Evd;
use crate::{
    dat::prelude::*,
    model::completion::WakeMode, //
};

impl Evd {
    /// Converts a threshold that a consumer asked for.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (threshold) for a threshold below 1 or above the queue length.
    pub(super) fn threshold(&self, threshold: i32) -> DatResult<u32> {
        // Every queue length allows a threshold of 1.
        if threshold == 1 {
            return Ok(1);
        }
        u32::try_from(threshold)
            .ok()
            .filter(|threshold| (1..=self.qlen()).contains(threshold))
            .ok_or(DatError::Invalid(Arg::Threshold))
    }

    /// Rechecks the upcall policy and the threshold after concurrent changes.
    ///
    /// The waiter has its reservation, and has stored its threshold, already. So either this check
    /// sees the new policy and the new queue length, or the changes see the waiter.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE (EVD unwaitable) if upcalls are enabled.
    /// - INVALID_PARAMETER (threshold) if the threshold exceeds the new queue length.
    pub(super) fn may_wait_for(&self, threshold: u32) -> DatResult {
        if self.wakeup.upcalls.are_made() {
            return Err(Self::unwaitable());
        }
        if threshold == 1 {
            return Ok(());
        }
        let _consumer = self.consumer.lock();
        if threshold > self.qlen() {
            return Err(DatError::Invalid(Arg::Threshold));
        }
        Ok(())
    }

    /// Checks whether the wake-up mode allows a wait for this number of events.
    ///
    /// # Errors
    ///
    /// INVALID_STATE, with a subtype for the EVD's configuration, if completion flags decide which
    /// completions wake. Such an EVD allows a threshold of 1 only.
    pub(super) fn may_count(&self, threshold: u32) -> DatResult {
        if threshold == 1 {
            return Ok(());
        }
        let subtype = match self.mode() {
            WakeMode::Unsignalled => Subtype::InvalidStateEvdConfigNotify,
            WakeMode::Solicited => Subtype::InvalidStateEvdConfigSolicited,
            WakeMode::Threshold => return Ok(()),
        };
        Err(DatError::new(Kind::InvalidState, subtype))
    }
}
