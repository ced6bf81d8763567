// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Places where threads sleep on the files of an Event Dispatcher (EVD).

use crate::{
    dat::prelude::*,
    model::{
        atomic::AtomicBool,
        bell::{
            Bell,
            BellCount, //
        },
    },
    sys::wait::{
        new_wait_queue,
        Deadline,
        SleepResult,
        WaitQueue, //
    },
};
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full, //
};

/// Sleepers on the files of an EVD. The EVD and its files share it.
#[pin_data]
pub(in crate::dat::evd) struct FileSleepers {
    /// Reads, and polls of all kinds.
    #[pin]
    readers: WaitQueue,
    /// Writes.
    #[pin]
    writers: WaitQueue,
    /// Announces events.
    events: Bell,
    /// Announces room.
    room: Bell,
    /// A write or a poll has found no room.
    wants_room: AtomicBool,
    /// Number of open files.
    files: Atomic<u32>,
}

impl FileSleepers {
    /// Creates the sleepers of an EVD, without open files.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(super) fn new() -> DatResult<Arc<Self>> {
        Ok(Arc::pin_init(
            pin_init!(Self {
                readers <- new_wait_queue!("FileSleepers::readers"),
                writers <- new_wait_queue!("FileSleepers::writers"),
                events: Bell::new(),
                room: Bell::new(),
                wants_room: AtomicBool::new(false),
                files: Atomic::new(0),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Counts an open file.
    ///
    /// Fully ordered: the producer of an event sees the file, or its first poll sees the event.
    pub(super) fn file_opened(&self) {
        self.files.fetch_add(1, Full);
    }

    /// Counts a file that was closed.
    pub(super) fn file_closed(&self) {
        self.files.fetch_sub(1, Full);
    }

    /// Returns whether a file is open.
    pub(super) fn has_files(&self) -> bool {
        self.files.load(Acquire) != 0
    }

    /// Returns the queue of reads and polls.
    pub(super) fn readers(&self) -> &WaitQueue {
        &self.readers
    }

    /// Wakes all polls, and one read. Context: any, including hard IRQ.
    pub(super) fn announce_event(&self) {
        self.events.ring();
        self.readers.wake_one();
    }

    /// Wakes all writes and polls, if one of them waits for room. Context: any, including hard IRQ.
    pub(super) fn announce_room(&self) {
        // The exchange orders the read of the flag after the room was made.
        if self.wants_room.swap(false) {
            self.room.ring();
            self.writers.wake_all();
            self.readers.wake_all();
        }
    }

    /// Wakes all.
    pub(super) fn announce_end(&self) {
        self.events.ring();
        self.readers.wake_all();
        self.room.ring();
        self.writers.wake_all();
    }

    /// Requests the announcement of room. The caller then checks for room again.
    pub(super) fn request_room_wakeup(&self) {
        self.wants_room.swap(true);
    }

    /// Returns the present count of event announcements.
    pub(super) fn event_count(&self) -> BellCount {
        self.events.read()
    }

    /// Returns the present count of room announcements.
    pub(super) fn room_count(&self) -> BellCount {
        self.room.read()
    }

    /// Sleeps until the count of announced events differs from `seen`, or a signal is pending.
    pub(super) fn sleep_for_event(&self, seen: BellCount) -> SleepResult {
        let rung = || self.events.has_rung_since(seen);
        self.readers.wait(&mut Deadline::Never, rung)
    }

    /// Sleeps until the count of announced room differs from `seen`, or a signal is pending.
    pub(super) fn sleep_for_room(&self, seen: BellCount) -> SleepResult {
        let rung = || self.room.has_rung_since(seen);
        self.writers.wait(&mut Deadline::Never, rung)
    }
}
