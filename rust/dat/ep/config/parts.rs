// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Objects that an Endpoint uses: a Protection Zone (PZ) and three Event Dispatchers (EVDs).
//!
//! The zone may be missing until `dat_ep_modify` adds it. For DAT_HANDLE_NULL as an EVD the
//! Endpoint uses the adapter's sink, which discards the events.

use crate::{
    dat::{
        base::InUse,
        evd::Evd,
        prelude::*,
        pz::Pz,
        srq::Srq, //
    },
    model::{
        ep::Configuration,
        event::Event,
        handle::PerDirection, //
    },
};

/// Returns the EVDs of receives and of requests, once if they are the same.
pub(in crate::dat::ep) fn distinct(
    evds: &PerDirection<Arc<Evd>>,
) -> impl Iterator<Item = &Arc<Evd>> {
    let PerDirection { requests, receives } = evds;
    let other = (!Arc::ptr_eq(receives, requests)).then_some(requests);
    [Some(receives), other].into_iter().flatten()
}

/// Handles of the objects that an Endpoint uses; 0 for DAT_HANDLE_NULL.
#[derive(Clone, Copy, Default)]
pub(crate) struct Handles {
    pub(crate) pz: u64,
    pub(crate) recv_evd: u64,
    pub(crate) request_evd: u64,
    pub(crate) connect_evd: u64,
    pub(crate) srq: u64,
}

/// Objects that an Endpoint uses. None of them can be freed while the value exists. In an argument
/// of [`Parts::replace`], `None` keeps the present object.
#[derive(Default)]
pub(in crate::dat) struct Parts {
    pub(in crate::dat) pz: Option<InUse<Pz>>,
    pub(in crate::dat) recv_evd: Option<InUse<Evd>>,
    pub(in crate::dat) request_evd: Option<InUse<Evd>>,
    pub(in crate::dat) connect_evd: Option<InUse<Evd>>,
    /// Set when the Endpoint is created, and never changed.
    pub(in crate::dat) srq: Option<InUse<Srq>>,
}

/// Objects that a queue pair (QP) uses.
pub(in crate::dat::ep) struct QpParts {
    pub(in crate::dat::ep) pz: Arc<Pz>,
    pub(in crate::dat::ep) recv_evd: Arc<Evd>,
    pub(in crate::dat::ep) request_evd: Arc<Evd>,
    pub(in crate::dat::ep) srq: Option<Arc<Srq>>,
}

/// Returns whether `new` is another EVD than `old`.
fn moves(old: &Option<InUse<Evd>>, new: &Option<InUse<Evd>>) -> bool {
    let handle = |evd: &Option<InUse<Evd>>| evd.as_ref().map(|evd| evd.handle());
    new.is_some() && handle(old) != handle(new)
}

impl Parts {
    /// Returns the objects of an Endpoint with neither a zone nor EVDs.
    pub(in crate::dat::ep) fn without_evds(sink: &Arc<Evd>) -> Self {
        let sink = || Some(InUse::new(sink.clone()));
        Self {
            pz: None,
            recv_evd: sink(),
            request_evd: sink(),
            connect_evd: sink(),
            srq: None,
        }
    }

    /// Returns whether all objects are present.
    pub(in crate::dat::ep) fn configuration(&self) -> Configuration {
        match self {
            Self {
                pz: Some(_),
                recv_evd: Some(_),
                request_evd: Some(_),
                connect_evd: Some(_),
                srq: _,
            } => Configuration::Complete,
            _ => Configuration::Incomplete,
        }
    }

    /// Returns the objects for a QP; `None` if any object of the Endpoint is missing.
    pub(in crate::dat::ep) fn objects(&self) -> Option<QpParts> {
        self.objects_with(&Self::default())
    }

    /// As [`Parts::objects`], after [`Parts::replace`] with `new`.
    pub(in crate::dat::ep) fn objects_with(&self, new: &Self) -> Option<QpParts> {
        new.connect_evd.as_ref().or(self.connect_evd.as_ref())?;
        Some(QpParts {
            pz: new.pz.as_ref().or(self.pz.as_ref())?.object(),
            recv_evd: new.recv_evd.as_ref().or(self.recv_evd.as_ref())?.object(),
            request_evd: new
                .request_evd
                .as_ref()
                .or(self.request_evd.as_ref())?
                .object(),
            srq: self.srq.as_ref().map(InUse::object),
        })
    }

    /// Returns the handles.
    pub(in crate::dat::ep) fn handles(&self) -> Handles {
        let evd = |evd: &Option<InUse<Evd>>| evd.as_ref().map_or(0, |evd| evd.handle());
        Handles {
            pz: self.pz.as_ref().map_or(0, |pz| pz.handle()),
            recv_evd: evd(&self.recv_evd),
            request_evd: evd(&self.request_evd),
            connect_evd: evd(&self.connect_evd),
            srq: self.srq.as_ref().map_or(0, |srq| srq.handle()),
        }
    }

    /// Checks that the Protection Zone is that of the SRQ.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (PZ).
    pub(in crate::dat::ep) fn check_zone(&self) -> DatResult {
        self.check_zone_of(self)
    }

    /// As [`Parts::check_zone`], for the zone of `new`.
    pub(in crate::dat::ep) fn check_zone_of(&self, new: &Self) -> DatResult {
        match (&new.pz, &self.srq) {
            (Some(pz), Some(srq)) if pz.handle() != srq.pz() => Err(DatError::Invalid(Arg::Pz)),
            _ => Ok(()),
        }
    }

    /// Returns the Protection Zone.
    pub(in crate::dat::ep) fn pz(&self) -> DatResult<&Pz> {
        self.pz.as_deref().ok_or(DatError::internal())
    }

    /// Returns the EVD of receives.
    pub(in crate::dat::ep) fn recv_evd(&self) -> DatResult<&Evd> {
        self.recv_evd.as_deref().ok_or(DatError::internal())
    }

    /// Returns the EVD of requests.
    pub(in crate::dat::ep) fn request_evd(&self) -> DatResult<&Evd> {
        self.request_evd.as_deref().ok_or(DatError::internal())
    }

    /// Returns the EVDs of receives and of requests after [`Parts::replace`] with `new`; `None` for
    /// the sink. The completions that it takes wake no waiter, so they may have any flags.
    pub(in crate::dat::ep) fn evds_with(&self, new: &Self) -> PerDirection<Option<Arc<Evd>>> {
        let evd = |new: &Option<InUse<Evd>>, old: &Option<InUse<Evd>>| {
            let evd = new.as_ref().or(old.as_ref())?;
            (!evd.discards()).then(|| evd.object())
        };
        PerDirection {
            requests: evd(&new.request_evd, &self.request_evd),
            receives: evd(&new.recv_evd, &self.recv_evd),
        }
    }

    /// Returns references to the EVDs of receives and of requests, for use without the Endpoint's
    /// lock.
    pub(in crate::dat::ep) fn dto_evds(&self) -> Option<PerDirection<Arc<Evd>>> {
        Some(PerDirection {
            requests: self.request_evd.as_ref()?.object(),
            receives: self.recv_evd.as_ref()?.object(),
        })
    }

    /// Notes in the EVDs of receives and of requests that the Endpoint was freed or reset.
    pub(in crate::dat::ep) fn note_life_ended(&self) {
        let evds = [&self.recv_evd, &self.request_evd];
        evds.into_iter()
            .flatten()
            .for_each(|evd| evd.note_life_ended());
    }

    /// Returns whether the consumer does not want connection events.
    pub(in crate::dat::ep) fn discard_connection_events(&self) -> bool {
        self.connect_evd.as_ref().is_some_and(|evd| evd.discards())
    }

    /// Reports a connection event.
    pub(in crate::dat::ep) fn report_connection(&self, event: &Event) {
        if let Some(evd) = &self.connect_evd {
            evd.report(event);
        }
    }

    /// Reports the flush of a receive that was never posted to a QP.
    pub(in crate::dat::ep) fn report_receive(&self, event: &Event) {
        if let Some(evd) = &self.recv_evd {
            evd.report_within_qlen(event);
        }
    }

    /// Returns whether the completion queues may hold completions of DTOs whose slots were freed
    /// early.
    pub(in crate::dat::ep) fn evds_have_given_up_dtos(&self) -> bool {
        [&self.recv_evd, &self.request_evd]
            .into_iter()
            .flatten()
            .any(|evd| evd.has_given_up_dtos())
    }

    /// Returns whether `new` has another EVD for receives or for requests.
    pub(in crate::dat::ep) fn moves_dtos(&self, new: &Self) -> bool {
        self.moves_receives(new) || moves(&self.request_evd, &new.request_evd)
    }

    /// Returns whether `new` has another EVD for receives.
    pub(in crate::dat::ep) fn moves_receives(&self, new: &Self) -> bool {
        moves(&self.recv_evd, &new.recv_evd)
    }

    /// Replaces the objects that `new` has. Returns the old ones.
    pub(in crate::dat::ep) fn replace(&mut self, new: Self) -> Self {
        fn replace<T>(old: &mut Option<T>, new: Option<T>) -> Option<T> {
            match new {
                Some(new) => old.replace(new),
                None => None,
            }
        }
        Self {
            pz: replace(&mut self.pz, new.pz),
            recv_evd: replace(&mut self.recv_evd, new.recv_evd),
            request_evd: replace(&mut self.request_evd, new.request_evd),
            connect_evd: replace(&mut self.connect_evd, new.connect_evd),
            srq: replace(&mut self.srq, new.srq),
        }
    }
}
