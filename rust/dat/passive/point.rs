// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Service points: where connection requests arrive.
//!
//! A service point is one thing with three faces, which differ in how they are made and in what
//! they ask of it: [`Psp`](super::psp::Psp), [`Rsp`](super::rsp::Rsp) and
//! [`Csp`](super::csp::Csp). How it hears of requests is its [`Listener`]; how a request gets from
//! there to the consumer is an [`Arrival`].

use super::{
    Arrival,
    Domain,
    Face,
    Listener,
    Refused, //
    Request,
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
    pub(super) admission: Mutex<Admission>,
    /// How it hears of requests; `None` before and after. Held while it is given up, so that whoever
    /// frees the service point finds its qualifier free as well.
    #[pin]
    listener: Mutex<Option<Listener>>,
}

/// Fields of [`Point`] protected by its lock. What is admitted reaches the consumer while it is
/// held: nothing comes after the service point was freed.
pub(super) struct Admission {
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
        listener: Listener,
        offer: Offer,
    ) -> DatResult<Arc<Self>> {
        let endpoints = offer.endpoints.clone();
        let (this, face, entry) =
            Self::build(domain, faces, &listener, offer).inspect_err(|_| {
                if let Endpoints::Reserved(ep) = &endpoints {
                    ep.release();
                }
            })?;
        this.listen(listener)
            .and_then(|()| entry.commit(face))
            .inspect_err(|_| this.shutdown())?;
        Ok(this)
    }

    /// Makes a service point that does not listen yet.
    fn build<T: Face>(
        domain: &Arc<Domain>,
        faces: &Arc<Objects<T>>,
        listener: &Listener,
        offer: Offer,
    ) -> DatResult<(Arc<Self>, Arc<T>, Reservation<T>)> {
        let entry = Objects::reserve(faces)?;
        let handle = entry.handle().into_raw();
        let evd = offer.evd.object();
        let admission = Admission {
            state: State::Open,
            waiting: 0,
            evd: Some(offer.evd),
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                domain: domain.clone(),
                conn_qual: listener.conn_qual(),
                address: listener.address(),
                evd,
                backlog: offer.backlog,
                endpoints: offer.endpoints,
                once: offer.once,
                admission <- new_mutex!(admission, "Point::admission"),
                listener <- new_mutex!(None, "Point::listener"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let face = T::new(this.clone())?;
        Ok((this, face, entry))
    }

    /// Listens.
    fn listen(self: &Arc<Self>, mut listener: Listener) -> DatResult {
        // Its one request may be quicker than this: who gives the listener up then waits for the lock.
        let mut current = self.listener.lock();
        listener.listen(self, self.backlog)?;
        *current = Some(listener);
        Ok(())
    }

    /// Listens no more. Context: process; sleeps, waits for handlers.
    fn stop_listening(&self) {
        let mut listener = self.listener.lock();
        *listener = None;
    }

    /// Turns away what comes from now on, and listens no more. Requests that wait stay; an Endpoint
    /// that none has come for is given back.
    ///
    /// Context: process; sleeps, waits for handlers.
    pub(super) fn shutdown(&self) {
        let (before, evd) = {
            let mut admission = self.admission.lock();
            let before = core::mem::replace(&mut admission.state, State::Closed);
            (before, admission.evd.take())
        };
        // In this order: nothing is reported any more once nobody listens.
        self.stop_listening();
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
        let _ = queue().try_spawn(GFP_KERNEL, move || point.stop_listening());
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
    pub(super) fn admit(self: &Arc<Self>) -> Result<BacklogSlot, Refused> {
        let user = self.ia().user();
        let memory = user.hold(Item::DriverMemory, footprint::identifier())?;
        let mut admission = self.admission.lock();
        if admission.state != State::Open {
            return Err(Refused::NobodyListens);
        }
        let full = DatError::new(Kind::InsufficientResources, Subtype::ResourceCredits);
        if admission.waiting >= self.backlog {
            return Err(full.into());
        }
        admission.waiting = admission.waiting.saturating_add(1);
        if self.once {
            admission.state = State::Promised;
        }
        drop(admission);
        let slot = BacklogSlot {
            point: self.clone(),
            _memory: memory,
        };
        let room = self.domain.begin_request();
        room.then_some(slot).ok_or(full.into())
    }
}

/// A place in a service point's backlog, given back by the drop. Never dropped under the admission.
pub(super) struct BacklogSlot {
    point: Arc<Point>,
    /// What `rdma_cm` has allocated for the request.
    _memory: Hold,
}

impl BacklogSlot {
    /// The service point.
    pub(super) fn point(&self) -> &Arc<Point> {
        &self.point
    }
}

impl Drop for BacklogSlot {
    fn drop(&mut self) {
        let mut admission = self.point.admission.lock();
        admission.waiting = admission.waiting.saturating_sub(1);
        // The request that it was promised to did not make it.
        if admission.state == State::Promised {
            admission.state = State::Open;
        }
        drop(admission);
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
