// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion queues in their raw form: nobody polls but the owner, and the callback is the owner's.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    charge::{
        Charge,
        Resource, //
    },
    device::Device,
    leak::unless_destroyed,
    wc::{
        Batch,
        Wc, //
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

/// Who hears of completions.
pub(crate) trait Handler: Send + Sync + Sized + 'static {
    /// A completion came after the queue was armed; it has to be armed again for the next.
    ///
    /// Context: whatever the provider completes in: a kworker with interrupts off and the CQ's lock
    /// held (rxe), softirq (siw), hard IRQ. Only wakes and queues: no verbs, no allocation, no
    /// sleeping lock.
    fn completed(this: ArcBorrow<'_, Self>);

    /// The queue overflowed, or failed otherwise; it is of no more use.
    ///
    /// Context: any, with no lock of the provider's held.
    fn failed(this: ArcBorrow<'_, Self>);
}

/// Which completions are to be told of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notify {
    /// The next, whatever it is.
    Next,
    /// The next receive of a message that was sent as solicited. (Failures as well, of most devices.)
    Solicited,
}

/// What [`Cq::arm`] found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Armed {
    /// The next completion calls the handler.
    Quiet,
    /// There are completions already, of which no call will come.
    Missed,
}

/// A completion queue whose handler is an `H`.
///
/// # Invariants
///
/// `raw` is a live completion queue of `_device`, ours to destroy, and its context is `handler`.
pub(crate) struct Cq<H: Handler> {
    raw: NonNull<bindings::ib_cq>,
    // Some until `raw` is destroyed: callbacks borrow it.
    handler: Option<Arc<H>>,
    _charge: Charge,
    _device: Arc<Device>,
}

// SAFETY: `ib_core` allows the use of a completion queue from any thread.
unsafe impl<H: Handler> Send for Cq<H> {}
// SAFETY: As above.
unsafe impl<H: Handler> Sync for Cq<H> {}

impl<H: Handler> Cq<H> {
    /// Makes a completion queue for at least `entries` completions, which notifies on the completion
    /// vector `vector`, one of the device's. Context: process; sleeps.
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
        // SAFETY: The device is alive. The context is kept alive by `handler` until after the queue
        // is destroyed.
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
        // INVARIANT: Just made, with `handler` as its context.
        let this = Self {
            raw,
            handler: Some(handler),
            _charge: charge,
            _device: device,
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Takes completions, as many as there are, `room` allows and `batch` holds.
    ///
    /// Context: any but the queue's own callback. The caller serialises those who poll.
    pub(crate) fn poll<'b, const N: usize>(
        &self,
        batch: &'b mut Batch<N>,
        room: usize,
    ) -> &'b [Wc] {
        let (wc, most) = batch.as_raw();
        let room = i32::try_from(room.min(most)).unwrap_or(i32::MAX);
        // SAFETY: The queue is alive, and there is room for as many.
        let found = unsafe { bindings::kdapl_helper_ib_poll_cq(self.raw.as_ptr(), room, wc) };
        // SAFETY: As many were filled; a negative answer is none.
        unsafe { batch.filled(usize::try_from(found).unwrap_or(0)) }
    }

    /// Asks for one call of the handler at the next completion, or the next one of a kind. That may be
    /// asked for in a queue that is armed: whoever wants more of the two gets it.
    ///
    /// Providers that cannot tell answer [`Armed::Quiet`]: poll again in any case.
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
            Armed::Quiet
        }
    }

    /// The C pointer, valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_cq {
        self.raw.as_ptr()
    }
}

impl<H: Handler> Drop for Cq<H> {
    fn drop(&mut self) {
        // SAFETY: By the invariant it is ours; queue pairs hold an `Arc` of `self`, so none is left.
        // No callback runs once this has returned 0. It fails if a queue pair could not be destroyed.
        let ret = unsafe { bindings::ib_destroy_cq_user(self.raw.as_ptr(), core::ptr::null_mut()) };
        unless_destroyed("completion queue", ret, self.handler.take());
    }
}

/// `ib_comp_handler`.
///
/// # Safety
///
/// Only the provider calls it, with the context of a live queue that [`Cq::new`] made.
unsafe extern "C" fn completed<H: Handler>(_cq: *mut bindings::ib_cq, context: *mut c_void) {
    // SAFETY: The context is what `Cq::new` gave, alive while the queue is.
    H::completed(unsafe { ArcBorrow::from_raw(context.cast_const().cast::<H>()) });
}

/// The queue's event handler; the only event of a completion queue is its error.
///
/// # Safety
///
/// As for [`completed`].
unsafe extern "C" fn failed<H: Handler>(_event: *mut bindings::ib_event, context: *mut c_void) {
    // SAFETY: As above.
    H::failed(unsafe { ArcBorrow::from_raw(context.cast_const().cast::<H>()) });
}
