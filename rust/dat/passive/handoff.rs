// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handing a request over to another service point.
//!
//! The other consumer gets a request of its own, to which the id moves; the peer notices nothing.
//! All that can fail is done before the id is touched: up to then the request stands where it was,
//! and from then on it is the other consumer's, even if that is closed at this very moment and the
//! peer turned away with all its requests. (Seed 000, "Connections".)

use super::{
    directory,
    Arrival,
    Cr,
    Domain,
    Refused, //
};
use crate::{
    dat::prelude::*,
    rdma::cm::Refusal, //
};

impl Cr {
    /// `dat_cr_handoff`, to a service point of the same device, address and network namespace, in
    /// whatever process.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE; INVALID_PARAMETER (argument 2) if nobody listens for the qualifier there;
    /// PRIVILEGES_VIOLATION if that is another user and the caller may not administer the network;
    /// INSUFFICIENT_RESOURCES if there is no room for the request or its event. The request stands.
    pub(in crate::dat) fn handoff(domain: &Domain, handle: u64, conn_qual: u64) -> DatResult {
        let ia = domain.ia();
        let nobody = DatError::invalid_parameter(2);
        let turned = |turned| match turned {
            Refused::NobodyListens => nobody,
            Refused::Failed(error) => error,
        };
        let cr = domain.crs.get(handle)?;
        let device = ia.device()?;
        let target = directory::find(&device, ia.net(), cr.point().address(), conn_qual);
        let target = target.ok_or(nobody)?;
        if !ia.may_hand_to(target.ia()) {
            return Err(Kind::PrivilegesViolation.into());
        }
        let arrival = Arrival::prepare(&target, cr.request).map_err(turned)?;
        let delivered = arrival.deliver(|| {
            let mut id = None;
            domain.crs.take(handle, |cr| {
                id = cr.take_id();
                id.as_ref().map(|_| ()).ok_or(DatError::device())
            })?;
            id.ok_or(DatError::internal())
        });
        if let Some(id) = delivered.map_err(turned)? {
            // The other one closes.
            id.lock().refuse_as(Refusal::NobodyListens);
        }
        cr.release_ep();
        Ok(())
    }
}
