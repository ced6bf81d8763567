// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! File of a Consumer Notification Object (CNO): `dat_cno_fd_create`.
//!
//! The file is an alternative to an OS wait proxy agent. A read takes triggers, as `dat_cno_wait`
//! does and beside it: each trigger is taken once. The file is readable while a read would return a
//! trigger at once. If the file outlives the CNO, it reports a hang-up, and a read returns its end.
//!
//! A read copies a trigger out before it takes it, without a lock. If another thread takes the
//! trigger in the meantime, the read copies the next one instead.

use super::{
    Cno,
    Inner, //
};
use crate::{
    dat::{
        base::open_file,
        prelude::*, //
    },
    sys::{
        record_file::{
            Blocking,
            OpenMode,
            PendingFile,
            Readiness,
            RecordDest,
            RecordFile, //
        },
        task,
        wait::{
            Deadline,
            SleepResult,
            WaitQueue, //
        },
    },
};
use core::mem::size_of;
use kdapl_bindings::kdapl_trigger;
use zerocopy::IntoBytes;

/// Trigger that the next read returns.
#[derive(Clone, Copy)]
enum NextTrigger {
    /// This EVD has triggered.
    Evd(u64),
    /// The consumer has triggered the CNO.
    ByConsumer,
}

impl Inner {
    /// Returns the next trigger, in the order of `dat_cno_wait`.
    fn next(&self) -> Option<NextTrigger> {
        if let Some(first) = self.table.first_triggered() {
            return Some(NextTrigger::Evd(self.table.evd(first)));
        }
        self.triggered_by_consumer
            .then_some(NextTrigger::ByConsumer)
    }

    /// Takes this trigger: that of an EVD only if it is the first. Returns whether it did.
    fn take_if(&mut self, next: NextTrigger) -> bool {
        match next {
            NextTrigger::Evd(evd) => self.table.take_if(evd),
            NextTrigger::ByConsumer => core::mem::take(&mut self.triggered_by_consumer),
        }
    }

    /// Returns whether a read finds a trigger, an EVD to check, or the end.
    fn concerns_reader(&self) -> bool {
        self.has_trigger() || self.closed || self.table.first_unchecked().is_some()
    }
}

/// A thread that reads triggers, until the drop.
struct TriggerReader<'a> {
    cno: &'a Cno,
    has_slept: bool,
}

impl Drop for TriggerReader<'_> {
    /// Passes remaining triggers to another waiter or reader. A trigger wakes one of them.
    fn drop(&mut self) {
        let is_left = self.cno.inner.lock().has_trigger();
        if is_left {
            self.cno.sleepers.wake_one();
        }
    }
}

impl TriggerReader<'_> {
    /// Copies triggers out and takes them, until there is none or `to` is full.
    ///
    /// # Errors
    ///
    /// `EFAULT` if a trigger could not be copied, `ERESTARTSYS` if a signal is pending and another
    /// thread has taken the trigger that was copied.
    fn read_into(&self, to: &mut RecordDest<'_, '_>) -> Result {
        let cno = self.cno;
        while to.room() != 0 {
            let Some(next) = cno.inner.lock().next() else {
                break;
            };
            let evd = match next {
                NextTrigger::Evd(evd) => evd,
                NextTrigger::ByConsumer => 0,
            };
            // The EVD may have been freed in the meantime.
            let is_valid = evd == 0 || cno.sources.exists(evd);
            if is_valid {
                if self.has_slept {
                    // The copy may wait for a page, and the wake-up of this read may have been the
                    // only one for the trigger.
                    cno.sleepers.wake_one();
                }
                to.put(kdapl_trigger { evd }.as_bytes())?;
            }
            let is_taken = cno.inner.lock().take_if(next);
            if is_valid && !is_taken {
                to.undo(1);
                if task::has_signal() {
                    return Err(ERESTARTSYS);
                }
            }
        }
        Ok(())
    }
}

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
        open_file(c"[kdapl-cno]", this, OpenMode::Read)
    }
}

impl RecordFile for Cno {
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
                    readable: readable && !inner.closed,
                    writable: false,
                    over: inner.closed,
                };
            }
        }
    }

    fn record_size(&self) -> usize {
        size_of::<kdapl_trigger>()
    }

    fn read(&self, to: &mut RecordDest<'_, '_>, blocking: Blocking) -> Result {
        let mut reader = TriggerReader {
            cno: self,
            has_slept: false,
        };
        loop {
            self.recheck();
            if self.inner.lock().closed {
                return Ok(());
            }
            reader.read_into(to)?;
            if to.count() != 0 {
                return Ok(());
            }
            let is_left = self.inner.lock().concerns_reader();
            if is_left {
                continue;
            }
            if blocking == Blocking::MayNot {
                return Err(EAGAIN);
            }
            let ready = || self.inner.lock().concerns_reader();
            reader.has_slept = true;
            match self.sleepers.wait(&mut Deadline::Never, ready) {
                SleepResult::Ready => {}
                SleepResult::TimedOut | SleepResult::Interrupted => return Err(ERESTARTSYS),
            }
        }
    }
}
