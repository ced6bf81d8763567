// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What `dat_ep_modify` is to change.

use crate::dat::{
    ep::{
        with_attributes,
        Attr,
        Handles, //
    },
    prelude::*, //
};
use kdapl_bindings as uapi;

/// What [`Ep::modify`](crate::dat::ep::Ep::modify) is to change.
pub(crate) struct Change {
    /// What to take instead; 0 for what stays.
    pub(in crate::dat) handles: Handles,
    /// The bits of `DAT_EP_PARAM_MASK` whose attributes change.
    pub(in crate::dat::ep) mask: u64,
    /// Those attributes.
    pub(in crate::dat::ep) attr: Attr,
}

/// The bits of what an Endpoint is made of.
const PARTS: u32 = uapi::KDAPL_EP_FIELD_PZ
    | uapi::KDAPL_EP_FIELD_RECV_EVD
    | uapi::KDAPL_EP_FIELD_REQUEST_EVD
    | uapi::KDAPL_EP_FIELD_CONNECT_EVD;

/// What can be changed; the rest of a mask is nobody's to change.
fn changeable() -> u64 {
    let mut mask = u64::from(PARTS);
    macro_rules! collect {
        ($($name:ident: $bit:ident,)+) => {
            $(mask |= u64::from(uapi::$bit);)+
        };
    }
    with_attributes!(collect);
    mask
}

impl Change {
    /// What a mask (`DAT_EP_PARAM_MASK`) names of these.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 2) for a mask with anything else, INVALID_HANDLE for one of 0 that is to
    /// be changed.
    pub(crate) fn new(mask: u64, handles: &Handles, attr: Attr) -> DatResult<Self> {
        use Subtype::{
            InvalidHandleEvdConn,
            InvalidHandleEvdRecv,
            InvalidHandleEvdRequest,
            InvalidHandlePz, //
        };
        if mask & !changeable() != 0 {
            return Err(DatError::invalid_parameter(2));
        }
        // A handle that is to be changed has to be there: an Endpoint is not taken apart again.
        let chosen = |bit: u32, handle: u64, invalid: Subtype| match (mask & u64::from(bit), handle)
        {
            (0, _) => Ok(0),
            (_, 0) => Err(DatError::new(Kind::InvalidHandle, invalid)),
            (_, handle) => Ok(handle),
        };
        Ok(Self {
            handles: Handles {
                pz: chosen(uapi::KDAPL_EP_FIELD_PZ, handles.pz, InvalidHandlePz)?,
                recv_evd: chosen(
                    uapi::KDAPL_EP_FIELD_RECV_EVD,
                    handles.recv_evd,
                    InvalidHandleEvdRecv,
                )?,
                request_evd: chosen(
                    uapi::KDAPL_EP_FIELD_REQUEST_EVD,
                    handles.request_evd,
                    InvalidHandleEvdRequest,
                )?,
                connect_evd: chosen(
                    uapi::KDAPL_EP_FIELD_CONNECT_EVD,
                    handles.connect_evd,
                    InvalidHandleEvdConn,
                )?,
            },
            mask: mask & !u64::from(PARTS),
            attr,
        })
    }

    /// Whether it takes another QP.
    pub(in crate::dat::ep) fn concerns_qp(&self) -> bool {
        let Handles {
            pz,
            recv_evd,
            request_evd,
            connect_evd: _,
        } = self.handles;
        self.mask != 0 || pz != 0 || recv_evd != 0 || request_evd != 0
    }
}
