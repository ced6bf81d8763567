// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reserved Service Points (RSPs), which take one request for one Endpoint.

use super::{
    point::{
        EpOrigin,
        PointConfig, //
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
        ep::Ep,
        evd::Evd,
        prelude::*, //
    },
    model::qualifier::Qualifier, //
};

service_point! {
    /// A Reserved Service Point.
    Rsp: InvalidHandleRsp
}

/// Parameters that [`Rsp::query`] returns.
pub(crate) struct Param {
    pub(crate) conn_qual: u64,
    pub(crate) evd: u64,
    /// Handle of the reserved Endpoint, or 0.
    pub(crate) ep: u64,
}

impl Rsp {
    /// Implements `dat_rsp_create`. Without `ep` the provider creates an Endpoint for the request.
    ///
    /// The request may arrive before this returns. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE unless the Endpoint is unconnected.
    /// - CONN_QUAL_IN_USE, CONN_QUAL_UNAVAILABLE.
    pub(in crate::dat) fn create(
        context: &Arc<PassiveContext>,
        rsps: &Arc<Objects<Self>>,
        qualifier: Qualifier,
        ep: Option<Arc<Ep>>,
        evd: InUse<Evd>,
    ) -> DatResult<u64> {
        let listener = Listener::new(context.ia(), qualifier)?;
        let ep_origin = match ep {
            Some(ep) => {
                ep.reserve()?;
                EpOrigin::Reserved(ep)
            }
            None => EpOrigin::Provider,
        };
        let config = PointConfig {
            evd,
            backlog: 1,
            ep_origin,
            once: true,
            takes_handoffs: false,
        };
        Ok(Point::open(context, rsps, listener, config)?.handle)
    }

    /// Implements `dat_rsp_query`.
    pub(crate) fn query(&self) -> Param {
        Param {
            conn_qual: self.point.conn_qual,
            evd: self.point.evd.handle(),
            ep: match &self.point.ep_origin {
                EpOrigin::Reserved(ep) => ep.handle(),
                EpOrigin::Consumer | EpOrigin::Provider => 0,
            },
        }
    }
}
