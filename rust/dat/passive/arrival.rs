// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a request gets to a consumer: from the network, or from another consumer.
//!
//! First everything is made and set aside that can fail: a place in the backlog, a handle, room for
//! the event, an Endpoint if the provider brings it. Then, at the admission of the service point, the id
//! changes hands, and nothing fails any more but that the consumer may be gone.
//!
//! All of that runs in `rdma_cm`'s worker, and the consumer's memory cgroup pays for it. A cgroup that
//! is full must not hold up the worker: such a request is [turned away](Refused) at once.

use super::{
    point::{
        Endpoints,
        State, //
    },
    Cr,
    Point,
    Request, //
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
        Verdict, //
    },
    sys::memcg::flags_for_others, //
};
use kernel::alloc::AllocError;

/// Why a request did not get in.
pub(super) enum Refused {
    /// There is nobody (any more) who listens.
    NobodyListens,
    /// Something failed, or there is no room.
    Failed(DatError),
}

impl From<DatError> for Refused {
    /// The service point's owner that is without its device, or closes, listens no more.
    fn from(error: DatError) -> Self {
        if error == DatError::device() {
            Self::NobodyListens
        } else {
            Self::Failed(error)
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        DatError::from(error).into()
    }
}

impl From<AllocError> for Refused {
    fn from(error: AllocError) -> Self {
        Self::Failed(error.into())
    }
}

/// A request that is on its way in.
pub(super) struct Arrival {
    cr: Arc<Cr>,
    entry: Reservation<Cr>,
    room: EventReservation,
}

impl Arrival {
    /// A request came from the network. In the handler of its id.
    pub(super) fn receive<'a>(
        point: &Arc<Point>,
        mut id: NewId<'a>,
        request: Request,
    ) -> Verdict<'a> {
        let arrived = point
            .ia()
            .device()
            .map_err(Refused::from)
            .and_then(|device| {
                let user = point.ia().user().id();
                let adopt = || Ok(id.adopt(device, user, flags_for_others())?);
                Self::prepare(point, request)?.deliver(|| point.ia().payer().pays(adopt))
            });
        match arrived {
            Ok(None) => id.finish(),
            // Not destroyed in its own handler: `rdma_cm` does it.
            Ok(Some(owned)) => id.give_back(owned, Refusal::NobodyListens),
            Err(Refused::NobodyListens) => id.refuse(Refusal::NobodyListens),
            Err(Refused::Failed(_)) => id.refuse(Refusal::NoResources),
        }
    }

    /// Sets aside what the request needs, which the consumer that listens pays for. Never waits for
    /// memory. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// There is no room, or nobody listens (any more), which is so while the adapter closes as well.
    pub(super) fn prepare(point: &Arc<Point>, request: Request) -> Result<Self, Refused> {
        point.ia().payer().pays(|| Self::make(point, request))
    }

    fn make(point: &Arc<Point>, request: Request) -> Result<Self, Refused> {
        let slot = point.admit()?;
        let flags = flags_for_others();
        let entry = Objects::reserve_with(&point.domain.crs, flags)?;
        let room = point.evd.reserve()?;
        let ep = match &point.endpoints {
            Endpoints::Consumer => None,
            Endpoints::Provider => Some(Ep::tentative(&point.domain.endpoints, flags)?),
            Endpoints::Reserved(ep) => Some(ep.clone()),
        };
        let cr = Cr::new(slot, request, ep.clone(), flags)
            .inspect_err(|_| point.take_back(ep.as_ref()))?;
        Ok(Self { cr, entry, room })
    }

    /// Lets the request in, with the id that `fetch` brings, which is called at the admission.
    ///
    /// Returns the id if the consumer has gone at this very moment: then it is the caller's to turn
    /// the request down, since nobody listens any more. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// What `fetch` says, or nobody listens any more; then the id is where it was.
    pub(super) fn deliver(
        self,
        fetch: impl FnOnce() -> DatResult<CmId>,
    ) -> Result<Option<CmId>, Refused> {
        let point = self.cr.point().clone();
        let cr = self.cr.clone();
        let outcome = self.pass(&point, fetch);
        if !matches!(outcome, Ok(true)) {
            point.take_back(cr.ep());
        }
        Ok(match outcome? {
            true => None,
            false => cr.take_id(),
        })
    }

    /// At the admission. Says whether the consumer was there.
    fn pass(
        self,
        point: &Arc<Point>,
        fetch: impl FnOnce() -> DatResult<CmId>,
    ) -> Result<bool, Refused> {
        let Self { cr, entry, room } = self;
        let mut admission = point.admission.lock();
        match admission.state {
            State::Open | State::Promised => {}
            State::Served | State::Closed => return Err(Refused::NobodyListens),
        }
        cr.put_id(fetch().map_err(Refused::Failed)?);
        if point.once {
            admission.state = State::Served;
            point.leave_soon();
        }
        if let Endpoints::Reserved(ep) = &point.endpoints {
            // Fails if the device takes the Endpoint at this moment; an accept tells.
            let _ = ep.requested();
        }
        let event = Event::Request {
            cr: entry.handle().into_raw(),
            psp: point.handle,
            conn_qual: point.conn_qual,
            private_data_size: cr.private_data_size(),
        };
        // Nothing of what goes here is dropped under the admission: the caller has the request, too.
        let there = entry.commit(cr).is_ok();
        if there {
            room.post(&event);
        }
        Ok(there)
    }
}

impl Point {
    /// A request does not come about: an Endpoint that was made for it ends.
    fn take_back(&self, ep: Option<&Arc<Ep>>) {
        if let (Endpoints::Provider, Some(ep)) = (&self.endpoints, ep) {
            ep.release();
        }
    }
}
