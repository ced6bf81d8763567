// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Shared receive queues.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    charge::{
        Charge,
        Resource, //
    },
    leak::check_destroyed,
    pd::Pd,
    wr::SgList, //
};
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        Mutex, //
    },
};

/// Number of attempts to lengthen a queue that was shortened. Each waits for memory.
const RESIZE_ATTEMPTS: u32 = 16;

/// Receiver of the events of a shared receive queue.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Handles the event that fewer receives are left than the limit. The limit is off now.
    ///
    /// Context: that of the driver: any, with its locks held. It may only queue work and events.
    fn limit_reached(this: ArcBorrow<'_, Self>);
}

/// Error of an operation that the device or its driver does not support.
pub(crate) struct Unsupported;

impl From<Unsupported> for Error {
    fn from(_: Unsupported) -> Self {
        Self::from_errno(-(bindings::KDAPL_EOPNOTSUPP as i32))
    }
}

/// Size of a shared receive queue.
#[derive(Clone, Copy)]
pub(crate) struct SrqCapacity {
    pub(crate) max_wr: u32,
    pub(crate) max_sge: u32,
}

/// A shared receive queue of any kind.
pub(super) trait AnySrq: Send + Sync {
    /// Returns the C pointer, which is valid as long as `self`.
    fn as_ptr(&self) -> *mut bindings::ib_srq;
}

impl<H: Handler> AnySrq for Srq<H> {
    fn as_ptr(&self) -> *mut bindings::ib_srq {
        self.raw.as_ptr()
    }
}

/// Reference to a shared receive queue, for the queue pairs that use it.
#[derive(Clone)]
pub(crate) struct SrqRef(Arc<dyn AnySrq>);

impl<H: Handler> From<Arc<Srq<H>>> for SrqRef {
    fn from(srq: Arc<Srq<H>>) -> Self {
        Self(srq)
    }
}

impl SrqRef {
    /// Returns the C pointer, which is valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_srq {
        self.0.as_ptr()
    }
}

/// A shared receive queue, whose events are reported to `H`.
///
/// # Invariants
///
/// `raw` is a live shared receive queue, owned by this value. Its context is `handler`.
pub(crate) struct Srq<H: Handler> {
    raw: NonNull<bindings::ib_srq>,
    max_sge: u32,
    /// Taken in `drop` alone.
    handler: Option<Arc<H>>,
    charge: Pin<KBox<Mutex<Charge>>>,
    pd: Arc<Pd>,
}

// SAFETY: `ib_core` allows the use of a shared receive queue from any thread.
unsafe impl<H: Handler> Send for Srq<H> {}
// SAFETY: As above.
unsafe impl<H: Handler> Sync for Srq<H> {}

impl<H: Handler> Srq<H> {
    /// Creates a shared receive queue. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device has none, `EAGAIN` above a limit of the user, `ENOMEM`, any other
    /// error of the driver.
    pub(crate) fn new(pd: Arc<Pd>, capacity: SrqCapacity, handler: Arc<H>) -> Result<Arc<Self>> {
        if !pd.device().has_srqs() {
            return Err(Unsupported.into());
        }
        let charge = Charge::new(pd.device(), Resource::SharedReceiveQueue(capacity))?;
        let charge = KBox::pin_init(new_mutex!(charge, "Srq::charge"), GFP_KERNEL_ACCOUNT)?;
        let mut attr = bindings::ib_srq_init_attr {
            event_handler: Some(event::<H>),
            srq_context: Arc::as_ptr(&handler).cast_mut().cast::<c_void>(),
            attr: bindings::ib_srq_attr {
                max_wr: capacity.max_wr,
                max_sge: capacity.max_sge,
                srq_limit: 0,
            },
            srq_type: bindings::ib_srq_type_IB_SRQT_BASIC,
            ..Default::default()
        };
        // SAFETY: The protection domain is alive, and the new value keeps it so. It also keeps the
        // context. The device supports the call.
        let raw = unsafe {
            bindings::ib_create_srq_user(
                pd.as_ptr(),
                &raw mut attr,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: The queue was just created with `handler` as its context. If the `Arc` cannot
        // be allocated, the drop of the value destroys it.
        Ok(Arc::new(
            Self {
                raw,
                max_sge: capacity.max_sge,
                handler: Some(handler),
                charge,
                pd,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Lengthens the queue to `max_wr` receives, which is within the device's limit. Context:
    /// process; sleeps.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the driver cannot, which most drivers report as `EINVAL`; `EAGAIN` above a
    /// limit of the user; any other error of the driver. The queue is then as before.
    pub(crate) fn resize(&self, max_wr: u32) -> Result {
        let capacity = SrqCapacity {
            max_wr,
            max_sge: self.max_sge,
        };
        let new = Charge::new(self.pd.device(), Resource::SharedReceiveQueue(capacity))?;
        let mut attr = bindings::ib_srq_attr {
            max_wr,
            ..Default::default()
        };
        let mut charge = self.charge.lock();
        self.modify(&mut attr, bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR)
            .map_err(|error| {
                if error == EINVAL {
                    Unsupported.into()
                } else {
                    error
                }
            })?;
        *charge = new;
        Ok(())
    }

    /// Returns whether the queue holds at most one receive. The driver of soft-RoCE refuses to
    /// shorten a queue below its contents. So the queue is shortened, and lengthened again to
    /// `max_wr`. The caller prevents posts meanwhile.
    ///
    /// Context: process; sleeps.
    pub(crate) fn holds_at_most_one(&self, max_wr: u32) -> bool {
        let _charge = self.charge.lock();
        let resize = |max_wr| {
            let mut attr = bindings::ib_srq_attr {
                max_wr,
                ..Default::default()
            };
            self.modify(&mut attr, bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR)
        };
        if resize(1).is_err() {
            return false;
        }
        if (0..RESIZE_ATTEMPTS).any(|_| resize(max_wr).is_ok()) {
            return true;
        }
        pr_err!("a shared receive queue stays short: there is no memory\n");
        true
    }

    /// Sets the limit: an event occurs once when fewer receives are left. 0 turns it off.
    pub(crate) fn set_limit(&self, limit: u32) -> Result {
        let mut attr = bindings::ib_srq_attr {
            srq_limit: limit,
            ..Default::default()
        };
        self.modify(&mut attr, bindings::ib_srq_attr_mask_IB_SRQ_LIMIT)
    }

    fn modify(&self, attr: &mut bindings::ib_srq_attr, mask: u32) -> Result {
        // SAFETY: By the type invariant the queue is alive, and `attr` is initialised.
        let ret = unsafe { bindings::ib_modify_srq(self.raw.as_ptr(), attr, mask) };
        kernel::error::to_result(ret)
    }

    /// Posts a receive. Context: any except the callback of a completion queue.
    pub(crate) fn post_recv(&self, wr_id: u64, list: &SgList) -> Result {
        let wr = super::wr::build_recv(wr_id, list);
        // SAFETY: The queue is alive. The request and the list live through the call, which copies
        // them.
        let ret =
            unsafe { bindings::kdapl_helper_ib_post_srq_recv(self.raw.as_ptr(), &raw const wr) };
        kernel::error::to_result(ret)
    }
}

impl<H: Handler> Drop for Srq<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns the queue. The wrappers of its queue pairs
        // held an `Arc` of `self`, so no queue pair uses it. No event occurs after the call has
        // returned 0.
        let ret =
            unsafe { bindings::ib_destroy_srq_user(self.raw.as_ptr(), core::ptr::null_mut()) };
        let (handler, mut charge) = (self.handler.take(), self.charge.lock());
        check_destroyed("shared receive queue", ret, handler, &mut charge);
    }
}

/// Implements `ib_srq_init_attr.event_handler`.
///
/// # Safety
///
/// Only `ib_core` calls it, with an event and the context of a live queue that [`Srq::new`]
/// created.
unsafe extern "C" fn event<H: Handler>(event: *mut bindings::ib_event, context: *mut c_void) {
    // SAFETY: `ib_core` passes a valid event.
    if unsafe { (*event).event } == bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED {
        // SAFETY: `Srq::new` passed the context, which lives as long as the queue.
        let handler = unsafe { ArcBorrow::from_raw(context.cast_const().cast::<H>()) };
        H::limit_reached(handler);
    }
}
