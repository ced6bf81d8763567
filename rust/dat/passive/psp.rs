// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Public Service Points (PSPs), which listen for a connection qualifier until they are freed.

use super::{
    point::{
        EpOrigin,
        PointConfig,
        DEFAULT_BACKLOG,
        MAX_BACKLOG, //
    },
    service_point::service_point,
    Listener,
    PassiveContext,
    Point, //
};
use crate::{
    dat::{
        base::{
            InUse,
            Objects, //
        },
        evd::Evd,
        prelude::*, //
    },
    model::qualifier::Qualifier, //
};

service_point! {
    /// A Public Service Point.
    Psp: InvalidHandlePsp
}

/// Party that supplies the Endpoints: `DAT_PSP_FLAGS`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EpSupplier {
    /// The consumer supplies an Endpoint to each accept call.
    Consumer,
    /// The provider creates an Endpoint for each request.
    Provider,
}

impl EpSupplier {
    /// Translates `DAT_PSP_FLAGS`.
    pub(crate) fn from_bits(bits: u32) -> DatResult<Self> {
        match bits {
            kdapl_bindings::KDAPL_PSP_CONSUMER => Ok(Self::Consumer),
            kdapl_bindings::KDAPL_PSP_PROVIDER => Ok(Self::Provider),
            _ => Err(DatError::Invalid(Arg::Flags)),
        }
    }

    /// Returns the value of `DAT_PSP_FLAGS`.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::Consumer => kdapl_bindings::KDAPL_PSP_CONSUMER,
            Self::Provider => kdapl_bindings::KDAPL_PSP_PROVIDER,
        }
    }
}

/// Properties of a PSP.
pub(crate) struct PspProperties {
    pub(crate) supplier: EpSupplier,
    /// Number of requests that may wait for an answer; 0 is the default.
    pub(crate) backlog: u32,
    /// The PSP of a kernel module takes requests that processes hand off.
    pub(crate) takes_handoffs: bool,
}

/// Parameters that [`Psp::query`] returns.
pub(crate) struct Param {
    pub(crate) conn_qual: u64,
    pub(crate) evd: u64,
    pub(crate) properties: PspProperties,
}

impl Psp {
    /// Implements `dat_psp_create`, or `dat_psp_create_any` for a connection qualifier of 0.
    /// Returns the handle and the qualifier.
    ///
    /// Requests may arrive before this returns. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (backlog) above 4096.
    /// - CONN_QUAL_IN_USE, CONN_QUAL_UNAVAILABLE.
    pub(in crate::dat) fn create(
        context: &Arc<PassiveContext>,
        psps: &Arc<Objects<Self>>,
        conn_qual: u64,
        evd: InUse<Evd>,
        properties: PspProperties,
    ) -> DatResult<(u64, u64)> {
        let backlog = match properties.backlog {
            0 => DEFAULT_BACKLOG,
            backlog @ 1..=MAX_BACKLOG => backlog,
            _ => return Err(DatError::Invalid(Arg::Backlog)),
        };
        let listener = match Qualifier::new(conn_qual) {
            None => Listener::any(context.ia())?,
            Some(qualifier) => Listener::new(context.ia(), qualifier)?,
        };
        let config = PointConfig {
            evd,
            backlog,
            ep_origin: match properties.supplier {
                EpSupplier::Consumer => EpOrigin::Consumer,
                EpSupplier::Provider => EpOrigin::Provider,
            },
            once: false,
            takes_handoffs: properties.takes_handoffs,
        };
        let point =
            Point::open(context, psps, listener, config).map_err(|error| match error.kind() {
                // Over iWARP a socket may have taken the port.
                Kind::ConnQualInUse if conn_qual == 0 => Kind::ConnQualUnavailable.into(),
                _ => error,
            })?;
        Ok((point.handle, point.conn_qual))
    }

    /// Implements `dat_psp_query`.
    pub(crate) fn query(&self) -> Param {
        Param {
            conn_qual: self.point.conn_qual,
            evd: self.point.evd.handle(),
            properties: PspProperties {
                supplier: match self.point.ep_origin {
                    EpOrigin::Provider => EpSupplier::Provider,
                    EpOrigin::Consumer | EpOrigin::Reserved(_) => EpSupplier::Consumer,
                },
                backlog: self.point.backlog,
                takes_handoffs: self.point.takes_handoffs,
            },
        }
    }
}
