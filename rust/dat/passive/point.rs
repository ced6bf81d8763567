// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Service points, which receive connection requests (CRs).
//!
//! A service point has three kinds of consumer interface, which differ in how they are created and
//! in the properties that they request: [`Psp`](super::psp::Psp), [`Rsp`](super::rsp::Rsp) and
//! [`Csp`](super::csp::Csp). Its [`Listener`] receives requests. An [`Arrival`] delivers a request
//! to the consumer.

use super::{
    Arrival,
    DeliveryError,
    Listener,
    PassiveContext,
    RequestData,
    ServicePoint, //
};
use crate::{
    dat::{
        base::{
            IaBase,
            InUse,
            Objects,
            PrivateData,
            Reservation, //
        },
        ep::Ep,
        evd::Evd,
        prelude::*, //
    },
    model::{
        allowance::Item,
        footprint, //
    },
    rdma::{
        addr::SockAddr,
        cm::{
            Event,
            Handler,
            IdRef,
            NewId,
            RequestDecision, //
        },
    },
    sys::{
        user::FixedCharge,
        workqueue::queue, //
    },
};
use kernel::{
    new_mutex,
    sync::Mutex, //
};

/// Default number of requests that may wait for an answer.
pub(super) const DEFAULT_BACKLOG: u32 = 128;

/// Maximum number of requests that may wait for an answer.
pub(super) const MAX_BACKLOG: u32 = 4096;

/// Origin of the Endpoints that requests are accepted with.
#[derive(Clone)]
pub(super) enum EpOrigin {
    /// The consumer names an Endpoint in the accept call.
    Consumer,
    /// The provider creates an Endpoint for each request.
    Provider,
    /// This Endpoint is reserved for the only request.
    Reserved(Arc<Ep>),
}

/// Properties of a new service point.
pub(super) struct PointConfig {
    pub(super) evd: InUse<Evd>,
    /// Number of requests that may wait for an answer.
    pub(super) backlog: u32,
    pub(super) ep_origin: EpOrigin,
    /// Whether the service point takes one request only.
    pub(super) once: bool,
    /// Whether a kernel module takes requests that processes hand off.
    pub(super) takes_handoffs: bool,
}

/// A service point.
#[pin_data]
pub(in crate::dat) struct Point {
    pub(super) handle: u64,
    pub(super) context: Arc<PassiveContext>,
    pub(super) conn_qual: u64,
    /// Addresses that the service point listens on, at least one.
    pub(super) addresses: KVVec<SockAddr>,
    /// EVD that requests are reported to.
    pub(super) evd: Arc<Evd>,
    /// Number of requests that may wait for an answer.
    pub(super) backlog: u32,
    pub(super) ep_origin: EpOrigin,
    /// Whether the service point takes one request only.
    pub(super) once: bool,
    /// Whether a kernel module takes requests that processes hand off.
    pub(super) takes_handoffs: bool,
    #[pin]
    pub(super) admission: Mutex<Admission>,
    /// `None` until the service point listens, and once it has stopped. The mutex is held until the
    /// listener is destroyed, so that the qualifier is free once the service point was freed.
    #[pin]
    listener: Mutex<Option<Listener>>,
    /// Its requests refer to the service point, also after it was freed.
    _memory: FixedCharge,
}

/// Fields of [`Point`] protected by its lock. A request is delivered to the consumer while the lock
/// is held, so no event follows the free of the service point.
pub(super) struct Admission {
    pub(super) state: PointState,
    /// Number of requests that wait for an answer, or are being delivered.
    waiting: u32,
    /// `None` once freed, or once the device is gone.
    evd: Option<InUse<Evd>>,
}

/// Decision of a service point on the next request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PointState {
    /// Accepts requests.
    Open,
    /// Refuses requests: the only one is being delivered.
    Promised,
    /// Refuses requests: the only one was delivered.
    Served,
    /// Refuses requests: the service point was freed, or the device removed.
    Closed,
}

impl Point {
    /// Creates a service point with its consumer interface, and listens. Requests may arrive before
    /// this returns.
    ///
    /// The service point owns a reserved Endpoint from now on. On failure it is released.
    ///
    /// Context: process; sleeps.
    pub(super) fn open<T: ServicePoint>(
        context: &Arc<PassiveContext>,
        table: &Arc<Objects<T>>,
        listener: Listener,
        config: PointConfig,
    ) -> DatResult<Arc<Self>> {
        let ep_origin = config.ep_origin.clone();
        let (this, interface, entry) =
            Self::build(context, table, &listener, config).inspect_err(|_| {
                if let EpOrigin::Reserved(ep) = &ep_origin {
                    ep.release();
                }
            })?;
        this.listen(listener)
            .and_then(|()| entry.commit(interface))
            .inspect_err(|_| this.shutdown())?;
        Ok(this)
    }

    /// Creates a service point that does not listen yet.
    fn build<T: ServicePoint>(
        context: &Arc<PassiveContext>,
        table: &Arc<Objects<T>>,
        listener: &Listener,
        config: PointConfig,
    ) -> DatResult<(Arc<Self>, Arc<T>, Reservation<T>)> {
        let entry = Objects::reserve(table)?;
        let handle = entry.handle().into_raw();
        let evd = config.evd.object();
        let admission = Admission {
            state: PointState::Open,
            waiting: 0,
            evd: Some(config.evd),
        };
        let addresses = listener.addresses()?;
        let memory = context.ep_context.ia.user().hold_memory_of::<Self>()?;
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                context: context.clone(),
                conn_qual: listener.conn_qual(),
                addresses,
                evd,
                backlog: config.backlog,
                ep_origin: config.ep_origin,
                once: config.once,
                takes_handoffs: config.takes_handoffs,
                admission <- new_mutex!(admission, "Point::admission"),
                listener <- new_mutex!(None, "Point::listener"),
                _memory: memory,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let interface = T::new(this.clone())?;
        Ok((this, interface, entry))
    }

    /// Starts listening.
    fn listen(self: &Arc<Self>, mut listener: Listener) -> DatResult {
        // The only request may arrive before this function returns. The thread that then drops the
        // listener waits for the lock.
        let mut current = self.listener.lock();
        listener.listen(self, self.backlog)?;
        *current = Some(listener);
        Ok(())
    }

    /// Stops listening. Context: process; sleeps, waits for handlers.
    fn stop_listening(&self) {
        self.hide();
        self.await_searches();
        *self.listener.lock() = None;
    }

    /// Hides the listener from requests, as the first step of its end. On the shared port, and over
    /// iWARP, it has no such step.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn hide(&self) {
        self.listener.lock().iter().for_each(Listener::hide);
    }

    /// Waits for requests that have found the hidden listener, as the second step of its end. If
    /// each step is carried out for many service points before the next one, they share its wait.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn await_searches(&self) {
        self.listener
            .lock()
            .iter()
            .for_each(Listener::await_searches);
    }

    /// Refuses requests from now on, and stops listening. Waiting requests remain. A reserved
    /// Endpoint without a request is released.
    ///
    /// Context: process; sleeps, waits for handlers.
    pub(super) fn shutdown(&self) {
        let (before, evd) = {
            let mut admission = self.admission.lock();
            let before = core::mem::replace(&mut admission.state, PointState::Closed);
            (before, admission.evd.take())
        };
        // In this order: no event is reported once the listener is destroyed.
        self.stop_listening();
        drop(evd);
        if let (PointState::Open | PointState::Promised, EpOrigin::Reserved(ep)) =
            (before, &self.ep_origin)
        {
            ep.release();
        }
    }

    /// Stops listening from a work item: a listener cannot be destroyed in its own handler.
    pub(super) fn stop_listening_later(self: &Arc<Self>) {
        let point = self.clone();
        // If the allocation fails, the point listens until it is freed, and refuses requests.
        let _ = queue().try_spawn(GFP_KERNEL, move || point.stop_listening());
    }

    /// Returns the adapter.
    pub(super) fn ia(&self) -> &IaBase {
        self.context.ia()
    }

    /// Reserves a slot in the backlog for a request.
    pub(super) fn admit(self: &Arc<Self>) -> Result<BacklogSlot, DeliveryError> {
        let user = self.ia().user();
        let memory = user.hold(Item::DriverMemory, footprint::identifier())?;
        let mut admission = self.admission.lock();
        if admission.state != PointState::Open {
            return Err(DeliveryError::NoListener);
        }
        let full = DatError::new(Kind::InsufficientResources, Subtype::ResourceCredits);
        if admission.waiting >= self.backlog {
            return Err(full.into());
        }
        admission.waiting = admission.waiting.saturating_add(1);
        if self.once {
            admission.state = PointState::Promised;
        }
        drop(admission);
        let slot = BacklogSlot {
            point: self.clone(),
            _memory: memory,
        };
        let room = self.context.begin_request();
        room.then_some(slot).ok_or(full.into())
    }
}

/// A slot in a service point's backlog, until the drop. It is never dropped under the admission
/// lock.
pub(super) struct BacklogSlot {
    point: Arc<Point>,
    /// Charge for the memory that `rdma_cm` has allocated for the request.
    _memory: FixedCharge,
}

impl BacklogSlot {
    /// Returns the service point.
    pub(super) fn point(&self) -> &Arc<Point> {
        &self.point
    }
}

impl Drop for BacklogSlot {
    fn drop(&mut self) {
        let mut admission = self.point.admission.lock();
        admission.waiting = admission.waiting.saturating_sub(1);
        // The only request was not delivered, so another one may come.
        if admission.state == PointState::Promised {
            admission.state = PointState::Open;
        }
        drop(admission);
        self.point.context.end_request();
    }
}

impl Handler for Point {
    fn event(self: Arc<Self>, _id: &IdRef<'_>, _event: Event<'_>) {}

    fn request<'a>(self: Arc<Self>, id: NewId<'a>, data: &[u8]) -> RequestDecision<'a> {
        let request = RequestData::new(&id, self.conn_qual, PrivateData::truncated(data));
        Arrival::receive(&self, id, request)
    }
}
