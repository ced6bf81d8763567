// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints.
//!
//! The rules are [`model::ep`](crate::model::ep); here is what executes them. All that changes in an
//! Endpoint changes under one lock, from the step of the state machine to the queueing of the event
//! that tells of it: this is what keeps the events of an Endpoint in order.

mod accept;
mod advance;
mod attr;
mod change;
mod complete;
mod connect;
mod due;
mod early;
mod end;
mod event;
mod parts;
mod peer_left;
mod post;
mod preposted;
mod query;
mod reserve;
mod setup;
mod streams;
mod trace;
mod wish;

pub(crate) use self::{
    attr::{
        with_attributes,
        Attr,
        Qos, //
    },
    change::Change,
    connect::Connect,
    parts::Handles,
    post::{
        Operands,
        Post,
        Segment, //
    },
    trace::TraceEntries,
    wish::Wish,
};

pub(super) use self::end::flush;

use self::{
    due::{
        Due,
        ENACT, //
    },
    early::Early,
    parts::Parts,
    peer_left::Left,
    preposted::Preposted,
    streams::{
        Plan,
        Shares,
        Streams, //
    },
    trace::Trace, //
};
use super::{
    evd::Demand,
    ia::Ia,
    objects::{
        Objects,
        Reservation, //
    },
    private_data::PrivateData, //
};
use crate::{
    model::{
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        dto::{
            Slot,
            Slots, //
        },
        ep::{
            may_free,
            Close,
            Input,
            Phase, //
        },
        handle::{
            Handle,
            HandleKind, //
        },
    },
    rdma::{
        addr::SockAddr,
        cm::CmId,
        qp::Qp, //
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        memcg::caller_pays,
        wait::Deadline, //
    },
};
use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    alloc::Flags,
    new_delayed_work, new_mutex, new_spinlock, new_work,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    },
    workqueue::{
        DelayedWork,
        Work, //
    },
};

/// The work item that ends an attempt to connect.
const CONNECT: u64 = 0;

/// The work item that ends a connection whose QP failed.
const FAILURE: u64 = 1;

/// The work item that ends a connection whose peer has left.
const LEFT: u64 = 3;

/// The queue pair of an Endpoint.
type EpQp = Qp<Ep, super::evd::Evd>;

/// Storage of the DTO slots of one direction.
struct SlotStorage(KVVec<Slot>);

impl Deref for SlotStorage {
    type Target = [Slot];

    fn deref(&self) -> &[Slot] {
        &self.0
    }
}

impl DerefMut for SlotStorage {
    fn deref_mut(&mut self) -> &mut [Slot] {
        &mut self.0
    }
}

/// Slots for `count` DTOs in flight.
fn slots(count: u32, flags: Flags) -> DatResult<Slots<SlotStorage>> {
    let count = usize::try_from(count).map_err(|_| DatError::memory())?;
    let mut storage = KVVec::with_capacity(count, flags)?;
    for _ in 0..count {
        storage
            .push_within_capacity(Slot::vacant())
            .map_err(|_| DatError::memory())?;
    }
    Ok(Slots::new(SlotStorage(storage)))
}

/// Where a connection leads, for whoever wants another one to there.
#[derive(Clone, Copy)]
struct Target {
    address: SockAddr,
    conn_qual: u64,
}

/// Fields of [`Ep`] protected by its lock.
struct Inner {
    phase: Phase,
    /// What it is made of; nothing once freed.
    parts: Parts,
    /// What its EVDs know of its completions.
    streams: Streams,
    attr: Attr,
    /// `None` while unconfigured, once freed, or once the device is gone.
    qp: Option<Arc<EpQp>>,
    /// Of the completion queues that the QP reports to; it has them too.
    shares: Option<Arc<Shares>>,
    /// The id of the present attempt or connection.
    id: Option<Arc<CmId>>,
    requests: Slots<SlotStorage>,
    receives: Slots<SlotStorage>,
    early: Early,
    /// Counts resets; work requests carry its low bits.
    life: u32,
    /// How many lives have ended since the completion queues surely held nothing of an earlier one.
    past_lives: u32,
    /// What is left to do after completions.
    due: Option<Due>,
    /// How many receives wait in [`Ep::preposted`]; `None` once they are posted right away.
    waiting: Option<u32>,
    /// The route is there, and the request waits for those receives.
    request_waits: bool,
    /// For the peer, from the connect call until the request is sent.
    own_data: PrivateData,
    /// From the peer, with the last connection event.
    peer_data: PrivateData,
    /// While it connects: the peer is about to hear that the connection stands.
    confirms: bool,
    local: SockAddr,
    remote: SockAddr,
    /// What was connected to, or the port that the accepted request came from.
    remote_qual: u64,
    target: Option<Target>,
    /// When the present attempt is given up.
    deadline: Deadline,
    /// The EVDs' pumps run for this Endpoint while there is something here.
    demand: Option<(Demand, Demand)>,
    /// When the peer disconnected.
    peer_left: Option<Left>,
    trace: Trace,
}

impl Inner {
    /// How many receives are posted and have not completed.
    fn receives_outstanding(&self) -> u32 {
        self.receives
            .outstanding()
            .saturating_add(self.waiting.unwrap_or(0))
    }
}

/// An Endpoint.
#[pin_data]
pub(crate) struct Ep {
    handle: Handle,
    ia: Arc<Ia>,
    /// Held by a reset from its beginning to its end: a second one finds nothing left to do.
    #[pin]
    resets: Mutex<()>,
    /// Receives that wait for a connection. Whoever changes what the Endpoint is made of holds this
    /// lock, too.
    #[pin]
    preposted: Mutex<Preposted>,
    #[pin]
    inner: SpinLock<Inner>,
    #[pin]
    timer: DelayedWork<Ep, CONNECT>,
    #[pin]
    failure: DelayedWork<Ep, FAILURE>,
    #[pin]
    left: DelayedWork<Ep, LEFT>,
    #[pin]
    enact: Work<Ep, ENACT>,
    _counted: Counted,
}

impl Ep {
    /// `dat_ep_create`. Returns the handle and the attributes that were given.
    ///
    /// A handle of 0 in `handles` is DAT_HANDLE_NULL: the Endpoint is unconfigured until
    /// [`Ep::modify`] has brought what is missing.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the subtype of the handle that is wrong; INVALID_PARAMETER for an EVD
    /// that does not take the stream, or not with these completion flags (arguments 3 to 5), or for
    /// impossible attributes (argument 6); INSUFFICIENT_RESOURCES (EVD) for an EVD whose completion
    /// queues are full of what freed Endpoints have left.
    pub(crate) fn create(
        ia: &Arc<Ia>,
        handles: &Handles,
        attr: Option<Attr>,
    ) -> DatResult<(u64, Attr)> {
        let parts = Parts::resolve(ia, handles)?;
        let attr = Attr::resolve(attr, ia.attr(), ARGUMENT_ATTR)?;
        let setup = parts.setup();
        let this = Self::build(
            ia,
            parts,
            attr,
            Phase::Unconnected(setup),
            GFP_KERNEL_ACCOUNT,
        )?;
        Ok((this.handle.into_raw(), attr))
    }

    /// Makes an Endpoint and puts it into the table.
    fn build(
        ia: &Arc<Ia>,
        parts: Parts,
        attr: Attr,
        phase: Phase,
        flags: Flags,
    ) -> DatResult<Arc<Self>> {
        let place = Objects::reserve_with(ia.objects(), HandleKind::Ep, flags)?;
        let handle = place.handle();
        let streams = ia.objects().arrange(|| {
            Plan::new(&parts, &Parts::default(), &Streams::default(), &attr).map(Plan::join)
        })?;
        let inner = Inner {
            phase,
            parts,
            streams,
            attr,
            qp: None,
            shares: None,
            id: None,
            requests: slots(attr.max_request_dtos, flags)?,
            receives: slots(attr.max_recv_dtos, flags)?,
            early: Early::default(),
            life: 0,
            past_lives: 0,
            due: None,
            waiting: Some(0),
            request_waits: false,
            own_data: PrivateData::EMPTY,
            peer_data: PrivateData::EMPTY,
            confirms: false,
            local: ia.attr().address,
            remote: SockAddr::default(),
            remote_qual: 0,
            target: None,
            deadline: Deadline::Never,
            demand: None,
            peer_left: None,
            trace: Trace::new(flags)?,
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                ia: ia.clone(),
                resets <- new_mutex!((), "Ep::resets"),
                preposted <- new_mutex!(Preposted::new(), "Ep::preposted"),
                inner <- new_spinlock!(inner, "Ep::inner"),
                timer <- new_delayed_work!("Ep::timer"),
                failure <- new_delayed_work!("Ep::failure"),
                left <- new_delayed_work!("Ep::left"),
                enact <- new_work!("Ep::enact"),
                _counted: Counted::new(census::Kind::Ep),
            }),
            flags,
        )?;
        Self::finish_build(&this, place).inspect_err(|_| Self::shutdown(&this))?;
        Ok(this)
    }

    /// What may fail once there is an Endpoint.
    fn finish_build(this: &Arc<Self>, place: Reservation) -> DatResult {
        let (parts, attr) = {
            let inner = this.inner.lock();
            (inner.parts.objects(), inner.attr)
        };
        if let Some(parts) = parts {
            let shares = Shares::take(&parts, &this.ia.device()?, &attr)?;
            let qp = Self::make_qp(this, &parts, &attr, &shares)?;
            let mut inner = this.inner.lock();
            inner.qp = Some(qp);
            inner.shares = Some(shares);
        }
        // The folder allocates as it likes: see [`memcg`](crate::sys::memcg).
        caller_pays(|| Self::show_trace(this))?;
        place.commit(this.clone())
    }

    /// `dat_ep_free`. Posted DTOs are given up without events; a peer learns of it.
    pub(crate) fn free(ia: &Ia, handle: u64) -> DatResult {
        let ep = ia
            .objects()
            .take::<Self>(handle, |ep| may_free(ep.inner.lock().phase))?;
        Self::shutdown(&ep);
        Ok(())
    }

    /// Its handle.
    pub(in crate::dat) fn handle(&self) -> u64 {
        self.handle.into_raw()
    }

    /// `dat_ep_disconnect`. Succeeds without an event where there is nothing (left) to disconnect.
    ///
    /// On an unconnected Endpoint it flushes the receives that are posted. (Seed 000, "Notes on
    /// Disconnecting".)
    pub(crate) fn disconnect(this: &Arc<Self>, close: Close) -> DatResult {
        Self::feed(this, Input::Disconnect(close), None)
    }

    /// The error of a device that is gone.
    fn gone() -> DatError {
        DatError::new(Kind::InsufficientResources, Subtype::ResourceDevice)
    }
}

/// Position of the attributes among the arguments of `dat_ep_create`.
const ARGUMENT_ATTR: u8 = 6;
