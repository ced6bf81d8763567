// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT calls on service points and connection requests: they resolve the handles, then make the
//! call.

use super::{
    calls::given,
    Cr,
    Csp,
    Evd,
    Ia,
    Psp,
    Rsp, //
};
use crate::{
    dat::{
        base::{
            InUse,
            PrivateData, //
        },
        evd::Flags,
        passive::{
            Communicator,
            PspProperties, //
        },
        prelude::*, //
    },
    model::{
        ep::ReadyGate,
        qualifier::Qualifier, //
    },
    rdma::addr::SockAddr, //
};
use kernel::task::Kuid;

impl Ia {
    fn use_cr_evd(&self, evd: u64) -> DatResult<InUse<Evd>> {
        self.use_evd(evd, Flags::CR, Subtype::InvalidHandleEvdCr, Arg::Evd)
    }

    /// Implements `dat_psp_create`, or `dat_psp_create_any` for a qualifier of 0: [`Psp::create`].
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE.
    /// - INVALID_PARAMETER (EVD) for an EVD that takes no connection requests.
    /// - Errors of [`Psp::create`].
    pub(crate) fn create_psp(
        &self,
        conn_qual: u64,
        evd: u64,
        properties: PspProperties,
    ) -> DatResult<(u64, u64)> {
        let evd = self.use_cr_evd(evd)?;
        Psp::create(&self.passive, &self.psps, conn_qual, evd, properties)
    }

    /// Implements `dat_rsp_create`: [`Rsp::create`]. An Endpoint of 0 is DAT_HANDLE_NULL.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (connection qualifier) for a qualifier of 0.
    /// - INVALID_PARAMETER (EVD) for an EVD that takes no connection requests.
    /// - INVALID_HANDLE.
    /// - Errors of [`Rsp::create`].
    pub(crate) fn create_rsp(&self, conn_qual: u64, ep: u64, evd: u64) -> DatResult<u64> {
        let qualifier = Qualifier::new(conn_qual).ok_or(DatError::Invalid(Arg::ConnQual))?;
        let ep = given(ep, |ep| self.get(ep))?;
        let evd = self.use_cr_evd(evd)?;
        Rsp::create(&self.passive, &self.rsps, qualifier, ep, evd)
    }

    /// Implements `dat_csp_create`: [`Csp::create`].
    ///
    /// # Errors
    ///
    /// - COMM_NOT_SUPPORTED for a communicator that does not match the address.
    /// - INVALID_HANDLE.
    /// - INVALID_PARAMETER (EVD) for an EVD that takes no connection requests.
    /// - Errors of [`Csp::create`].
    pub(crate) fn create_csp(
        &self,
        communicator: &Communicator,
        address: SockAddr,
        evd: u64,
    ) -> DatResult<(u64, SockAddr)> {
        if !communicator.suits(address) {
            return Err(Kind::CommNotSupported.into());
        }
        let evd = self.use_cr_evd(evd)?;
        Csp::create(&self.passive, &self.csps, address, evd)
    }

    /// Implements `dat_cr_accept`: [`Cr::accept`].
    ///
    /// # Errors
    ///
    /// As for [`Cr::accept`].
    pub(crate) fn accept(
        &self,
        cr: u64,
        ep: u64,
        gate: ReadyGate,
        data: &PrivateData,
    ) -> DatResult {
        Cr::accept(&self.passive, cr, ep, gate, data)
    }

    /// Implements `dat_cr_reject`: [`Cr::reject`].
    ///
    /// # Errors
    ///
    /// As for [`Cr::reject`].
    pub(crate) fn reject(&self, cr: u64, data: &PrivateData) -> DatResult {
        Cr::reject(&self.passive, cr, data)
    }

    /// Implements `dat_cr_handoff`: [`Cr::handoff`].
    ///
    /// # Errors
    ///
    /// As for [`Cr::handoff`].
    pub(crate) fn handoff(&self, cr: u64, conn_qual: u64, user: Option<Kuid>) -> DatResult {
        Cr::handoff(&self.passive, cr, conn_qual, user)
    }
}
