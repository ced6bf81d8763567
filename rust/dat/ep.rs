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
mod keepalive;
mod state;
mod teardown;
mod trace;
mod watch;

pub(crate) use self::{
    config::{
        with_attributes,
        Attr,
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
        HeldQueue,
        Target, //
    },
    data::{
        receive_slots,
        Kept,
        Named,
        Plan,
        Preposted,
        RecvWatch,
        Registrations,
        SharedReceives,
        Shares,
        Streams, //
    },
    effects::{
        PendingEffects,
        EFFECTS, //
    },
    teardown::PastLives,
    trace::Trace, //
};
use super::{
    base::{
        slots,
        Freeing,
        InUse,
        Object,
        Objects,
        SlotStorage, //
    },
    evd::Demand,
    srq::Holder, //
};
use crate::{
    dat::prelude::*,
    model::{
        atomic::AtomicBool,
        dto::DtoSlots,
        ep::{
            Call,
            Close,
            Phase,
            ReadyGate, //
        },
        handle::{
            Handle,
            HandleKind, //
        },
        requests::Requests,
        traffic::Traffic, //
    },
    rdma::qp::Qp,
    sys::{
        census::Counted,
        lock::SpinLockIrq,
        user::ChargedArray, //
    },
};
use kernel::{
    alloc::Flags,
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

/// Allocates slots for `count` receives in flight.
fn receives(count: u32, context: &EpContext, flags: Flags) -> DatResult<DtoSlots<SlotStorage>> {
    Ok(DtoSlots::new(slots(context.ia.user(), count, flags)?))
}

/// Allocates slots for `count` requests in flight.
fn requests(count: u32, context: &EpContext, flags: Flags) -> DatResult<Requests<SlotStorage>> {
    let device = context.ia.device();
    let unsignalled = device.is_ok_and(|device| device.driver().allows_unsignalled);
    Ok(Requests::new(
        slots(context.ia.user(), count, flags)?,
        unsignalled,
    ))
}

/// Fields of [`Ep`] protected by its lock.
struct Inner {
    phase: Phase,
    /// Phase in which the Endpoint was freed.
    freed_in: Option<Phase>,
    /// PZ and EVDs; empty once freed.
    parts: Parts,
    /// Completion streams on its EVDs.
    streams: Streams,
    attr: Attr,
    /// `None` while unconfigured, once freed, or once the device is gone.
    qp: Option<Arc<EpQp>>,
    /// Shares of the completion queues that the QP reports to. The QP holds a reference, too.
    shares: Option<Arc<Shares>>,
    requests: Requests<SlotStorage>,
    /// Slots of receives. With a Shared Receive Queue (SRQ): slots of completed receives whose
    /// events are not reported yet.
    receives: DtoSlots<SlotStorage>,
    registrations: Registrations,
    /// LMR contexts that requests and receives in flight name. Empty unless the consumer is a
    /// kernel module.
    named: Named,
    shared_receives: SharedReceives,
    connection: Connection,
    /// DTOs that have completed since the creation.
    traffic: Traffic,
    /// Receives to report after ESTABLISHED. `demand` is set while there are any.
    held: HeldQueue,
    /// Counts the held receives at the SRQ; `None` without an SRQ.
    holder: Option<Holder>,
    /// Number of resets. Work requests carry its low bits.
    life: u32,
    /// Effects that the work item has not carried out yet.
    pending_effects: Option<PendingEffects>,
    /// Number of receives in [`Ep::preposted`]; `None` once receives are posted to the QP at once.
    preposted_count: Option<u32>,
    /// Keeps the work items of both EVDs draining while set.
    demand: Option<(Demand, Demand)>,
    /// High watermarks, if some are set.
    watch: Option<KBox<RecvWatch>>,
    trace: Trace,
}

impl Inner {
    fn new(
        context: &EpContext,
        parts: Parts,
        attr: Attr,
        phase: Phase,
        flags: Flags,
    ) -> DatResult<Self> {
        let parts_srq = parts.srq.as_ref().map(InUse::object);
        let streams = context.evds.arrange(|| {
            Plan::new(&parts, &Parts::default(), &Streams::default(), &attr).map(Plan::join)
        })?;
        Ok(Self {
            phase,
            freed_in: None,
            parts,
            streams,
            attr,
            qp: None,
            shares: None,
            requests: requests(attr.max_request_dtos, context, flags)?,
            receives: receives(
                receive_slots(parts_srq.as_deref(), context, &attr),
                context,
                flags,
            )?,
            shared_receives: SharedReceives::none(),
            registrations: Registrations::none(),
            named: Named::new(context, &attr, parts_srq.as_deref(), flags)?,
            connection: Connection::none(context.ia.attr().address),
            traffic: Traffic::default(),
            held: HeldQueue::new(ChargedArray::empty()),
            holder: None,
            life: 0,
            pending_effects: None,
            preposted_count: Some(0),
            demand: None,
            watch: None,
            trace: Trace::new(flags)?,
        })
    }

    /// Returns the number of receives that are posted and have not completed.
    fn receives_outstanding(&self) -> u32 {
        self.receives
            .outstanding()
            .saturating_add(self.preposted_count.unwrap_or(0))
    }
}

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
