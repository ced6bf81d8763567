// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work items of a controller: recovery from an error, attempts to connect, reset.
//!
//! They hold no reference. The NVMe core ends a reset before it deletes a controller, and calls
//! `stop_ctrl` then, which ends the others.

use super::{
    Controller,
    State,
    Transport, //
};
use crate::bindings;
use kernel::{
    bindings::{
        delayed_work,
        work_struct, //
    },
    container_of,
    prelude::*, //
};

pub(super) fn init_recovery<T: Transport>(work: *mut work_struct) {
    // SAFETY: `work` is a field that is being initialized.
    unsafe { bindings::kdapl_nvme_init_work(work, Some(recover::<T>)) };
}

pub(super) fn init_reconnect<T: Transport>(work: *mut delayed_work) {
    // SAFETY: As above.
    unsafe { bindings::kdapl_nvme_init_delayed_work(work, Some(reconnect::<T>)) };
}

/// # Safety
///
/// `work` is the field `recovery` of a controller, which waits for it before it is freed.
unsafe extern "C" fn recover<T: Transport>(work: *mut work_struct) {
    let field = work.cast::<kernel::types::Opaque<work_struct>>();
    // SAFETY: By the safety requirement.
    T::recover(unsafe { &*container_of!(field, Controller<T>, recovery) });
}

/// # Safety
///
/// `work` is in the field `reconnect` of a controller, which waits for it before it is freed.
unsafe extern "C" fn reconnect<T: Transport>(work: *mut work_struct) {
    // SAFETY: By the safety requirement.
    let delayed = unsafe { container_of!(work, delayed_work, work) };
    let field = delayed.cast::<kernel::types::Opaque<delayed_work>>();
    // SAFETY: As above.
    T::reconnect(unsafe { &*container_of!(field, Controller<T>, reconnect) });
}

/// # Safety
///
/// `work` is the field `reset_work` of a controller's `struct nvme_ctrl`.
unsafe extern "C" fn reset<T: Transport>(work: *mut work_struct) {
    // SAFETY: By the safety requirement.
    let ctrl = unsafe { container_of!(work, bindings::nvme_ctrl, reset_work) };
    // SAFETY: As above. The NVMe core waits for the work before it frees the controller.
    T::reset(unsafe { Controller::<T>::from_raw(ctrl) });
}

impl<T: Transport> Controller<T> {
    pub(super) fn init_reset_work(&self) {
        // SAFETY: The field is not used yet.
        unsafe {
            let work = &raw mut (*self.raw()).reset_work;
            bindings::kdapl_nvme_init_work(work, Some(reset::<T>));
        }
    }

    /// Begins to recover from an error, unless the controller is not live. Context: any.
    pub(crate) fn start_recovery(&self) {
        if self.change_state(State::RESETTING) {
            dev_warn!(self.device(), "starting error recovery\n");
            // SAFETY: The work was initialized with the controller.
            unsafe { bindings::kdapl_nvme_queue_reset_work(self.recovery.get()) };
        }
    }

    /// Arranges an attempt to connect, if the options allow another, or deletes the controller.
    /// `status` is the result of the last attempt.
    pub(crate) fn reconnect_or_remove(&self, status: i32) {
        if self.state() != State::CONNECTING {
            return;
        }
        // SAFETY: The controller is valid.
        if !unsafe { bindings::nvmf_should_reconnect(self.raw(), status) } {
            // SAFETY: As above.
            unsafe { bindings::nvme_delete_ctrl(self.raw()) };
            return;
        }
        let delay = self.reconnect_delay();
        dev_info!(self.device(), "Reconnecting in {delay} seconds...\n");
        // SAFETY: The work was initialized with the controller.
        unsafe { bindings::kdapl_nvme_queue_delayed_work(self.reconnect.get(), delay) };
    }

    /// Waits for the recovery, and cancels the next attempt to connect.
    pub(super) fn end_work(&self) {
        // SAFETY: Both works were initialized with the controller.
        unsafe {
            bindings::flush_work(self.recovery.get());
            bindings::cancel_delayed_work_sync(self.reconnect.get());
        }
    }
}
