// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A CNO as a file: `dat_cno_fd_create`, the second of the OS wait proxies.
//!
//! The file is readable as long as a wait would return at once, so nothing has to be read from it
//! and no count can be missed. It outlives the CNO: then it is hung up.

use super::Cno;
use crate::{
    dat::prelude::*,
    sys::{
        poll::{
            Opening,
            Pollable,
            Readiness, //
        },
        wait::WaitQueue, //
    },
};

impl Cno {
    /// Opens a file for the calling process. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES if the process may open no more files, or there is no memory.
    pub(crate) fn open_file(this: Arc<Self>) -> DatResult<Opening> {
        Opening::new(c"[kdapl-cno]", this).map_err(|error| match error {
            ENOMEM => DatError::memory(),
            _ => Kind::InsufficientResources.into(),
        })
    }
}

impl Pollable for Cno {
    fn sleepers(&self) -> &WaitQueue {
        &self.sleepers
    }

    fn readiness(&self) -> Readiness {
        loop {
            self.recheck();
            let inner = self.inner.lock();
            let readable = inner.has_trigger();
            // Neither readable nor not, as long as nobody knows how an EVD stands.
            if readable || inner.closed || inner.table.first_unchecked().is_none() {
                return Readiness {
                    readable,
                    over: inner.closed,
                };
            }
        }
    }
}
