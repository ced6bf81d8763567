// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! End of an EVD: it is freed, its adapter is closed, or its device is removed.

use super::{
    Evd,
    Flags, //
};

impl Evd {
    /// Releases the completion queues. No more are added.
    pub(in crate::dat) fn release_device(&self) {
        let queues = self.consumer.lock().cqs.close();
        // No callback comes any more.
        self.retract_empty();
        drop(queues);
    }

    /// Stops all waits. Later waits do not sleep. Both still return events that are queued.
    pub(in crate::dat) fn close(&self) {
        self.wakeup.closed.swap(true);
        self.update_calls_only();
        self.wakeup.doorbell.ring();
        self.wakeup.waiter.wake();
        self.wake_all_of_files();
    }

    /// Stops all waits and all upcalls, and releases the CNO and the device.
    pub(super) fn end(&self) {
        self.unlink();
        self.close();
        // The removal of the device does not wait for an upcall.
        self.release_device();
        self.end_upcalls();
    }

    /// Releases the device, which was removed. Stops all waits, unless the EVD may get software
    /// events or asynchronous events. No others arrive any more.
    pub(in crate::dat) fn device_removed(&self) {
        self.release_device();
        if !self.flags.has(Flags::SOFTWARE) && !self.flags.has(Flags::ASYNC) {
            self.close();
        }
    }
}
