// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Software events: `dat_evd_post_se`.

use super::{
    Evd,
    Flags, //
};
use crate::{
    dat::prelude::*,
    model::event::Event, //
};

impl Evd {
    /// Queues a software event: `dat_evd_post_se`.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (EVD) if the EVD takes no software events; QUEUE_FULL.
    pub(crate) fn post_se(&self, pointer: u64) -> DatResult {
        if !self.flags.has(Flags::SOFTWARE) {
            return Err(DatError::Invalid(Arg::Evd));
        }
        self.post(&Event::Software { pointer })
    }
}
