// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reserved Service Points: take one request, for one Endpoint.

use super::{
    ep::Ep,
    ia::Ia,
    service::{
        self,
        face,
        Endpoints,
        Offer,
        Point,
        Seat, //
    },
};
use crate::model::{
    code::{
        DatError,
        DatResult, //
    },
    qualifier::Qualifier,
};
use kernel::sync::Arc;

face! {
    /// A Reserved Service Point.
    Rsp
}

/// What [`Rsp::query`] tells.
pub(crate) struct Param {
    pub(crate) conn_qual: u64,
    pub(crate) evd: u64,
    /// Handle of the reserved Endpoint, or 0.
    pub(crate) ep: u64,
}

impl Rsp {
    /// `dat_rsp_create`. `ep` is a handle, or 0: then a new Endpoint comes with the request.
    ///
    /// The request may arrive before this returns. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER for a connection qualifier of 0 (argument 2) or an EVD that takes no
    /// connection requests (argument 4); INVALID_HANDLE; INVALID_STATE unless the Endpoint is
    /// unconnected; CONN_QUAL_IN_USE, CONN_QUAL_UNAVAILABLE.
    pub(crate) fn create(ia: &Arc<Ia>, conn_qual: u64, ep: u64, evd: u64) -> DatResult<u64> {
        let qualifier = Qualifier::new(conn_qual).ok_or(DatError::invalid_parameter(2))?;
        let ep = (ep != 0).then(|| ia.objects().get::<Ep>(ep)).transpose()?;
        let evd = service::use_evd(ia, evd, 4)?;
        let seat = Seat::new(ia, qualifier)?;
        let endpoints = match ep {
            Some(ep) => {
                ep.reserve()?;
                Endpoints::Reserved(ep)
            }
            None => Endpoints::Provider,
        };
        let offer = Offer {
            evd,
            backlog: 1,
            endpoints,
            once: true,
        };
        Ok(Point::open::<Self>(ia, seat, offer)?.handle())
    }

    /// `dat_rsp_free`. The Endpoint is unconnected again, unless the request has come.
    pub(crate) fn free(ia: &Ia, handle: u64) -> DatResult {
        Point::free::<Self>(ia, handle)
    }

    /// `dat_rsp_query`.
    pub(crate) fn query(&self) -> Param {
        Param {
            conn_qual: self.point.conn_qual(),
            evd: self.point.evd().handle(),
            ep: match self.point.endpoints() {
                Endpoints::Reserved(ep) => ep.handle(),
                Endpoints::Consumer | Endpoints::Provider => 0,
            },
        }
    }
}
