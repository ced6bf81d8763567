// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Thresholds: for how many events a consumer may wait.

use super::Evd;
use crate::{
    dat::prelude::*,
    model::completion::WakeMode, //
};

impl Evd {
    /// A threshold that a consumer asked for.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 3) below 1 or above the queue length.
    pub(super) fn threshold(&self, threshold: i32) -> DatResult<u32> {
        // Every EVD has room for that.
        if threshold == 1 {
            return Ok(1);
        }
        u32::try_from(threshold)
            .ok()
            .filter(|threshold| (1..=self.qlen()).contains(threshold))
            .ok_or(DatError::invalid_parameter(3))
    }

    /// Whoever has said that it wants so many events sees what resized the EVD before. What comes later
    /// sees the waiter.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 3): it has become too short.
    pub(super) fn may_wait_for(&self, threshold: u32) -> DatResult {
        if threshold == 1 {
            return Ok(());
        }
        let _consumer = self.consumer.lock();
        if threshold > self.qlen() {
            return Err(DatError::invalid_parameter(3));
        }
        Ok(())
    }

    /// Whether one may wait for so many events.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the EVD's configuration: where the consumer says which completions wake, a
    /// wait is for the first of them.
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
