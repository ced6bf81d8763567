// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects and accepts that have no outcome yet.
//!
//! Over iWARP the driver owes an event for each: until that has come `rdma_destroy_id` waits for it,
//! however long the peer takes, and the queue pair must stay. And `rdma_connect` itself may block, as
//! siw's does until TCP has a connection.

use super::linger::{
    Claim,
    Lingering, //
};
use crate::sys::{
    thread::Thread,
    user::UserId, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        Mutex, //
    },
};

/// What is kept with an id, and only dropped.
trait Kept: Send + Sync {}

impl<T: Send + Sync> Kept for T {}

/// Who makes the call.
enum Caller {
    /// Nobody, or somebody who does not block.
    Nobody,
    /// A thread of its own.
    Thread(Thread),
    /// Nobody may begin any more.
    GivenUp,
}

/// Fields of [`Call`] protected by its lock.
struct Inner {
    caller: Caller,
    qp: Option<Arc<dyn Kept>>,
    claim: Option<Claim>,
}

/// The call of one id that tells `rdma_cm` the number of a queue pair.
#[pin_data]
pub(super) struct Call {
    /// Whether the driver owes the event that tells the outcome.
    pending: Atomic<bool>,
    #[pin]
    inner: Mutex<Inner>,
}

impl Call {
    /// None yet.
    pub(super) fn new() -> impl PinInit<Self> {
        let inner = Inner {
            caller: Caller::Nobody,
            qp: None,
            claim: None,
        };
        pin_init!(Self {
            pending: Atomic::new(false),
            inner <- new_mutex!(inner, "CmId::call"),
        })
    }

    /// Whether destroying the id would wait for the peer.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.load(Acquire)
    }

    /// The call begins; the queue pair is kept until [`Call::release`].
    ///
    /// # Errors
    ///
    /// As for [`Lingering::claim`].
    pub(super) fn begin<T: Send + Sync + 'static>(
        &self,
        qp: Arc<T>,
        lingering: &Arc<Lingering>,
        user: UserId,
    ) -> Result {
        // Only who holds the handler mutex begins a call.
        let has_claim = self.inner.lock().claim.is_some();
        if !has_claim {
            self.reserve(Lingering::claim(lingering, user)?);
        }
        let before = {
            let mut inner = self.inner.lock();
            self.pending.store(true, Release);
            inner.qp.replace(qp)
        };
        drop(before);
        Ok(())
    }

    /// There will be a call.
    pub(super) fn reserve(&self, claim: Claim) {
        let before = self.inner.lock().claim.replace(claim);
        drop(before);
    }

    /// The outcome is known.
    pub(super) fn end(&self) {
        self.pending.store(false, Release);
        let claim = self.inner.lock().claim.take();
        drop(claim);
    }

    /// The id is destroyed: nobody looks for the queue pair any more.
    pub(super) fn release(&self) {
        self.end();
        let qp = self.inner.lock().qp.take();
        drop(qp);
    }

    /// A thread is about to make the call. Says whether it may.
    pub(super) fn enter(&self, thread: Thread) -> bool {
        let mut inner = self.inner.lock();
        let may = !matches!(inner.caller, Caller::GivenUp);
        if may {
            inner.caller = Caller::Thread(thread);
        }
        may
    }

    /// The thread has made the call.
    pub(super) fn leave(&self) {
        let mut inner = self.inner.lock();
        if matches!(inner.caller, Caller::Thread(_)) {
            inner.caller = Caller::Nobody;
        }
    }

    /// Interrupts the thread that makes the call, and lets none begin any more.
    pub(super) fn give_up(&self) {
        let mut inner = self.inner.lock();
        if let Caller::Thread(thread) = core::mem::replace(&mut inner.caller, Caller::GivenUp) {
            thread.interrupt();
        }
    }
}
