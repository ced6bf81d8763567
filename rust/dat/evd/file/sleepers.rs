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

/// A place where threads sleep until the next announcement.
#[pin_data]
pub(super) struct SleepPlace {
    #[pin]
    queue: WaitQueue,
    /// Rung for each announcement.
    bell: Bell,
}

impl SleepPlace {
    fn new(queue: impl PinInit<WaitQueue>) -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- queue,
            bell: Bell::new(),
        })
    }

    /// Returns the queue of the threads.
    pub(super) fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    /// Returns the present count of announcements.
    pub(super) fn count(&self) -> BellCount {
        self.bell.read()
    }

    /// Sleeps until the count of announcements differs from `seen`, or a signal is pending.
    pub(super) fn sleep(&self, seen: BellCount) -> SleepResult {
        let rung = || self.bell.has_rung_since(seen);
        self.queue.wait(&mut Deadline::Never, rung)
    }

    /// Announces to all threads. Context: any, including hard IRQ.
    fn announce(&self) {
        self.bell.ring();
        self.queue.wake_all();
    }
}

/// Sleepers on the files of an EVD. The EVD and its files share it.
#[pin_data]
pub(in crate::dat::evd) struct FileSleepers {
    /// Reads, to which events are announced, and polls of all kinds.
    #[pin]
    readers: SleepPlace,
    /// Writes, to which room is announced.
    #[pin]
    writers: SleepPlace,
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
                readers <- SleepPlace::new(new_wait_queue!("FileSleepers::readers")),
                writers <- SleepPlace::new(new_wait_queue!("FileSleepers::writers")),
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

    /// Returns the place of reads and polls.
    pub(super) fn readers(&self) -> &SleepPlace {
        &self.readers
    }

    /// Returns the place of writes.
    pub(super) fn writers(&self) -> &SleepPlace {
        &self.writers
    }

    /// Wakes all polls, and one read. Context: any, including hard IRQ.
    pub(super) fn announce_event(&self) {
        self.readers.bell.ring();
        self.readers.queue.wake_one();
    }

    /// Wakes all writes and polls, if one of them waits for room. Context: any, including hard IRQ.
    pub(super) fn announce_room(&self) {
        // The exchange orders the read of the flag after the room was made.
        if self.wants_room.swap(false) {
            self.writers.announce();
            self.readers.queue.wake_all();
        }
    }

    /// Wakes all.
    pub(super) fn announce_end(&self) {
        self.readers.announce();
        self.writers.announce();
    }

    /// Requests the announcement of room. The caller then checks for room again.
    pub(super) fn request_room_wakeup(&self) {
        self.wants_room.swap(true);
    }
}
