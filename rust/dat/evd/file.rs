// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Files of an Event Dispatcher (EVD): `KDAPL_EVD_FD`.
//!
//! A read returns the oldest events, a write posts software events. The file is a consumer beside
//! the others: an event is taken once, by a read, a call or the process that maps it. Any number of
//! threads may read and poll. None of them is the waiter in the sense of DAT, so an EVD with a
//! waiter or a Consumer Notification Object (CNO) has files as any other, and each event wakes all
//! of them.
//!
//! A file holds no reference to its EVD. It finds the EVD by its handle, in the table of the
//! adapter, and shares only the [sleeping threads](FileSleepers) with it. So closing the adapter
//! frees the event queue, even if another process has the file.
//!
//! A thread arms the completion queues before it sleeps, or reports that there is no event. That
//! holds for poll too, and for each call that finds the EVD empty while it has a file: with
//! edge-triggered epoll, no poll follows such a call.

mod call;
mod read;
mod sleepers;
mod write;

use self::sleepers::FileSleepers;
use super::{
    Consumer,
    Evd,
    Flags, //
};
use crate::{
    dat::{
        base::{
            open_file,
            Objects, //
        },
        prelude::*, //
    },
    model::{
        direct_event::DrainLimit,
        event::Record, //
    },
    sys::{
        record_file::{
            Blocking,
            OpenMode,
            PendingFile,
            Readiness,
            RecordDest,
            RecordFile,
            RecordSource, //
        },
        wait::WaitQueue, //
    },
};
use kernel::sync::SetOnce;

/// Sleepers on the files of an EVD, which are created with the first one.
pub(super) type LazySleepers = SetOnce<Arc<FileSleepers>>;

/// Object of an open file.
pub(crate) struct EvdFile {
    evds: Arc<Objects<Evd>>,
    handle: u64,
    sleepers: Arc<FileSleepers>,
    /// Size of a record in bytes.
    record_size: usize,
}

impl EvdFile {
    /// Opens a file of an EVD for the calling process. It can be written if the EVD takes software
    /// events.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * INVALID_HANDLE (EVD);
    /// * INSUFFICIENT_RESOURCES: (memory) without memory; without a subtype above the process's
    ///   limit of open files.
    pub(in crate::dat) fn open(
        evds: &Arc<Objects<Evd>>,
        handle: u64,
        record_size: usize,
    ) -> DatResult<PendingFile> {
        let evd = evds.get(handle)?;
        let sleepers = evd.sleepers()?;
        sleepers.file_opened();
        evd.retract_empty();
        let this = Self {
            evds: evds.clone(),
            handle,
            sleepers,
            record_size,
        };
        let access = match evd.flags.has(Flags::SOFTWARE) {
            true => OpenMode::ReadWrite,
            false => OpenMode::Read,
        };
        let this = Arc::new(this, GFP_KERNEL_ACCOUNT)?;
        open_file(c"[kdapl-evd]", this, access)
    }

    /// Returns the EVD; `None` after it was freed.
    fn evd(&self) -> Option<Arc<Evd>> {
        self.evds.get(self.handle).ok()
    }
}

impl Drop for EvdFile {
    fn drop(&mut self) {
        self.sleepers.file_closed();
    }
}

impl RecordFile for EvdFile {
    fn sleepers(&self) -> &WaitQueue {
        self.sleepers.readers().queue()
    }

    fn readiness(&self) -> Readiness {
        let Some(evd) = self.evd() else {
            return Readiness::OVER;
        };
        if !evd.has_events() {
            evd.arm_and_drain(&mut evd.consumer.lock());
        }
        let over = evd.wakeup.closed.load_acquire();
        Readiness {
            readable: evd.has_events(),
            writable: !over && evd.flags.has(Flags::SOFTWARE) && evd.has_room_or_requests_wakeup(),
            over,
        }
    }

    fn record_size(&self) -> usize {
        self.record_size
    }

    fn read(&self, to: &mut RecordDest<'_, '_>, blocking: Blocking) -> Result {
        self.read_events(to, blocking)
    }

    fn write(&self, from: &mut RecordSource<'_, '_>, blocking: Blocking) -> Result {
        self.write_events(from, blocking)
    }
}

impl Evd {
    /// Returns the sleepers on the EVD's files.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    fn sleepers(&self) -> DatResult<Arc<FileSleepers>> {
        if self.wakeup.file_sleepers.as_ref().is_none() {
            let new = FileSleepers::new()?;
            // The lock excludes a concurrent store by another thread.
            let _consumer = self.consumer.lock();
            let _ = self.wakeup.file_sleepers.populate(new);
        }
        let sleepers = self.wakeup.file_sleepers.as_ref();
        Ok(sleepers.ok_or(DatError::internal())?.clone())
    }

    /// Returns whether a file of the EVD is open.
    pub(super) fn has_file(&self) -> bool {
        let sleepers = self.wakeup.file_sleepers.as_ref();
        sleepers.is_some_and(|sleepers| sleepers.has_files())
    }

    /// Wakes the polls of the EVD's files, and one read.
    ///
    /// Context: any, including hard IRQ. The caller has queued the event.
    pub(super) fn wake_reader(&self) {
        if let Some(sleepers) = self.wakeup.file_sleepers.as_ref() {
            sleepers.announce_event();
        }
    }

    /// Wakes the writes to the EVD's files that wait for room.
    ///
    /// Context: any, including hard IRQ. The caller has made room.
    pub(super) fn wake_writers(&self) {
        if let Some(sleepers) = self.wakeup.file_sleepers.as_ref() {
            sleepers.announce_room();
        }
    }

    /// Wakes all sleepers on the EVD's files, after waits were stopped.
    pub(super) fn wake_all_of_files(&self) {
        if let Some(sleepers) = self.wakeup.file_sleepers.as_ref() {
            sleepers.announce_end();
        }
    }

    /// Takes an event that arrived after the consumer has found the EVD empty, if it has a file. If
    /// there is none, the next event wakes the sleepers on the file.
    pub(super) fn arm_and_pop(self: &Arc<Self>, consumer: &mut Consumer) -> Option<Record> {
        if !self.has_file() {
            return None;
        }
        self.arm_and_drain(consumer);
        let mut record = Record::default();
        let found = self.pop(consumer, DrainLimit::All, &mut record);
        found.is_event().then_some(record)
    }

    /// Returns whether there is room for a software event. If not, writers are woken when there is.
    fn has_room_or_requests_wakeup(&self) -> bool {
        self.room() != 0 || self.request_room_wakeup()
    }

    /// Requests a wake-up of writers when an event is taken. Returns whether there is room now.
    fn request_room_wakeup(&self) -> bool {
        if let Some(sleepers) = self.wakeup.file_sleepers.as_ref() {
            sleepers.request_room_wakeup();
        }
        // Also asks a process that has mapped events to report the next one that it takes.
        self.recheck_room()
    }
}
