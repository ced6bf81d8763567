// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Endpoint object, and its calls that only feed the state machine.

use super::{
    context::EpContext,
    data::{
        LazyRing,
        Preposted, //
    },
    effects::EFFECTS,
    inner::Inner,
    teardown::PastLives, //
};
use crate::{
    dat::{
        base::{
            Freeing,
            Object,
            Objects, //
        },
        evd::Evd,
        prelude::*, //
    },
    model::{
        atomic::AtomicBool,
        ep::{
            Call,
            Close,
            ReadyGate, //
        },
        handle::{
            Handle,
            HandleKind, //
        },
        shortest_delay::ShortestDelay,
    },
    rdma::qp::Qp,
    sys::{
        census::Counted,
        lock::SpinLockIrq,
        user::FixedCharge, //
    },
};
use kernel::{
    sync::Mutex,
    workqueue::{
        DelayedWork,
        Work, //
    },
};

/// Work item of the connect timer.
pub(super) const CONNECT: u64 = 0;

/// Work item that ends a connection whose QP failed.
pub(super) const FAILURE: u64 = 1;

/// Work item that ends the receives of an Endpoint with a Shared Receive Queue.
pub(super) const LAST_RECEIVE: u64 = 4;

/// Work item that ends a connection whose peer has disconnected.
pub(super) const PEER_DISCONNECT: u64 = 3;

/// Queue pair of an Endpoint.
pub(super) type EpQp = Qp<Ep, Evd>;

/// An Endpoint.
#[pin_data]
pub(crate) struct Ep {
    pub(super) handle: Handle,
    pub(super) context: Arc<EpContext>,
    /// Serialises resets and changes of the Endpoint's objects. After a successful reset a
    /// concurrent one finds the Endpoint unconnected, and does nothing.
    #[pin]
    pub(super) past_lives: Mutex<PastLives>,
    /// QP that a reset is destroying. A thread that releases the Endpoint meanwhile waits for that,
    /// but not for the rest of the reset, which allocates memory.
    #[pin]
    pub(super) old_qp: Mutex<Option<Arc<EpQp>>>,
    /// Receives that wait for a connection. A change of the PZ, the EVDs or the QP holds this lock,
    /// too.
    #[pin]
    pub(super) preposted: Mutex<Preposted>,
    #[pin]
    pub(super) inner: SpinLockIrq<Inner>,
    /// DTOs that a process posts without a call for each.
    pub(super) mapped: LazyRing,
    #[pin]
    pub(super) timer: DelayedWork<Ep, CONNECT>,
    #[pin]
    pub(super) failure: DelayedWork<Ep, FAILURE>,
    /// Delay with which `failure` is queued.
    pub(super) failure_delay: ShortestDelay,
    #[pin]
    pub(super) peer_disconnect_work: DelayedWork<Ep, PEER_DISCONNECT>,
    #[pin]
    pub(super) last_receive_work: DelayedWork<Ep, LAST_RECEIVE>,
    /// The driver has not reported yet that the QP has taken its last receive from the SRQ.
    pub(super) awaits_last_receive: AtomicBool,
    #[pin]
    pub(super) effects_work: Work<Ep, EFFECTS>,
    pub(super) _counted: Counted,
    pub(super) _memory: FixedCharge,
}

impl Ep {
    /// Returns the handle.
    pub(crate) fn handle(&self) -> u64 {
        self.handle.into_raw()
    }

    /// Implements `dat_ep_disconnect`. Succeeds without an event if the Endpoint is not connected,
    /// or already disconnected.
    ///
    /// On an unconnected Endpoint it flushes the receives that are posted, which returns their
    /// buffers to the consumer.
    ///
    /// Context: process; sleeps.
    pub(crate) fn disconnect(self: &Arc<Self>, close: Close) -> DatResult {
        self.await_acknowledgement();
        self.feed(Call::Disconnect(close), None)
    }

    /// Implements `kdapl_ep_ready`: opens the ready gate that the connect or the accept has closed.
    /// Events that the gate holds back are reported, ESTABLISHED first. Has no effect if the gate
    /// is open.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_STATE unless the Endpoint connects, accepts, is connected and not disconnecting, or
    /// its connection has ended while the gate was closed.
    pub(crate) fn ready(self: &Arc<Self>) -> DatResult {
        let open = |inner: &mut Inner| inner.connection.gate = ReadyGate::Open;
        self.feed_with_change(Call::Ready.into(), None, open)
    }

    /// Returns the error for a device that was removed.
    pub(super) fn gone() -> DatError {
        DatError::new(Kind::InsufficientResources, Subtype::ResourceDevice)
    }
}

impl Object for Ep {
    const KIND: HandleKind = HandleKind::Ep;
    const INVALID: Subtype = Subtype::InvalidHandleEp;
    /// An RMR that was bound on the Endpoint refers to it.
    const CHARGES_ITSELF: bool = true;

    fn free(eps: &Objects<Self>, handle: u64) -> DatResult {
        Self::free_handle(eps, handle)
    }

    /// Ends the Endpoint. Posted DTOs are dropped without events. The peer is disconnected.
    fn shutdown(self: &Arc<Self>, freeing: Freeing<'_, Self>) {
        self.end(freeing);
    }
}
