// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion queues in their raw form: only the owner polls, and the owner supplies the callback.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    charge::{
        Charge,
        Resource, //
    },
    device::Device,
    leak::check_destroyed,
    wc::{
        Wc,
        WcBatch, //
    },
};
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};

/// Receiver of a completion queue's notifications.
pub(crate) trait Handler: Send + Sync + Sized + 'static {
    /// Handles the notification of an armed queue. The queue must be armed again for the next
    /// notification.
    ///
    /// Context: that of the driver's completion handling: a kworker with interrupts off and the
    /// queue's lock held (rxe), softirq (siw), or hard IRQ. It may only wake tasks and queue work:
    /// no verbs, no allocation, no sleeping lock.
    fn completed(this: ArcBorrow<'_, Self>);

    /// Handles an overflow or another failure of the queue, which cannot be used any more.
    ///
    /// Context: any, without locks of the driver.
    fn failed(this: ArcBorrow<'_, Self>);
}

/// Kind of completion that notifies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notify {
    /// The next completion of any kind.
    Next,
    /// The next receive of a message that was sent as solicited. (With most devices, also the next
    /// failed completion.)
    Solicited,
}

/// Result of [`Cq::arm`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Armed {
    /// The queue is armed: the next completion calls the handler.
    Empty,
    /// The queue already has completions. The handler will not be called for these.
    Missed,
}

/// A completion queue whose handler is an `H`.
///
/// # Invariants
///
/// `raw` is a live completion queue of `_device`, owned by this value. Its context is `handler`.
pub(crate) struct Cq<H: Handler> {
    raw: NonNull<bindings::ib_cq>,
    // `Some` until `raw` is destroyed, because callbacks borrow it.
    handler: Option<Arc<H>>,
    charge: Charge,
    _device: Arc<Device>,
}

// SAFETY: `ib_core` allows the use of a completion queue from any thread.
unsafe impl<H: Handler> Send for Cq<H> {}
// SAFETY: As above.
unsafe impl<H: Handler> Sync for Cq<H> {}

impl<H: Handler> Cq<H> {
    /// Creates a completion queue for at least `entries` completions. It notifies on `vector`, a
    /// completion vector of the device. Context: process; sleeps.
    pub(crate) fn new(
        device: Arc<Device>,
        handler: Arc<H>,
        entries: u32,
        vector: u32,
    ) -> Result<Arc<Self>> {
        let charge = Charge::new(&device, Resource::CompletionQueue(entries))?;
        let attr = bindings::ib_cq_init_attr {
            cqe: entries,
            comp_vector: vector,
            ..Default::default()
        };
        // SAFETY: The device is alive. `handler` keeps the context alive until the queue is
        // destroyed.
        let raw = unsafe {
            bindings::__ib_create_cq(
                device.as_ptr(),
                Some(completed::<H>),
                Some(failed::<H>),
                Arc::as_ptr(&handler).cast_mut().cast::<c_void>(),
                &raw const attr,
                c"kdapl".as_char_ptr(),
            )
        };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: The queue was just created with `handler` as its context.
        let this = Self {
            raw,
            handler: Some(handler),
            charge,
            _device: device,
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Polls completions: as many as there are, but at most `room` and the size of `batch`.
    ///
    /// Context: any, except the callback of the queue. The caller serialises polls.
    pub(crate) fn poll<'b, const N: usize>(
        &self,
        batch: &'b mut WcBatch<N>,
        room: usize,
    ) -> &'b [Wc] {
        let (wc, most) = batch.as_raw();
        let room = i32::try_from(room.min(most)).unwrap_or(i32::MAX);
        // SAFETY: The queue is alive, and the batch has space for `room` completions.
        let found = unsafe { bindings::kdapl_helper_ib_poll_cq(self.raw.as_ptr(), room, wc) };
        // SAFETY: The driver has written `found` completions. A negative value is an error, without
        // any.
        unsafe { batch.filled(usize::try_from(found).unwrap_or(0)) }
    }

    /// Requests one call of the handler for the next completion of a kind. An armed queue may be
    /// armed again. The handler is then called for the first completion that matches either
    /// request.
    ///
    /// Drivers that cannot detect missed completions return [`Armed::Empty`], so poll again in any
    /// case.
    pub(crate) fn arm(&self, notify: Notify) -> Armed {
        let flags = match notify {
            Notify::Next => bindings::ib_cq_notify_flags_IB_CQ_NEXT_COMP,
            Notify::Solicited => bindings::ib_cq_notify_flags_IB_CQ_SOLICITED,
        } | bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS;
        // SAFETY: The queue is alive.
        let ret = unsafe { bindings::kdapl_helper_ib_req_notify_cq(self.raw.as_ptr(), flags) };
        if ret > 0 {
            Armed::Missed
        } else {
            Armed::Empty
        }
    }

    /// Returns the C pointer, which is valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_cq {
        self.raw.as_ptr()
    }
}

impl<H: Handler> Drop for Cq<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns the queue. Queue pairs hold an `Arc` of
        // `self`, so none uses it any more. The call fails if a queue pair could not be destroyed.
        // No callback runs after it has returned 0.
        let ret = unsafe { bindings::ib_destroy_cq_user(self.raw.as_ptr(), core::ptr::null_mut()) };
        let handler = self.handler.take();
        check_destroyed("completion queue", ret, handler, &mut self.charge);
    }
}

/// Implements `ib_comp_handler`.
///
/// # Safety
///
/// Only the driver calls it, with the context of a live queue that [`Cq::new`] created.
unsafe extern "C" fn completed<H: Handler>(_cq: *mut bindings::ib_cq, context: *mut c_void) {
    // SAFETY: `Cq::new` passed the context, which lives as long as the queue.
    H::completed(unsafe { ArcBorrow::from_raw(context.cast_const().cast::<H>()) });
}

/// Handles an event of the queue. The only event of a completion queue is its failure.
///
/// # Safety
///
/// As for [`completed`].
unsafe extern "C" fn failed<H: Handler>(_event: *mut bindings::ib_event, context: *mut c_void) {
    // SAFETY: As above.
    H::failed(unsafe { ArcBorrow::from_raw(context.cast_const().cast::<H>()) });
}
