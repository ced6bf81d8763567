// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Public Service Points: listen for a connection qualifier until they are freed.

use super::{
    ia::Ia,
    service::{
        self,
        face,
        Endpoints,
        Offer,
        Point,
        Seat,
        DEFAULT_BACKLOG,
        MAX_BACKLOG, //
    },
};
use crate::model::{
    code::{
        DatError,
        DatResult,
        Kind, //
    },
    qualifier::Qualifier,
};
use kernel::sync::Arc;

face! {
    /// A Public Service Point.
    Psp
}

/// Who brings the Endpoints: `DAT_PSP_FLAGS`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brings {
    /// The consumer.
    Consumer,
    /// The provider: each request comes with a new one.
    Provider,
}

impl Brings {
    /// Of a number of DAT's, for argument 4.
    pub(crate) fn from_bits(bits: u32) -> DatResult<Self> {
        match bits {
            kdapl_bindings::KDAPL_PSP_CONSUMER => Ok(Self::Consumer),
            kdapl_bindings::KDAPL_PSP_PROVIDER => Ok(Self::Provider),
            _ => Err(DatError::invalid_parameter(4)),
        }
    }

    /// DAT's number.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Consumer => kdapl_bindings::KDAPL_PSP_CONSUMER,
            Self::Provider => kdapl_bindings::KDAPL_PSP_PROVIDER,
        }
    }
}

/// What [`Psp::query`] tells.
pub(crate) struct Param {
    pub(crate) conn_qual: u64,
    pub(crate) evd: u64,
    pub(crate) brings: Brings,
    pub(crate) backlog: u32,
}

impl Psp {
    /// `dat_psp_create`, or `dat_psp_create_any` for a connection qualifier of 0. Returns the handle
    /// and the qualifier.
    ///
    /// Requests may arrive before this returns. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE, INVALID_PARAMETER for an EVD that takes no connection requests (argument 3)
    /// or a backlog above 4096 (argument 4); CONN_QUAL_IN_USE, CONN_QUAL_UNAVAILABLE.
    pub(crate) fn create(
        ia: &Arc<Ia>,
        conn_qual: u64,
        evd: u64,
        brings: Brings,
        backlog: u32,
    ) -> DatResult<(u64, u64)> {
        let evd = service::use_evd(ia, evd, 3)?;
        let backlog = match backlog {
            0 => DEFAULT_BACKLOG,
            1..=MAX_BACKLOG => backlog,
            _ => return Err(DatError::invalid_parameter(4)),
        };
        let seat = match Qualifier::new(conn_qual) {
            None => Seat::any(ia)?,
            Some(qualifier) => Seat::new(ia, qualifier)?,
        };
        let offer = Offer {
            evd,
            backlog,
            endpoints: match brings {
                Brings::Consumer => Endpoints::Consumer,
                Brings::Provider => Endpoints::Provider,
            },
            once: false,
        };
        let point = Point::open::<Self>(ia, seat, offer).map_err(|error| match error.kind {
            // On iWARP sockets take ports, too.
            Kind::ConnQualInUse if conn_qual == 0 => Kind::ConnQualUnavailable.into(),
            _ => error,
        })?;
        Ok((point.handle(), point.conn_qual()))
    }

    /// `dat_psp_free`. Connections stay, and requests that have arrived can still be answered.
    pub(crate) fn free(ia: &Ia, handle: u64) -> DatResult {
        Point::free::<Self>(ia, handle)
    }

    /// `dat_psp_query`.
    pub(crate) fn query(&self) -> Param {
        Param {
            conn_qual: self.point.conn_qual(),
            evd: self.point.evd().handle(),
            brings: match self.point.endpoints() {
                Endpoints::Provider => Brings::Provider,
                Endpoints::Consumer | Endpoints::Reserved(_) => Brings::Consumer,
            },
            backlog: self.point.backlog(),
        }
    }
}
