// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tables of an adapter's objects, one for each kind.

use super::{
    Cno,
    Cr,
    Csp,
    Ep,
    Evd,
    Ia,
    Lmr,
    Object,
    Objects,
    Psp,
    Pz,
    Rmr,
    Rsp,
    Srq, //
};
use crate::{
    dat::prelude::*,
    model::handle::{
        Handle,
        HandleKind,
        KernelHandle, //
    },
};
use kernel::sync::rcu::Guard;

/// Kind of objects that an adapter has a table of.
pub(crate) trait Tabled: Object {
    /// Returns the adapter's table of objects of this kind.
    fn table(ia: &Ia) -> &Objects<Self>;
}

macro_rules! tabled {
    ($($kind:ident: $ia:ident => $table:expr,)+) => {
        $(impl Tabled for $kind {
            fn table($ia: &Ia) -> &Objects<Self> {
                $table
            }
        })+

        impl Ia {
            /// Returns the number of objects, including the asynchronous EVD.
            pub(super) fn len(&self) -> u32 {
                [$($kind::table(self).len(),)+].into_iter().fold(0, u32::saturating_add)
            }

            /// Returns the adapter's handle of the object that a kernel consumer's handle names.
            pub(crate) fn full_handle(&self, handle: KernelHandle) -> Option<Handle> {
                match handle.kind()? {
                    $(HandleKind::$kind => $kind::table(self).full_handle(handle),)+
                    HandleKind::Ia => None,
                }
            }
        }
    };
}

tabled! {
    Pz: ia => &ia.pzs,
    Lmr: ia => &ia.lmrs,
    Rmr: ia => &ia.rmrs,
    Cno: ia => &ia.cnos,
    Evd: ia => ia.evds(),
    Ep: ia => ia.eps(),
    Srq: ia => ia.srqs(),
    Psp: ia => &ia.psps,
    Rsp: ia => &ia.rsps,
    Csp: ia => &ia.csps,
    Cr: ia => ia.crs(),
}

impl Ia {
    pub(super) fn evds(&self) -> &Arc<Objects<Evd>> {
        &self.passive.ep_context.evds
    }

    pub(super) fn eps(&self) -> &Arc<Objects<Ep>> {
        &self.passive.ep_context.eps
    }

    pub(super) fn srqs(&self) -> &Arc<Objects<Srq>> {
        &self.passive.ep_context.srqs
    }

    pub(super) fn crs(&self) -> &Arc<Objects<Cr>> {
        &self.passive.crs
    }

    /// Returns the object with this handle.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the subtype of the kind.
    pub(crate) fn get<T: Tabled>(&self, handle: u64) -> DatResult<Arc<T>> {
        T::table(self).get(handle)
    }

    /// Returns the object whose handle has these low bits. A process maps memory of an object by
    /// them.
    pub(crate) fn get_by_low_bits<T: Tabled>(&self, low_bits: u64) -> Option<Arc<T>> {
        let key = Handle::from_raw(low_bits).key();
        T::table(self).get_by_short_generation(key.index, key.short_generation())
    }

    /// As [`Ia::get`], for Endpoints, EVDs, SRQs and LMRs in any context: see [`Objects::find`].
    pub(crate) fn find<T: Tabled>(&self, handle: u64) -> Option<Arc<T>> {
        T::table(self).find(handle)
    }

    /// As [`Ia::get`], with a subtype that names the invalid one of several handles.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with this subtype.
    pub(crate) fn get_as<T: Tabled>(&self, handle: u64, subtype: Subtype) -> DatResult<Arc<T>> {
        T::table(self).get_as(handle, subtype)
    }

    /// Returns the object that a kernel consumer's handle names.
    ///
    /// # Errors
    ///
    /// As for [`Ia::get`].
    pub(crate) fn get_for_kernel<T: Tabled>(&self, handle: KernelHandle) -> DatResult<Arc<T>> {
        T::table(self).get_for_kernel(handle)
    }

    /// Returns the Endpoint, SRQ or LMR that a kernel consumer's handle names: see
    /// [`Objects::borrow_for_kernel`]. Context: any.
    ///
    /// # Errors
    ///
    /// As for [`Ia::get`].
    pub(crate) fn borrow_for_kernel<'a, T: Tabled>(
        &'a self,
        guard: &'a Guard,
        handle: KernelHandle,
    ) -> DatResult<&'a Arc<T>> {
        T::table(self).borrow_for_kernel(guard, handle)
    }

    /// Frees the object with this handle: `dat_pz_free`, `dat_rmr_free`, `dat_cno_free`,
    /// `dat_evd_free`, `dat_ep_free`, `dat_srq_free`, `dat_psp_free`, `dat_rsp_free` and
    /// `dat_csp_free`. LMRs: [`Ia::free_lmr`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE with the subtype of the kind.
    /// - INVALID_STATE while the object is in use.
    pub(crate) fn free<T: Tabled>(&self, handle: u64) -> DatResult {
        T::table(self).free(handle)
    }
}
