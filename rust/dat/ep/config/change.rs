// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Arguments of `dat_ep_modify`.

use crate::dat::{
    ep::{
        with_attributes,
        Attr,
        Handles, //
    },
    prelude::*, //
};
use kdapl_bindings as uapi;

/// Arguments of [`Ep::modify`](crate::dat::ep::Ep::modify).
pub(crate) struct Change {
    /// Handles of the new objects; 0 keeps the present one.
    pub(in crate::dat) handles: Handles,
    /// Bits of `DAT_EP_PARAM_MASK` of the attributes that change.
    pub(in crate::dat::ep) mask: u64,
    /// New values of those attributes.
    pub(in crate::dat::ep) attr: Attr,
}

/// Bits of the objects that an Endpoint uses.
const PARTS: u32 = uapi::KDAPL_EP_FIELD_PZ
    | uapi::KDAPL_EP_FIELD_RECV_EVD
    | uapi::KDAPL_EP_FIELD_REQUEST_EVD
    | uapi::KDAPL_EP_FIELD_CONNECT_EVD;

/// Returns the bits of all fields that can be changed. The consumer cannot change the others.
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
    /// Selects the fields that a mask (`DAT_EP_PARAM_MASK`) names.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (mask) for a mask with other bits.
    /// - INVALID_HANDLE for a handle of 0 that the mask names.
    pub(crate) fn new(mask: u64, handles: &Handles, attr: Attr) -> DatResult<Self> {
        use Subtype::{
            InvalidHandleEvdConn,
            InvalidHandleEvdRecv,
            InvalidHandleEvdRequest,
            InvalidHandlePz, //
        };
        if mask & !changeable() != 0 {
            return Err(DatError::Invalid(Arg::Mask));
        }
        // A named handle must not be 0: an object can be replaced, but not removed.
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
                srq: 0,
            },
            mask: mask & !u64::from(PARTS),
            attr,
        })
    }

    /// Returns whether the change needs another QP.
    pub(in crate::dat::ep) fn concerns_qp(&self) -> bool {
        let Handles {
            pz,
            recv_evd,
            request_evd,
            connect_evd: _,
            srq: _,
        } = self.handles;
        self.mask != 0 || pz != 0 || recv_evd != 0 || request_evd != 0
    }
}
