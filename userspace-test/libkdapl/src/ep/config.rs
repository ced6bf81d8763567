// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Protection zone, EVDs and attributes of an endpoint, and their modification before it connects.

use super::{Ep, EpFields};
use crate::error::Result;
use crate::evd::Evd;
use crate::object::Pz;
use crate::raw::{self, call};
use crate::srq::Srq;
use crate::sys::*;
use crate::EpAttr;

/// Configuration of a new endpoint. Without a protection zone the endpoint is unconfigured: it
/// cannot be connected and takes no receives until [`Ep::modify`] supplies one. Without an EVD it
/// works, and the events of that EVD are discarded.
///
/// ```no_run
/// # use libkdapl::{EpConfig, Evd, Ia, Pz};
/// # fn later(ia: &Ia, pz: &Pz, evd: &Evd) -> libkdapl::Result<()> {
/// let ep = ia.create_ep_with(&EpConfig { connect: Some(evd), ..Default::default() })?;
/// ep.modify(libkdapl::EpChange::new().pz(pz).recv(evd).request(evd))?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct EpConfig<'a> {
    /// Protection zone whose regions the endpoint may use.
    pub pz: Option<&'a Pz>,
    /// EVD for completions of receives; needs the DTO stream. `None` discards the events.
    pub recv: Option<&'a Evd>,
    /// EVD for completions of requests; needs the DTO stream. `None` discards the events.
    pub request: Option<&'a Evd>,
    /// EVD for connection events; needs the CONNECTION stream. `None` discards the events, except
    /// that a failed connection is reported as `ASYNC_EP_BROKEN`.
    pub connect: Option<&'a Evd>,
    /// SRQ that the receives come from; its zone must be `pz`.
    pub srq: Option<&'a Srq>,
    /// Attributes; `None` for the defaults.
    pub attr: Option<EpAttr>,
}

/// Changes for [`Ep::modify`].
#[derive(Clone, Copy, Debug, Default)]
pub struct EpChange<'a> {
    pz: Option<&'a Pz>,
    recv: Option<&'a Evd>,
    request: Option<&'a Evd>,
    connect: Option<&'a Evd>,
    fields: EpFields,
    attr: EpAttr,
}

macro_rules! attributes {
    ($($name:ident: $type:ty = $field:ident,)*) => {
        $(
            #[doc = concat!("Sets `", stringify!($name), "`; zero selects the default, except for the",
                " numbers of RDMA reads (`KDAPL_RDMA_READS_DEFAULT`).")]
            #[must_use]
            pub fn $name(mut self, value: $type) -> Self {
                self.attr.$name = value;
                self.fields = self.fields | EpFields::$field;
                self
            }
        )*
    };
}

impl<'a> EpChange<'a> {
    /// Makes an empty set of changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a set of changes of `fields`, with the attributes from `attr`. The protection zone and
    /// the EVDs are set with the methods below. An EVD that `fields` contains and no method sets is
    /// DAT_HANDLE_NULL: its events are discarded.
    #[must_use]
    pub fn of(fields: EpFields, attr: EpAttr) -> Self {
        Self { fields, attr, ..Self::default() }
    }

    /// Sets the protection zone. Posted receives stay posted; their memory must be in regions of
    /// the new zone.
    #[must_use]
    pub fn pz(self, pz: &'a Pz) -> Self {
        Self { pz: Some(pz), fields: self.fields | EpFields::PZ, ..self }
    }

    /// Sets the EVD for receives.
    #[must_use]
    pub fn recv(self, evd: &'a Evd) -> Self {
        Self { recv: Some(evd), fields: self.fields | EpFields::RECV_EVD, ..self }
    }

    /// Sets the EVD for requests.
    #[must_use]
    pub fn request(self, evd: &'a Evd) -> Self {
        Self { request: Some(evd), fields: self.fields | EpFields::REQUEST_EVD, ..self }
    }

    /// Sets the EVD for connection events.
    #[must_use]
    pub fn connect(self, evd: &'a Evd) -> Self {
        Self { connect: Some(evd), fields: self.fields | EpFields::CONNECT_EVD, ..self }
    }

    attributes! {
        service_type: u32 = SERVICE_TYPE,
        max_message_size: u64 = MAX_MESSAGE_SIZE,
        max_rdma_size: u64 = MAX_RDMA_SIZE,
        qos: u32 = QOS,
        recv_completion_flags: u32 = RECV_COMPLETION_FLAGS,
        request_completion_flags: u32 = REQUEST_COMPLETION_FLAGS,
        max_recv_dtos: u32 = MAX_RECV_DTOS,
        max_request_dtos: u32 = MAX_REQUEST_DTOS,
        max_recv_iov: u32 = MAX_RECV_IOV,
        max_request_iov: u32 = MAX_REQUEST_IOV,
        max_rdma_read_in: u32 = MAX_RDMA_READ_IN,
        max_rdma_read_out: u32 = MAX_RDMA_READ_OUT,
        max_rdma_read_iov: u32 = MAX_RDMA_READ_IOV,
        max_rdma_write_iov: u32 = MAX_RDMA_WRITE_IOV,
        peer_timeout_ms: u32 = PEER_TIMEOUT,
        keepalive_ms: u32 = KEEPALIVE,
    }
}

/// Objects that an endpoint keeps alive.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pz: Option<Pz>,
    recv: Option<Evd>,
    request: Option<Evd>,
    connect: Option<Evd>,
    _srq: Option<Srq>,
}

impl From<&EpConfig<'_>> for Parts {
    fn from(config: &EpConfig<'_>) -> Self {
        Self {
            pz: config.pz.cloned(),
            recv: config.recv.cloned(),
            request: config.request.cloned(),
            connect: config.connect.cloned(),
            _srq: config.srq.cloned(),
        }
    }
}

pub(super) fn pz_handle(pz: Option<&Pz>) -> u64 {
    pz.map_or(0, |pz| pz.handle().0)
}

pub(super) fn evd_handle(evd: Option<&Evd>) -> u64 {
    evd.map_or(0, |evd| evd.handle().0)
}

impl Ep {
    /// Modifies the endpoint before it connects. Makes all of `change` or nothing. Returns the
    /// resulting attributes.
    ///
    /// Posted receives stay posted, in their order. Objects that the endpoint no longer uses may be
    /// freed.
    ///
    /// # Errors
    /// `INVALID_STATE` (with the state) once the endpoint is connecting; `INVALID_HANDLE` with the
    /// subtype of the unsuitable object; `INVALID_PARAMETER` for attributes that exceed the
    /// device's limits or are too small for the posted receives; `PROTECTION_VIOLATION` or
    /// `PRIVILEGES_VIOLATION` if the memory of a posted receive is not in the new zone.
    pub fn modify(&self, change: EpChange<'_>) -> Result<EpAttr> {
        let mut message = kdapl_ep_modify {
            handle: self.handle().0,
            mask: change.fields.0,
            pz: pz_handle(change.pz),
            recv_evd: evd_handle(change.recv),
            request_evd: evd_handle(change.request),
            connect_evd: evd_handle(change.connect),
            attr: change.attr,
            ..Default::default()
        };
        // Hold the lock during the call, so that concurrent changes reach the kernel and `parts` in
        // the same order.
        let mut parts = self.parts();
        self.without_mapping(|| raw::call(self.device(), call::EP_MODIFY, &mut message))?;
        let old = parts.clone();
        let evd = |field, new: Option<&Evd>, old| match change.fields.contains(field) {
            true => new.cloned(),
            false => old,
        };
        *parts = Parts {
            pz: change.pz.cloned().or(old.pz),
            recv: evd(EpFields::RECV_EVD, change.recv, old.recv),
            request: evd(EpFields::REQUEST_EVD, change.request, old.request),
            connect: evd(EpFields::CONNECT_EVD, change.connect, old.connect),
            _srq: old._srq,
        };
        Ok(message.attr)
    }
}

#[cfg(test)]
mod tests {
    use super::{EpChange, EpFields};

    #[test]
    fn a_change_names_what_it_changes_and_no_more() {
        assert_eq!(EpChange::new().fields, EpFields::default());
        let change = EpChange::new().max_recv_dtos(5).qos(8);
        assert_eq!(change.fields, EpFields::MAX_RECV_DTOS | EpFields::QOS);
        assert_eq!((change.attr.max_recv_dtos, change.attr.qos), (5, 8));
    }
}
