// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints.
//!
//! The transition rules are in [`model::ep`](crate::model::ep); this module executes them.
//! Everything that changes in an Endpoint (EP) changes under one lock, from the step of the state
//! machine to the queueing of the event on an Event Dispatcher (EVD). This keeps the events of an
//! Endpoint in order.
//!
//! Terms of this module, besides QP (queue pair), PZ (Protection Zone) and CM (connection manager):
//!
//! - A life is the time between two resets of an Endpoint. Its number is part of each work request,
//!   so a late completion from before a reset is recognized.
//! - To give up a data transfer operation (DTO) is to free its slot and report it as flushed,
//!   without waiting for its completion.

mod config;
mod connect;
mod context;
mod create;
mod data;
mod effects;
mod inner;
mod keepalive;
mod state;
mod teardown;
mod trace;
mod watch;

pub(crate) use self::{
    config::{
        with_attributes,
        EpAttr,
        EpChange,
        Handles,
        Qos,
        PARTS, //
    },
    connect::{
        Connect,
        ConnectArguments, //
    },
    data::{
        NotPosted,
        Operands,
        Post, //
    },
    trace::TraceEntries,
};

pub(super) use self::{
    config::Parts,
    context::{
        EpContext,
        Receivers, //
    },
    data::{
        LocalAction,
        LocalRequest, //
    },
    teardown::{
        flush_freed,
        flush_live, //
    }, //
};

use self::{
    config::QpParts,
    connect::{
        Connection,
        Target, //
    },
    data::{
        receive_slots,
        Kept,
        Named,
        Plan,
        Preposted,
        Shares, //
    },
    effects::{
        PendingEffects,
        EFFECTS, //
    },
    inner::{
        receives,
        requests,
        Inner, //
    },
    teardown::PastLives,
};
use super::base::{
    Freeing,
    Object,
    Objects, //
};
use crate::{
    dat::prelude::*,
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
    },
    rdma::qp::Qp,
    sys::{
        census::Counted,
        lock::SpinLockIrq, //
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
const CONNECT: u64 = 0;

/// Work item that ends a connection whose QP failed.
const FAILURE: u64 = 1;

/// Work item that ends the receives of an Endpoint with a Shared Receive Queue.
const LAST_RECEIVE: u64 = 4;

/// Work item that ends a connection whose peer has disconnected.
const PEER_DISCONNECT: u64 = 3;

/// Queue pair of an Endpoint.
type EpQp = Qp<Ep, super::evd::Evd>;

/// An Endpoint.
#[pin_data]
pub(crate) struct Ep {
    handle: Handle,
    context: Arc<EpContext>,
    /// Held for the whole of a reset. After a successful reset a concurrent one finds the Endpoint
    /// unconnected, and does nothing.
    #[pin]
    past_lives: Mutex<PastLives>,
    /// QP that a reset is destroying. A thread that releases the Endpoint meanwhile waits for that,
    /// but not for the rest of the reset, which allocates memory.
    #[pin]
    old_qp: Mutex<Option<Arc<EpQp>>>,
    /// Receives that wait for a connection. A change of the PZ, the EVDs or the QP holds this lock,
    /// too.
    #[pin]
    preposted: Mutex<Preposted>,
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    timer: DelayedWork<Ep, CONNECT>,
    #[pin]
    failure: DelayedWork<Ep, FAILURE>,
    #[pin]
    peer_disconnect_work: DelayedWork<Ep, PEER_DISCONNECT>,
    #[pin]
    last_receive_work: DelayedWork<Ep, LAST_RECEIVE>,
    /// The driver has not reported yet that the QP has taken its last receive from the SRQ.
    awaits_last_receive: AtomicBool,
    #[pin]
    effects_work: Work<Ep, EFFECTS>,
    _counted: Counted,
}

impl Ep {
    /// Returns the handle.
    pub(in crate::dat) fn handle(&self) -> u64 {
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
    /// INVALID_STATE unless the Endpoint connects, accepts or is connected.
    pub(crate) fn ready(self: &Arc<Self>) -> DatResult {
        let open = |inner: &mut Inner| inner.connection.gate = ReadyGate::Open;
        self.feed_with_change(Call::Ready.into(), None, open)
    }

    /// Returns the error for a device that was removed.
    fn gone() -> DatError {
        DatError::new(Kind::InsufficientResources, Subtype::ResourceDevice)
    }
}

impl Object for Ep {
    const KIND: HandleKind = HandleKind::Ep;
    const INVALID: Subtype = Subtype::InvalidHandleEp;

    fn free(eps: &Objects<Self>, handle: u64) -> DatResult {
        Self::free_handle(eps, handle)
    }

    /// Ends the Endpoint. Posted DTOs are dropped without events. The peer is disconnected.
    fn shutdown(self: &Arc<Self>, freeing: Freeing<'_, Self>) {
        self.end(freeing);
    }
}
