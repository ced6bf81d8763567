// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tag sets and queues of the block layer.
//!
//! The admin tag set exists as long as a transport sees its controller, the I/O tag set as long as
//! `has_io_tags` says.

use super::{
    controller::Outcome,
    noio::without_io,
    request,
    request::Pdu,
    Controller,
    Transport, //
};
use crate::bindings;
use kernel::{
    bindings::{
        blk_mq_tag_set,
        hctx_type_HCTX_TYPE_READ as TYPE_READ, //
    },
    error::to_result,
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

/// Converts the result of a call.
pub(super) fn check(ret: c_int) -> Outcome {
    match ret {
        0 => Ok(()),
        error => Err(error),
    }
}

/// Calls of the NVMe core with a controller as their only argument.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $call:ident;)+) => {
        impl<T: Transport> Controller<T> {
            $(
                $(#[$doc])*
                pub(crate) fn $name(&self) {
                    // SAFETY: The controller was added, and its admin tag set exists. The calls on
                    // I/O queues do nothing without an I/O tag set, or for no namespaces.
                    unsafe { bindings::$call(self.raw()) };
                }
            )+
        }
    };
}

calls! {
    /// Lets no new request reach the admin queue.
    quiesce_admin = nvme_quiesce_admin_queue;
    /// Lets requests reach the admin queue again.
    unquiesce_admin = nvme_unquiesce_admin_queue;
    /// Stops the background work, and waits for it.
    stop = nvme_stop_ctrl;
    /// Stops keep-alive commands.
    stop_keep_alive = nvme_stop_keep_alive;
    /// Stops an authentication that is in progress.
    stop_authentication = kdapl_nvme_auth_stop;
}

impl<T: Transport> Controller<T> {
    /// Starts the background work of a live controller: keep-alive, scan, asynchronous events. Its
    /// allocations do not wait for I/O of the disk, whose recovery may wait for this call.
    pub(crate) fn start(&self) {
        // SAFETY: The controller was added, and its admin tag set exists.
        without_io(|| unsafe { bindings::nvme_start_ctrl(self.raw()) });
    }

    pub(super) fn alloc_admin_tags(&self) -> Result {
        let (tags, size) = (self.admin_tags.get(), size_of::<Pdu>() as u32);
        let ops = &raw const self.admin_ops;
        // SAFETY: The tag set and its operations are parts of the controller.
        to_result(unsafe { bindings::nvme_alloc_admin_tag_set(self.raw(), tags, ops, size) })
    }

    /// Removes all tag sets, after the queues were stopped.
    pub(super) fn remove_tags(&self) {
        self.remove_io_tags();
        self.unquiesce_admin();
        // SAFETY: The tag set exists, and its queue is stopped.
        unsafe { bindings::nvme_remove_admin_tag_set(self.raw()) };
    }

    /// Allocates the I/O tag set, for all queues but the first, if there is none.
    pub(crate) fn alloc_io_tags(&self) -> Outcome<bool> {
        if self.has_io_tags.load(Relaxed) {
            return Ok(false);
        }
        let (tags, size) = (self.io_tags.get(), size_of::<Pdu>() as u32);
        let (ops, maps) = (&raw const self.io_ops, TYPE_READ + 1);
        // SAFETY: The tag set and its operations are parts of the controller.
        check(unsafe { bindings::nvme_alloc_io_tag_set(self.raw(), tags, ops, maps, size) })?;
        self.has_io_tags.store(true, Relaxed);
        Ok(true)
    }

    /// Removes the I/O tag set, after the queues were stopped.
    pub(crate) fn remove_io_tags(&self) {
        if self.has_io_tags.xchg(false, kernel::sync::atomic::Full) {
            self.unquiesce_io();
            // SAFETY: The tag set exists, and its queues are stopped.
            unsafe { bindings::nvme_remove_io_tag_set(self.raw()) };
        }
    }

    /// Returns the number of queues that the I/O tag set has.
    pub(crate) fn tagged_queues(&self) -> usize {
        // SAFETY: The tag set is zeroed, or exists.
        unsafe { (*self.io_tags.get()).nr_hw_queues as usize }
    }

    /// Returns the number of tags of an I/O queue, or 0 if there is no I/O tag set.
    pub(crate) fn tag_depth(&self) -> u16 {
        if !self.has_io_tags.load(Relaxed) {
            return 0;
        }
        // SAFETY: The tag set exists.
        let depth = unsafe { (*self.io_tags.get()).queue_depth };
        depth.try_into().unwrap_or(u16::MAX - 1)
    }

    /// Calls the NVMe core for I/O queues, if their tag set exists.
    fn on_io_tags(&self, call: unsafe extern "C" fn(*mut bindings::nvme_ctrl)) {
        if self.has_io_tags.load(Relaxed) {
            // SAFETY: The controller is valid, and its I/O tag set exists.
            unsafe { call(self.raw()) };
        }
    }

    /// Lets no new request reach the I/O queues, and waits for those in `queue_rq`.
    pub(crate) fn quiesce_io(&self) {
        self.on_io_tags(bindings::nvme_quiesce_io_queues);
        self.on_io_tags(bindings::nvme_sync_io_queues);
    }

    /// Lets requests reach the I/O queues again.
    pub(crate) fn unquiesce_io(&self) {
        self.on_io_tags(bindings::nvme_unquiesce_io_queues);
    }

    /// Waits for time-outs of the admin queue.
    pub(crate) fn sync_admin(&self) {
        // SAFETY: The admin tag set exists, and so does its queue.
        unsafe { bindings::blk_sync_queue((*self.raw()).admin_q) };
    }

    /// Cancels all requests of the admin queue.
    pub(crate) fn cancel_admin(&self) {
        // SAFETY: The admin tag set exists.
        unsafe { self.cancel(self.admin_tags.get()) };
    }

    /// Cancels all requests of the I/O queues.
    pub(crate) fn cancel_io(&self) {
        if self.has_io_tags.load(Relaxed) {
            // SAFETY: The tag set exists.
            unsafe { self.cancel(self.io_tags.get()) };
        }
    }

    /// Cancels the requests of a tag set.
    ///
    /// # Safety
    ///
    /// The tag set exists.
    unsafe fn cancel(&self, tags: *mut blk_mq_tag_set) {
        // SAFETY: By the safety requirement.
        unsafe {
            bindings::blk_mq_tagset_busy_iter(tags, Some(cancel_one), self.raw().cast());
            bindings::blk_mq_tagset_wait_completed_request(tags);
        }
    }

    /// Changes the tag set to the present number of queues, while it has no requests.
    pub(crate) fn update_queues(&self) -> Outcome {
        if !self.has_io_tags.load(Relaxed) {
            return Err(ENODEV.to_errno());
        }
        // SAFETY: The I/O tag set exists.
        unsafe {
            bindings::nvme_start_freeze(self.raw());
            bindings::nvme_unquiesce_io_queues(self.raw());
            let frozen = bindings::nvme_wait_freeze_timeout(self.raw()) != 0;
            if frozen {
                let queues = self.queue_count().saturating_sub(1) as c_int;
                bindings::blk_mq_update_nr_hw_queues(self.io_tags.get(), queues);
            }
            bindings::nvme_unfreeze(self.raw());
            frozen.then_some(()).ok_or(ENODEV.to_errno())
        }
    }

    /// Agrees on the number of I/O queues with the controller.
    pub(crate) fn set_queue_count(&self) -> Outcome {
        let ctrl = self.raw();
        // SAFETY: The controller is valid and being set up by this thread, and so are its options.
        unsafe {
            let opts = (*ctrl).opts;
            let mut count = bindings::kdapl_nvme_nr_io_queues(opts) as c_int;
            check(bindings::nvme_set_queue_count(ctrl, &raw mut count))?;
            let count = u32::try_from(count).unwrap_or(0);
            if count == 0 {
                return Err(ENOMEM.to_errno());
            }
            (*ctrl).queue_count = count + 1;
            bindings::nvmf_set_io_queues(opts, count, self.io_queues.get().cast());
        }
        dev_info!(
            self.device(),
            "creating {} I/O queues.\n",
            self.queue_count() - 1
        );
        Ok(())
    }

    /// Sends the Connect command of a queue.
    pub(crate) fn connect_queue(&self, queue: usize) -> Outcome {
        // SAFETY: The controller is valid, and the queue's tag set exists: a queue other than the
        // first is connected after `alloc_io_tags`.
        check(unsafe {
            match queue {
                0 => bindings::nvmf_connect_admin_queue(self.raw()),
                _ if !self.has_io_tags.load(Relaxed) => ENODEV.to_errno(),
                _ => bindings::nvmf_connect_io_queue(self.raw(), queue as u16),
            }
        })
    }

    /// Enables the controller.
    pub(crate) fn enable(&self) -> Outcome {
        // SAFETY: The controller is valid.
        check(unsafe { bindings::nvme_enable_ctrl(self.raw()) })
    }

    /// Disables the controller, or shuts it down.
    pub(crate) fn disable(&self, shutdown: bool) {
        // SAFETY: The controller is valid. A failure means that it does not respond.
        unsafe { bindings::nvme_disable_ctrl(self.raw(), shutdown) };
    }

    /// Identifies the controller.
    pub(crate) fn finish_init(&self) -> Outcome {
        // SAFETY: The controller is valid, and enabled.
        check(unsafe { bindings::nvme_init_ctrl_finish(self.raw(), false) })
    }

    /// Waits for the work that submits the command for asynchronous events.
    pub(crate) fn end_async_event(&self) {
        // SAFETY: nvme_init_ctrl() has initialized the work.
        unsafe { bindings::cancel_work_sync(&raw mut (*self.raw()).async_event_work) };
    }

    /// Reports a completion of the command for asynchronous events.
    pub(crate) fn complete_async_event(&self, answer: request::Answer) {
        // SAFETY: The controller is valid.
        unsafe { bindings::kdapl_nvme_async_event(self.raw(), answer.status, answer.result) };
    }
}

/// Cancels a request, unless another thread completes it.
///
/// # Safety
///
/// The block layer calls it with a request of the tag set, and the controller.
unsafe extern "C" fn cancel_one(rq: *mut bindings::request, ctrl: *mut c_void) -> bool {
    // SAFETY: By the safety requirement.
    if unsafe { request::revoke(rq) } {
        // SAFETY: As above.
        unsafe { bindings::nvme_cancel_request(rq, ctrl) };
    }
    true
}
