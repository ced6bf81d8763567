// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Hands a connection request (CR) off to another service point.
//!
//! The other consumer gets a new request, to which the ID of `rdma_cm` moves. The peer does not
//! notice this. Everything that can fail is done before the ID moves, and until then the request
//! remains where it was. Afterwards it belongs to the other consumer. If that closes its adapter at
//! the same time, the peer is rejected like all its other requests.

use super::{
    directory,
    Arrival,
    Cr,
    DeliveryError,
    PassiveContext, //
};
use crate::{
    dat::prelude::*,
    rdma::cm::Refusal, //
};
use kernel::task::Kuid;

impl Cr {
    /// Implements `dat_cr_handoff`, to a service point of the same device, address and network
    /// namespace, in any process or kernel module. A kernel module may name the user that the
    /// process belongs to.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// On an error the request remains.
    ///
    /// - INVALID_HANDLE.
    /// - INVALID_PARAMETER (connection qualifier) if no service point listens for it there.
    /// - PRIVILEGES_VIOLATION if the consumer may not hand requests to the service point
    ///   ([`IaBase::may_hand_to`](crate::dat::base::IaBase::may_hand_to)).
    /// - INSUFFICIENT_RESOURCES if there is no room for the request or its event.
    pub(in crate::dat) fn handoff(
        context: &PassiveContext,
        handle: u64,
        conn_qual: u64,
        user: Option<Kuid>,
    ) -> DatResult {
        let ia = context.ia();
        let nobody = DatError::Invalid(Arg::ConnQual);
        let refusal = |error| match error {
            DeliveryError::NoListener => nobody,
            DeliveryError::Failed(error) => error,
        };
        let cr = context.crs.get(handle)?;
        let device = ia.device()?;
        let mut here = cr.addresses();
        let target = here.find_map(|at| directory::find(&device, ia.net(), at, conn_qual));
        let target = target.ok_or(nobody)?;
        if !ia.may_hand_to(target.ia(), target.takes_handoffs, user) {
            return Err(Kind::PrivilegesViolation.into());
        }
        let arrival = Arrival::prepare(&target, cr.request).map_err(refusal)?;
        let delivered = arrival.deliver(|| {
            let mut id = None;
            context.crs.take(handle, |cr| {
                id = cr.take_id();
                id.as_ref().map(|_| ()).ok_or(DatError::device())
            })?;
            let id = id.ok_or(DatError::internal())?;
            id.account_to(target.ia().user().id());
            Ok(id)
        });
        if let Some(id) = delivered.map_err(refusal)? {
            // The other consumer closes its adapter.
            id.lock().refuse_as(Refusal::NoListener);
        }
        cr.release_ep();
        Ok(())
    }
}
