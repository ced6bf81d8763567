// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Service points: where connection requests arrive.
//!
//! A service point is one thing with three faces, which differ in how they are made and in what
//! they ask of it: [`Psp`](super::psp::Psp), [`Rsp`](super::rsp::Rsp) and
//! [`Csp`](super::csp::Csp). How it hears of requests is its [`Seat`]; how a request gets from
//! there to the consumer is an [`Arrival`].

use super::{
    Arrival,
    Domain,
    Face,
    Request,
    Seat,
    Turned, //
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
            Verdict, //
        },
    },
    sys::{
        user::Hold,
        workqueue::queue, //
    },
};
use kernel::{
    new_mutex,
    sync::Mutex, //
};

/// Requests that may wait for an answer, unless asked for otherwise.
pub(super) const DEFAULT_BACKLOG: u32 = 128;

/// The most that may be asked for.
pub(super) const MAX_BACKLOG: u32 = 4096;

/// Whose Endpoints the requests are accepted with.
#[derive(Clone)]
pub(super) enum Endpoints {
    /// The consumer's, which it brings to the accept.
    Consumer,
    /// Each request comes with a new one.
    Provider,
    /// This one, reserved for the one request.
    Reserved(Arc<Ep>),
}

/// What a service point is to be like.
pub(super) struct Offer {
    pub(super) evd: InUse<Evd>,
    /// Requests that may wait for an answer.
    pub(super) backlog: u32,
    pub(super) endpoints: Endpoints,
    /// Whether it takes one request only.
    pub(super) once: bool,
}

/// A service point.
#[pin_data]
pub(super) struct Point {
    pub(super) handle: u64,
    pub(super) domain: Arc<Domain>,
    pub(super) conn_qual: u64,
    /// Where it listens.
    address: SockAddr,
    pub(super) evd: Arc<Evd>,
    backlog: u32,
    pub(super) endpoints: Endpoints,
    pub(super) once: bool,
    #[pin]
    pub(super) gate: Mutex<Gate>,
    /// How it hears of requests; `None` before and after. Held while it is given up, so that whoever
    /// frees the service point finds its qualifier free as well.
    #[pin]
    seat: Mutex<Option<Seat>>,
}

/// Fields of [`Point`] protected by its lock. What passes the gate reaches the consumer while it is
/// held: nothing comes after the service point was freed.
pub(super) struct Gate {
    pub(super) state: State,
    /// Requests that wait for an answer, or are on their way in.
    waiting: u32,
    /// `None` once freed, or once the device is gone.
    evd: Option<InUse<Evd>>,
}

/// What a service point does with the next request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Takes it.
    Open,
    /// Turns it away: its one request is on its way in.
    Promised,
    /// Turns it away: it has had its one request.
    Served,
    /// Turns it away: it was freed, or the device is gone.
    Closed,
}

impl Point {
    /// Makes a service point and its face, and listens. Requests may arrive before this returns.
    ///
    /// A reserved Endpoint is the service point's from now on: given back if this fails.
    ///
    /// Context: process; sleeps.
    pub(super) fn open<T: Face>(
        domain: &Arc<Domain>,
        faces: &Arc<Objects<T>>,
        seat: Seat,
        offer: Offer,
    ) -> DatResult<Arc<Self>> {
        let endpoints = offer.endpoints.clone();
        let (this, face, entry) = Self::build(domain, faces, &seat, offer).inspect_err(|_| {
            if let Endpoints::Reserved(ep) = &endpoints {
                ep.release();
            }
        })?;
        this.sit_down(seat)
            .and_then(|()| entry.commit(face))
            .inspect_err(|_| this.shutdown())?;
        Ok(this)
    }

    /// Makes a service point that does not listen yet.
    fn build<T: Face>(
        domain: &Arc<Domain>,
        faces: &Arc<Objects<T>>,
        seat: &Seat,
        offer: Offer,
    ) -> DatResult<(Arc<Self>, Arc<T>, Reservation<T>)> {
        let entry = Objects::reserve(faces)?;
        let handle = entry.handle().into_raw();
        let evd = offer.evd.object();
        let gate = Gate {
            state: State::Open,
            waiting: 0,
            evd: Some(offer.evd),
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                domain: domain.clone(),
                conn_qual: seat.conn_qual(),
                address: seat.address(),
                evd,
                backlog: offer.backlog,
                endpoints: offer.endpoints,
                once: offer.once,
                gate <- new_mutex!(gate, "Point::gate"),
                seat <- new_mutex!(None, "Point::seat"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let face = T::new(this.clone())?;
        Ok((this, face, entry))
    }

    /// Listens.
    fn sit_down(self: &Arc<Self>, mut seat: Seat) -> DatResult {
        // Its one request may be quicker than this: who gives the seat up then waits for the lock.
        let mut place = self.seat.lock();
        seat.listen(self, self.backlog)?;
        *place = Some(seat);
        Ok(())
    }

    /// Listens no more. Context: process; sleeps, waits for handlers.
    fn get_up(&self) {
        let mut seat = self.seat.lock();
        *seat = None;
    }

    /// Turns away what comes from now on, and listens no more. Requests that wait stay; an Endpoint
    /// that none has come for is given back.
    ///
    /// Context: process; sleeps, waits for handlers.
    pub(super) fn shutdown(&self) {
        let (before, evd) = {
            let mut gate = self.gate.lock();
            let before = core::mem::replace(&mut gate.state, State::Closed);
            (before, gate.evd.take())
        };
        // In this order: nothing is reported any more once nobody listens.
        self.get_up();
        drop(evd);
        if let (State::Open | State::Promised, Endpoints::Reserved(ep)) = (before, &self.endpoints)
        {
            ep.release();
        }
    }

    /// Listens no more, a little later: a listener cannot end in its own handler.
    pub(super) fn leave_soon(self: &Arc<Self>) {
        let point = self.clone();
        // Without memory it listens until it is freed, and turns away what comes.
        let _ = queue().try_spawn(GFP_KERNEL, move || point.get_up());
    }

    /// Its handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Its adapter.
    pub(super) fn ia(&self) -> &IaBase {
        self.domain.ia()
    }

    /// What it listens for.
    pub(super) fn conn_qual(&self) -> u64 {
        self.conn_qual
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SockAddr {
        self.address
    }

    /// Where its requests are reported.
    pub(super) fn evd(&self) -> &Arc<Evd> {
        &self.evd
    }

    /// Requests that may wait for an answer.
    pub(super) fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Whose Endpoints the requests are accepted with.
    pub(super) fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// A place for one more request.
    pub(super) fn admit(self: &Arc<Self>) -> Result<Place, Turned> {
        let user = self.ia().user();
        let memory = user.hold(Item::DriverMemory, footprint::identifier())?;
        let mut gate = self.gate.lock();
        if gate.state != State::Open {
            return Err(Turned::NobodyListens);
        }
        let full = DatError::new(Kind::InsufficientResources, Subtype::ResourceCredits);
        if gate.waiting >= self.backlog {
            return Err(full.into());
        }
        gate.waiting = gate.waiting.saturating_add(1);
        if self.once {
            gate.state = State::Promised;
        }
        drop(gate);
        let place = Place {
            point: self.clone(),
            _memory: memory,
        };
        let room = self.domain.begin_request();
        room.then_some(place).ok_or(full.into())
    }
}

/// A place in a service point's backlog, given back by the drop. Never dropped under the gate.
pub(super) struct Place {
    point: Arc<Point>,
    /// What `rdma_cm` has allocated for the request.
    _memory: Hold,
}

impl Place {
    /// The service point.
    pub(super) fn point(&self) -> &Arc<Point> {
        &self.point
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut gate = self.point.gate.lock();
        gate.waiting = gate.waiting.saturating_sub(1);
        // The request that it was promised to did not make it.
        if gate.state == State::Promised {
            gate.state = State::Open;
        }
        drop(gate);
        self.point.domain.end_request();
    }
}

impl Handler for Point {
    fn event(self: Arc<Self>, _id: &IdRef<'_>, _event: Event<'_>) {}

    fn request<'a>(self: Arc<Self>, id: NewId<'a>, data: &[u8]) -> Verdict<'a> {
        let request = Request::new(&id, self.conn_qual, PrivateData::truncated(data));
        Arrival::receive(&self, id, request)
    }
}
