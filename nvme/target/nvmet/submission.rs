// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Queues of the NVMe core.

use crate::bindings;
use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex,
    types::Opaque, //
};

/// Identity of a controller of the core.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Controller(usize);

impl Controller {
    pub(super) fn new(ctrl: *const bindings::nvmet_ctrl) -> Self {
        Self(ctrl.addr())
    }
}

/// Submission and completion queue of the core.
///
/// # Invariants
///
/// Both are initialized until [`SubmissionQueue::destroy`], which sets `is_destroyed` first.
#[pin_data(PinnedDrop)]
pub(crate) struct SubmissionQueue {
    #[pin]
    pub(super) sq: Opaque<bindings::nvmet_sq>,
    #[pin]
    cq: Opaque<bindings::nvmet_cq>,
    #[pin]
    is_destroyed: Mutex<bool>,
}

// SAFETY: Any thread may use the queues of the core.
unsafe impl Send for SubmissionQueue {}
// SAFETY: As above.
unsafe impl Sync for SubmissionQueue {}

impl SubmissionQueue {
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            cq <- Opaque::ffi_init(|cq: *mut bindings::nvmet_cq| {
                // SAFETY: The memory is valid for writes. All zeros are a queue without a
                // controller.
                unsafe {
                    cq.write_bytes(0, 1);
                    bindings::nvmet_cq_init(cq);
                }
            }),
            // SAFETY: The memory is valid for writes. The completion queue was just initialized,
            // and stays beside the submission queue.
            sq <- unsafe {
                let cq = cq.get();
                pin_init::pin_init_from_closure(move |sq: *mut Opaque<bindings::nvmet_sq>| {
                    let sq = Opaque::cast_into(sq);
                    sq.write_bytes(0, 1);
                    kernel::error::to_result(bindings::nvmet_sq_init(sq, cq))
                })
            },
            is_destroyed <- new_mutex!(false, "SubmissionQueue::is_destroyed"),
        }? Error)
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::nvmet_sq {
        self.sq.get()
    }

    /// Returns the controller that a host has connected the queue to.
    pub(crate) fn controller(&self) -> Option<Controller> {
        // SAFETY: The core sets the member once, in a command of the queue.
        let ctrl = unsafe { (&raw const (*self.sq.get()).ctrl).read_volatile() };
        (!ctrl.is_null()).then(|| Controller::new(ctrl))
    }

    /// Reports a fatal error of the controller, whose queues the core disconnects then. Returns
    /// whether there is a controller.
    pub(crate) fn fatal_error(&self) -> bool {
        let is_destroyed = self.is_destroyed.lock();
        // SAFETY: As in `controller`.
        let ctrl = unsafe { (&raw const (*self.sq.get()).ctrl).read_volatile() };
        if *is_destroyed || ctrl.is_null() {
            return false;
        }
        // SAFETY: The queue has a reference to the controller until it is destroyed, which waits
        // for the lock.
        unsafe { bindings::nvmet_ctrl_fatal_error(ctrl) };
        true
    }

    /// Destroys the queues. Waits until the core has answered all commands. Context: process, not
    /// within a command's execution.
    pub(crate) fn destroy(&self) {
        if core::mem::replace(&mut *self.is_destroyed.lock(), true) {
            return;
        }
        // SAFETY: By the type invariant both are initialized. They are destroyed once.
        unsafe {
            bindings::nvmet_sq_destroy(self.sq.get());
            bindings::nvmet_cq_put(self.cq.get());
        }
    }
}

#[pinned_drop]
impl PinnedDrop for SubmissionQueue {
    fn drop(self: Pin<&mut Self>) {
        self.destroy();
    }
}
