// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Resolves the handles of the objects that an Endpoint uses.

use super::{
    calls::given,
    Evd,
    Ia, //
};
use crate::dat::{
    base::InUse,
    ep::{
        Handles,
        Parts, //
    },
    evd::Flags,
    prelude::*, //
};
use kdapl_bindings::{
    KDAPL_EP_FIELD_CONNECT_EVD,
    KDAPL_EP_FIELD_PZ,
    KDAPL_EP_FIELD_RECV_EVD,
    KDAPL_EP_FIELD_REQUEST_EVD, //
};

impl Ia {
    /// Begins the use of an EVD of an Endpoint; of the sink for 0, which is DAT_HANDLE_NULL.
    ///
    /// # Errors
    ///
    /// As for [`Ia::use_evd`].
    fn use_evd_or_sink(
        &self,
        evd: u64,
        stream: Flags,
        subtype: Subtype,
        arg: Arg,
    ) -> DatResult<InUse<Evd>> {
        if evd == 0 {
            return Ok(InUse::new(self.passive.ep_context.sink.clone()));
        }
        self.use_evd(evd, stream, subtype, arg)
    }

    /// Begins the use of the objects that these handles name. `fields` selects some of the handles
    /// by their bits of `DAT_EP_PARAM_MASK`.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE with the subtype of the invalid handle.
    /// - INVALID_PARAMETER for an EVD that does not take the stream.
    pub(super) fn use_parts(&self, handles: &Handles, fields: u32) -> DatResult<Parts> {
        use Subtype::{
            InvalidHandleEvdConn,
            InvalidHandleEvdRecv,
            InvalidHandleEvdRequest, //
        };
        let pz = match fields & KDAPL_EP_FIELD_PZ {
            0 => 0,
            _ => handles.pz,
        };
        let evd = |field: u32, handle: u64, stream: Flags, subtype: Subtype, arg: Arg| {
            (fields & field != 0)
                .then(|| self.use_evd_or_sink(handle, stream, subtype, arg))
                .transpose()
        };
        Ok(Parts {
            pz: given(pz, |pz| self.use_pz(pz))?,
            recv_evd: evd(
                KDAPL_EP_FIELD_RECV_EVD,
                handles.recv_evd,
                Flags::DTO,
                InvalidHandleEvdRecv,
                Arg::RecvEvd,
            )?,
            request_evd: evd(
                KDAPL_EP_FIELD_REQUEST_EVD,
                handles.request_evd,
                Flags::DTO,
                InvalidHandleEvdRequest,
                Arg::RequestEvd,
            )?,
            connect_evd: evd(
                KDAPL_EP_FIELD_CONNECT_EVD,
                handles.connect_evd,
                Flags::CONNECTION,
                InvalidHandleEvdConn,
                Arg::ConnectEvd,
            )?,
            srq: given(handles.srq, |srq| {
                self.srqs().use_as(srq, Subtype::InvalidHandleSrq)
            })?,
        })
    }
}
