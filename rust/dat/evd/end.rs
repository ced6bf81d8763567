// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How an EVD ends: freed, closed with its adapter, or left alone by its device.

use super::{
    Evd,
    Flags, //
};

impl Evd {
    /// Lets go of the completion queues.
    fn release_device(&self) {
        let queues = self.consumer.lock().cqs.close();
        drop(queues);
    }

    /// Ends every wait, now and later, once the events that lie here are taken.
    pub(in crate::dat) fn close(&self) {
        self.wakeup.closed.swap(true);
        self.wakeup.doorbell.ring();
        self.wakeup.waiter.wake();
    }

    /// Ends every wait and all upcalls, and lets go of the device.
    pub(super) fn end(&self) {
        self.unlink();
        self.close();
        self.end_upcalls();
        self.release_device();
    }

    /// The device is gone: nothing comes any more but software events, so nobody is to wait for
    /// anything else.
    pub(in crate::dat) fn device_removed(&self) {
        self.release_device();
        if !self.flags.has(Flags::SOFTWARE) && !self.flags.has(Flags::ASYNC) {
            self.close();
        }
    }
}
