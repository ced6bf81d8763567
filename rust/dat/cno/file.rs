// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! File of a Consumer Notification Object (CNO): `dat_cno_fd_create`.
//!
//! The file is an alternative to an OS wait proxy agent. It is readable while a wait on the CNO
//! would return at once, so a process has nothing to read from it. If the file outlives the CNO, it
//! reports a hang-up.

use super::Cno;
use crate::{
    dat::prelude::*,
    sys::{
        poll::{
            PendingFile,
            Pollable,
            Readiness, //
        },
        wait::WaitQueue, //
    },
};

impl Cno {
    /// Opens a file of the CNO for the calling process.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory) without memory; without a subtype above the process's limit
    /// of open files.
    pub(crate) fn open_file(this: Arc<Self>) -> DatResult<PendingFile> {
        PendingFile::new(c"[kdapl-cno]", this).map_err(|error| match error {
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
            // While an EVD has to be checked, the file may become readable: check again.
            if readable || inner.closed || inner.table.first_unchecked().is_none() {
                return Readiness {
                    readable,
                    over: inner.closed,
                };
            }
        }
    }
}
