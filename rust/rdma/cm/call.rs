// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects and accepts whose outcome is not known yet.
//!
//! Over iWARP the driver must report an event for each of them. Until then `rdma_destroy_id` waits,
//! however long the peer takes, and the queue pair must be kept. Also, `rdma_connect` itself may
//! block: siw's does until TCP has established the connection.

use super::lingering_ids::{
    CallPermit,
    LingeringIds, //
};
use crate::{
    rdma::qp::HeldQp,
    sys::{
        thread::Thread,
        user::UserId, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    },
};

/// Time that a connect has before it may be interrupted, in milliseconds.
///
/// An interrupt closes the TCP connection. siw's listener mistakes the end of a TCP connection that
/// it has not accepted yet for its own end, and drops a reference that it still needs: the peer's
/// kernel may crash. In this time a live peer mostly accepts, and a connect ends on its own.
const UNINTERRUPTED_MS: i64 = 1_000;

/// State of the thread that makes the call.
enum Caller {
    /// No thread makes the call, or a thread makes it without blocking.
    Nobody,
    /// A thread of [`run_as`](crate::sys::thread::run_as) makes the call since this time.
    Thread(Thread, Instant<Monotonic>),
    /// The call was cancelled, and no thread may begin it any more.
    Cancelled,
}

/// Fields of [`CallOut`] protected by its lock.
struct Inner {
    caller: Caller,
    qp: Option<Arc<dyn HeldQp>>,
    permit: Option<CallPermit>,
}

impl Inner {
    /// Implements [`CallOut::has_just_begun`].
    fn has_just_begun(&self) -> bool {
        match self.caller {
            Caller::Thread(_, since) => since.elapsed().as_millis() < UNINTERRUPTED_MS,
            Caller::Nobody | Caller::Cancelled => false,
        }
    }
}

/// The call on one ID that passes the number of a queue pair to `rdma_cm`: a connect or an accept.
#[pin_data]
pub(super) struct CallOut {
    /// Whether the event that reports the outcome is still to come.
    pending: Atomic<bool>,
    #[pin]
    inner: Mutex<Inner>,
}

impl CallOut {
    /// Creates the state without a call.
    pub(super) fn new() -> impl PinInit<Self> {
        let inner = Inner {
            caller: Caller::Nobody,
            qp: None,
            permit: None,
        };
        pin_init!(Self {
            pending: Atomic::new(false),
            inner <- new_mutex!(inner, "CmId::call"),
        })
    }

    /// Returns whether destroying the ID would wait for the peer.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.load(Acquire)
    }

    /// Marks the call as begun, and keeps the queue pair until [`CallOut::release`].
    ///
    /// # Errors
    ///
    /// As for [`LingeringIds::permit_call`].
    pub(super) fn begin<T: HeldQp + 'static>(
        &self,
        qp: Arc<T>,
        lingering: &Arc<LingeringIds>,
        user: UserId,
    ) -> Result {
        // The caller holds the handler mutex, so no other thread begins a call after this check.
        let has_permit = self.inner.lock().permit.is_some();
        if !has_permit {
            self.reserve(LingeringIds::permit_call(lingering, user)?);
        }
        let before = {
            let mut inner = self.inner.lock();
            self.pending.store(true, Release);
            if let Caller::Thread(_, since) = &mut inner.caller {
                *since = Instant::now();
            }
            inner.qp.replace(qp)
        };
        drop(before);
        Ok(())
    }

    /// Reserves the right to one call.
    pub(super) fn reserve(&self, permit: CallPermit) {
        let before = self.inner.lock().permit.replace(permit);
        drop(before);
    }

    /// Marks the outcome as known. The queue pair may fail now.
    ///
    /// Context: process; sleeps.
    pub(super) fn end(&self) {
        let was_pending = self.pending.xchg(false, Full);
        let (permit, qp) = {
            let mut inner = self.inner.lock();
            (inner.permit.take(), inner.qp.clone())
        };
        drop(permit);
        if let (Some(qp), true) = (qp, was_pending) {
            qp.call_ended();
        }
    }

    /// Drops the queue pair. The ID is destroyed, so `iw_cm` does not look up the queue pair any
    /// more.
    pub(super) fn release(&self) {
        self.end();
        let qp = self.inner.lock().qp.take();
        drop(qp);
    }

    /// Registers the thread that is about to make the call. Returns whether it may do so.
    pub(super) fn enter(&self, thread: Thread) -> bool {
        let mut inner = self.inner.lock();
        let may = !matches!(inner.caller, Caller::Cancelled);
        if may {
            inner.caller = Caller::Thread(thread, Instant::now());
        }
        may
    }

    /// Removes the thread, which has made the call.
    pub(super) fn leave(&self) {
        let mut inner = self.inner.lock();
        if matches!(inner.caller, Caller::Thread(..)) {
            inner.caller = Caller::Nobody;
        }
    }

    /// Returns whether the call has begun less than [`UNINTERRUPTED_MS`] ago, and goes on.
    pub(super) fn has_just_begun(&self) -> bool {
        self.inner.lock().has_just_begun()
    }

    /// Interrupts the thread that makes the call, and prevents later calls. Waits
    /// [`UNINTERRUPTED_MS`] at most for a call that has just begun.
    ///
    /// Context: process; sleeps.
    pub(super) fn cancel_call(&self) {
        let mut inner = loop {
            let inner = self.inner.lock();
            if !inner.has_just_begun() {
                break inner;
            }
            drop(inner);
            fsleep(Delta::from_millis(1));
        };
        if let Caller::Thread(thread, _) = core::mem::replace(&mut inner.caller, Caller::Cancelled)
        {
            thread.interrupt();
        }
    }
}
