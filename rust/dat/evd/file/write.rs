// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Writes software events to a file of an Event Dispatcher (EVD).

use super::{
    call::FileCall,
    EvdFile, //
};
use crate::{
    dat::{
        evd::Evd,
        prelude::*, //
    },
    model::wait::{
        wait_for,
        ArmResult,
        SleepEnd,
        WaitError,
        Waiter, //
    },
    sys::record_file::{
        Blocking,
        RecordSource, //
    },
};

/// A thread that posts a software event.
struct Writer<'a> {
    evd: &'a Arc<Evd>,
    pointer: u64,
    call: FileCall<'a>,
}

impl Writer<'_> {
    fn is_over(&self) -> bool {
        self.evd.wakeup.closed.load_acquire()
    }
}

impl Waiter for Writer<'_> {
    type Output = ();

    fn queued(&self) -> u32 {
        // Posts at once.
        1
    }

    fn take(&mut self, _threshold: u32) -> Option<()> {
        (!self.is_over() && self.evd.post_se(self.pointer).is_ok()).then_some(())
    }

    fn arm_and_take(&mut self, threshold: u32) -> (ArmResult, Option<()>) {
        self.call.hear();
        // Even if there seems to be room: an event that is being handed over counts twice.
        self.evd.request_room_wakeup();
        (ArmResult::Empty, self.take(threshold))
    }

    fn stop(&mut self) -> Option<WaitError> {
        if self.is_over() {
            return Some(WaitError::Closed);
        }
        self.call.stop()
    }

    fn sleep(&mut self) -> SleepEnd {
        if self.is_over() {
            return SleepEnd::Closed;
        }
        self.call.sleep()
    }
}

impl EvdFile {
    /// Posts software events: see [`RecordFile::write`].
    ///
    /// [`RecordFile::write`]: crate::sys::record_file::RecordFile::write
    ///
    /// # Errors
    ///
    /// As for `RecordFile::write`; `EPIPE` after the EVD was freed.
    pub(super) fn write_events(
        &self,
        from: &mut RecordSource<'_, '_>,
        blocking: Blocking,
    ) -> Result {
        let evd = self.evd().ok_or(EPIPE)?;
        while let Some(pointer) = from.next()? {
            let mut writer = Writer {
                evd: &evd,
                pointer,
                call: FileCall::new(self.sleepers.writers(), blocking),
            };
            wait_for(&mut writer, 1).map_err(|stop| match stop {
                WaitError::TimedOut => EAGAIN,
                WaitError::Interrupted => ERESTARTSYS,
                WaitError::Closed => EPIPE,
            })?;
            from.accept();
        }
        Ok(())
    }
}
