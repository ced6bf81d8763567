// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Remote Memory Regions (RMRs).

use super::{
    export::{
        export,
        raw_handle,
        In,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        base::Segment,
        prelude::*,
        pz::Pz,
        rmr::{
            BindArguments,
            Rmr, //
        },
    },
    model::handle::KernelHandle, //
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// Returns the segment of a triplet.
fn segment_in(triplet: &bindings::DAT_LMR_TRIPLET) -> Segment {
    Segment {
        address: triplet.virtual_address,
        length: triplet.segment_length,
        context: triplet.lmr_context,
    }
}

/// Returns the triplet of a segment.
fn segment_out(segment: &Segment) -> bindings::DAT_LMR_TRIPLET {
    bindings::DAT_LMR_TRIPLET {
        virtual_address: segment.address,
        segment_length: segment.length,
        lmr_context: segment.context,
    }
}

export! {
    /// `dat_rmr_create`.
    fn dat_rmr_create(pz: KernelHandle, rmr: Out<*mut c_void>) {
        rmr.needed(Arg::Handle)?;
        let (adapter, pz) = Adapter::of_object::<Pz>(pz)?;
        rmr.put(adapter.raw(adapter.ia.create_rmr(pz)?));
        Ok(())
    }

    /// `dat_rmr_query`.
    fn dat_rmr_query(rmr: KernelHandle, _mask: u64, result: Out<bindings::DAT_RMR_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, rmr) = Adapter::find::<Rmr>(rmr)?;
        let param = rmr.query();
        result.put(bindings::DAT_RMR_PARAM {
            ia_handle: raw_handle(adapter.handle()),
            pz_handle: adapter.raw(param.pz),
            lmr_triplet: segment_out(&param.segment),
            mem_priv: param.privileges,
            rmr_context: param.rmr_context,
        });
        Ok(())
    }

    /// `dat_rmr_bind`.
    fn dat_rmr_bind(
        rmr: KernelHandle,
        lmr: KernelHandle,
        triplet: In<bindings::DAT_LMR_TRIPLET>,
        privileges: u32,
        va_type: u32,
        ep: KernelHandle,
        cookie: bindings::DAT_CONTEXT,
        flags: u32,
        rmr_context: Out<u32>,
    ) {
        let (adapter, rmr) = Adapter::of_object::<Rmr>(rmr)?;
        let triplet = triplet.get().ok_or(DatError::Invalid(Arg::Segments))?;
        if va_type != bindings::DAT_VA_TYPE_VA {
            return Err(Kind::ModelNotSupported.into());
        }
        let arguments = BindArguments {
            segment: segment_in(&triplet),
            privileges,
            // SAFETY: Every bit pattern is a valid cookie.
            cookie: unsafe { cookie.as_64 },
            flags,
        };
        let (lmr, ep) = (adapter.inner(lmr), adapter.inner(ep));
        rmr_context.put(adapter.ia.bind_rmr(rmr, lmr, ep, &arguments)?);
        Ok(())
    }

    /// `dat_rmr_free`.
    fn dat_rmr_free(rmr: KernelHandle) {
        let (adapter, rmr) = Adapter::of_object::<Rmr>(rmr)?;
        adapter.ia.free::<Rmr>(rmr)
    }
}
