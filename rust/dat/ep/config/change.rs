// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Arguments of `dat_ep_modify`.

use crate::dat::{
    ep::{
        with_attributes,
        EpAttr,
        Handles, //
    },
    prelude::*, //
};
use kdapl_bindings as uapi;

/// Arguments of [`Ep::modify`](crate::dat::ep::Ep::modify).
pub(crate) struct EpChange {
    /// Handles of the new objects.
    pub(in crate::dat) handles: Handles,
    /// Bits of `DAT_EP_PARAM_MASK` of the objects that change.
    pub(in crate::dat) parts: u32,
    /// Bits of `DAT_EP_PARAM_MASK` of the attributes that change.
    pub(in crate::dat::ep) mask: u64,
    /// New values of those attributes.
    pub(in crate::dat::ep) attr: EpAttr,
}

/// Bits of the objects that an Endpoint uses.
pub(crate) const PARTS: u32 = uapi::KDAPL_EP_FIELD_PZ
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

impl EpChange {
    /// Selects the fields that a mask (`DAT_EP_PARAM_MASK`) names.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (mask) for a mask with other bits.
    /// - INVALID_HANDLE (PZ) for a Protection Zone of 0: it can be replaced, but not removed.
    pub(crate) fn new(mask: u64, handles: &Handles, attr: EpAttr) -> DatResult<Self> {
        if mask & !changeable() != 0 {
            return Err(DatError::Invalid(Arg::Mask));
        }
        let parts = u32::try_from(mask & u64::from(PARTS)).map_err(|_| DatError::internal())?;
        if parts & uapi::KDAPL_EP_FIELD_PZ != 0 && handles.pz == 0 {
            return Err(DatError::new(Kind::InvalidHandle, Subtype::InvalidHandlePz));
        }
        Ok(Self {
            handles: *handles,
            parts,
            mask: mask & !u64::from(PARTS),
            attr,
        })
    }

    /// Returns whether the change needs another QP.
    pub(in crate::dat::ep) fn concerns_qp(&self) -> bool {
        self.mask != 0 || self.parts & !uapi::KDAPL_EP_FIELD_CONNECT_EVD != 0
    }
}
