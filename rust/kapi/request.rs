// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Connection Requests (CRs).

use super::{
    connect::split_gate,
    export::{
        count,
        export,
        raw_address,
        Data,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        base::PrivateData,
        passive::Cr,
        prelude::*, //
    },
    model::handle::KernelHandle,
    sys::thread::user_of, //
};
use kdapl_bindings as bindings;

/// Copies the private data of an accept or a reject, up to `limit` bytes.
fn data_of(size: i32, data: &Data, limit: u32) -> DatResult<PrivateData> {
    let size = u32::try_from(size).map_err(|_| DatError::Invalid(Arg::PrivateDataSize))?;
    let mut copy = PrivateData::with_len(size, limit)?;
    // SAFETY: The header obliges the caller to pass `size` bytes, which is the length of `copy`.
    unsafe { data.read(copy.bytes_mut()) }?;
    Ok(copy)
}

/// Accepts a request. `flags` may have the ready gate's only.
fn accept(cr: KernelHandle, ep: KernelHandle, flags: u32, size: i32, data: &Data) -> DatResult {
    let (adapter, cr) = Adapter::of_object::<Cr>(cr)?;
    let (0, gate) = split_gate(flags) else {
        return Err(DatError::Invalid(Arg::Flags));
    };
    let (_, limit, _) = adapter.ia.attr().max_private_data;
    let data = data_of(size, data, limit)?;
    adapter.ia.accept(cr, adapter.inner(ep), gate, &data)
}

export! {
    /// `dat_cr_query`.
    fn dat_cr_query(cr: KernelHandle, _mask: u64, result: Out<bindings::DAT_CR_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, cr) = Adapter::find::<Cr>(cr)?;
        let param = cr.query();
        let (remote, data) = cr.request_at();
        result.put(bindings::DAT_CR_PARAM {
            remote_ia_address_ptr: raw_address(remote),
            remote_port_qual: param.remote.port().into(),
            private_data_size: count(param.private_data.size()),
            private_data: data.cast(),
            local_ep_handle: adapter.raw(param.local_ep),
        });
        Ok(())
    }

    /// `dat_cr_accept`.
    fn dat_cr_accept(
        cr: KernelHandle,
        ep: KernelHandle,
        private_data_size: i32,
        private_data: Data,
    ) {
        accept(cr, ep, 0, private_data_size, &private_data)
    }

    /// `kdapl_cr_accept`.
    fn kdapl_cr_accept(
        cr: KernelHandle,
        ep: KernelHandle,
        private_data_size: i32,
        private_data: Data,
        flags: u32,
    ) {
        accept(cr, ep, flags, private_data_size, &private_data)
    }

    /// `dat_cr_reject`.
    fn dat_cr_reject(cr: KernelHandle, private_data_size: i32, private_data: Data) {
        let (adapter, cr) = Adapter::of_object::<Cr>(cr)?;
        let (_, _, limit) = adapter.ia.attr().max_private_data;
        let data = data_of(private_data_size, &private_data, limit)?;
        adapter.ia.reject(cr, &data)
    }

    /// `dat_cr_handoff`.
    fn dat_cr_handoff(cr: KernelHandle, conn_qual: u64) {
        let (adapter, cr) = Adapter::of_object::<Cr>(cr)?;
        adapter.ia.handoff(cr, conn_qual, None)
    }

    /// `kdapl_cr_handoff_to_user`.
    fn kdapl_cr_handoff_to_user(cr: KernelHandle, conn_qual: u64, uid: u32) {
        let (adapter, cr) = Adapter::of_object::<Cr>(cr)?;
        adapter.ia.handoff(cr, conn_qual, Some(user_of(uid)))
    }
}
