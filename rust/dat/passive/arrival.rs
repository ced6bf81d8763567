// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Delivers a connection request (CR) to a consumer, from the network or from another consumer.
//!
//! First everything that can fail is allocated and reserved: a slot in the backlog, a handle, room
//! for the event, and an Endpoint if the provider supplies it. Then the connection manager ID of
//! `rdma_cm` changes its owner under the admission lock of the service point. From then on the
//! delivery fails only if the consumer has closed its adapter.
//!
//! All of this runs in the worker of `rdma_cm`, and the consumer's memory cgroup is charged for it.
//! A full cgroup must not block the worker: such a request is [refused](DeliveryError) at once.

use super::{
    point::{
        EpOrigin,
        PointState, //
    },
    Cr,
    Point,
    RequestData, //
};
use crate::{
    dat::{
        base::{
            Objects,
            Reservation, //
        },
        ep::Ep,
        evd::EventReservation,
        prelude::*, //
    },
    model::event::Event,
    rdma::cm::{
        CmId,
        NewId,
        Refusal,
        RequestDecision, //
    },
    sys::memcg::flags_for_others, //
};
use kernel::alloc::AllocError;

/// Reason for which a request was not delivered.
pub(super) enum DeliveryError {
    /// No service point listens, or it has stopped listening.
    NoListener,
    /// An allocation failed, or a limit is reached.
    Failed(DatError),
}

impl From<DatError> for DeliveryError {
    /// An adapter that is without its device, or closes, no longer listens.
    fn from(error: DatError) -> Self {
        if error == DatError::device() {
            Self::NoListener
        } else {
            Self::Failed(error)
        }
    }
}

impl From<Error> for DeliveryError {
    fn from(error: Error) -> Self {
        DatError::from(error).into()
    }
}

impl From<AllocError> for DeliveryError {
    fn from(error: AllocError) -> Self {
        Self::Failed(error.into())
    }
}

/// A request during its delivery.
pub(super) struct Arrival {
    cr: Arc<Cr>,
    entry: Reservation<Cr>,
    room: EventReservation,
}

impl Arrival {
    /// Handles a request from the network, in the handler of its ID.
    pub(super) fn receive<'a>(
        point: &Arc<Point>,
        mut id: NewId<'a>,
        request: RequestData,
    ) -> RequestDecision<'a> {
        let arrived = point
            .ia()
            .device()
            .map_err(DeliveryError::from)
            .and_then(|device| {
                let user = point.ia().user().id();
                let adopt = || Ok(id.adopt(device, user, flags_for_others())?);
                Self::prepare(point, request)?.deliver(|| point.ia().mem_cgroup().charged(adopt))
            });
        match arrived {
            Ok(None) => id.finish(),
            // The ID cannot be destroyed in its own handler, so `rdma_cm` destroys it.
            Ok(Some(owned)) => id.give_back(owned, Refusal::NoListener),
            Err(DeliveryError::NoListener) => id.refuse(Refusal::NoListener),
            Err(DeliveryError::Failed(_)) => id.refuse(Refusal::NoResources),
        }
    }

    /// Reserves everything that the request needs, which the listening consumer is charged for.
    /// Does not wait for memory. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - `Failed` if there is no room.
    /// - `NoListener` if no service point listens (any more). This includes an adapter that is
    ///   closing.
    pub(super) fn prepare(point: &Arc<Point>, request: RequestData) -> Result<Self, DeliveryError> {
        point
            .ia()
            .mem_cgroup()
            .charged(|| Self::make(point, request))
    }

    fn make(point: &Arc<Point>, request: RequestData) -> Result<Self, DeliveryError> {
        let slot = point.admit()?;
        let flags = flags_for_others();
        let entry = Objects::reserve_with(&point.context.crs, flags)?;
        let room = point.evd.reserve()?;
        let ep = match &point.ep_origin {
            EpOrigin::Consumer => None,
            EpOrigin::Provider => Some(Ep::tentative(&point.context.ep_context, flags)?),
            EpOrigin::Reserved(ep) => Some(ep.clone()),
        };
        let cr = Cr::new(slot, request, ep.clone(), flags)
            .inspect_err(|_| point.free_provided_ep(ep.as_ref()))?;
        Ok(Self { cr, entry, room })
    }

    /// Delivers the request with the ID that `fetch` returns. `fetch` is called under the admission
    /// lock.
    ///
    /// Returns the ID if the consumer has closed its adapter at the same time. The caller then
    /// rejects the request, since no service point listens any more. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// The error of `fetch`, or `NoListener`. The ID then stays with its previous owner.
    pub(super) fn deliver(
        self,
        fetch: impl FnOnce() -> DatResult<CmId>,
    ) -> Result<Option<CmId>, DeliveryError> {
        let point = self.cr.point().clone();
        let cr = self.cr.clone();
        let outcome = self.deliver_locked(&point, fetch);
        if !matches!(outcome, Ok(true)) {
            point.free_provided_ep(cr.ep());
        }
        Ok(match outcome? {
            true => None,
            false => cr.take_id(),
        })
    }

    /// Delivers the request under the admission lock. Returns whether the consumer has received it.
    fn deliver_locked(
        self,
        point: &Arc<Point>,
        fetch: impl FnOnce() -> DatResult<CmId>,
    ) -> Result<bool, DeliveryError> {
        let Self { cr, entry, room } = self;
        let mut admission = point.admission.lock();
        match admission.state {
            PointState::Open | PointState::Promised => {}
            PointState::Served | PointState::Closed => return Err(DeliveryError::NoListener),
        }
        cr.put_id(fetch().map_err(DeliveryError::Failed)?);
        if point.once {
            admission.state = PointState::Served;
            point.stop_listening_later();
        }
        if let EpOrigin::Reserved(ep) = &point.ep_origin {
            // This fails if the device is being removed. A later accept then fails, too.
            let _ = ep.requested();
        }
        let event = Event::Request {
            cr: entry.handle().into_raw(),
            psp: point.handle,
            conn_qual: point.conn_qual,
            private_data_size: cr.private_data_size(),
        };
        // The caller holds a reference to the request, too, so no object is dropped under the
        // admission lock.
        let there = entry.commit(cr).is_ok();
        if there {
            room.post(&event);
        }
        Ok(there)
    }
}

impl Point {
    /// Frees the Endpoint that was created for a request that is not delivered.
    fn free_provided_ep(&self, ep: Option<&Arc<Ep>>) {
        if let (EpOrigin::Provider, Some(ep)) = (&self.ep_origin, ep) {
            ep.release();
        }
    }
}
