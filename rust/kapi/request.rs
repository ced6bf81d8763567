// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Connection Requests (CRs).

use super::{
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
        ep::Ep,
        passive::Cr,
        prelude::*, //
    },
    model::handle::{
        HandleKind,
        KernelHandle, //
    },
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// Copies the private data of an accept or a reject, up to `limit` bytes.
fn data_of(size: i32, data: &Data, limit: u32) -> DatResult<PrivateData> {
    let size = u32::try_from(size).map_err(|_| DatError::Invalid(Arg::PrivateDataSize))?;
    let mut copy = PrivateData::with_len(size, limit)?;
    // SAFETY: The header obliges the caller to pass `size` bytes, which is the length of `copy`.
    unsafe { data.read(copy.bytes_mut()) }?;
    Ok(copy)
}

/// Returns the private data that the peer of a CR or an Endpoint (EP) sent.
///
/// # Errors
///
/// INVALID_HANDLE (1) for a handle of neither.
fn peer_data(handle: KernelHandle) -> DatResult<PrivateData> {
    let invalid = DatError::new(Kind::InvalidHandle, Subtype::InvalidHandle1);
    match handle.kind() {
        Some(HandleKind::Cr) => {
            let cr = Adapter::object::<Cr>(handle).map_err(|_| invalid)?;
            Ok(cr.query().private_data)
        }
        Some(HandleKind::Ep) => {
            let ep = Adapter::object::<Ep>(handle).map_err(|_| invalid)?;
            Ok(ep.peer_data())
        }
        _ => Err(invalid),
    }
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
        let (adapter, cr) = Adapter::of_object::<Cr>(cr)?;
        let (_, limit, _) = adapter.ia.attr().max_private_data;
        let data = data_of(private_data_size, &private_data, limit)?;
        adapter.ia.accept(cr, adapter.inner(ep), &data)
    }

    /// `dat_cr_reject`.
    fn dat_cr_reject(cr: KernelHandle, private_data_size: i32, private_data: Data) {
        let (adapter, cr) = Adapter::of_object::<Cr>(cr)?;
        let (_, _, limit) = adapter.ia.attr().max_private_data;
        let data = data_of(private_data_size, &private_data, limit)?;
        adapter.ia.reject(cr, &data)
    }

    /// `kdapl_query_private_data`.
    fn kdapl_query_private_data(
        handle: KernelHandle,
        private_data_size: i32,
        private_data: Out<c_void>,
        length: Out<i32>,
    ) {
        let size = usize::try_from(private_data_size)
            .map_err(|_| DatError::Invalid(Arg::PrivateDataSize))?;
        let data = peer_data(handle)?;
        // SAFETY: The header obliges the caller to pass `private_data_size` bytes.
        unsafe { private_data.fill(data.bytes(), size) }?;
        length.put(count(data.size()));
        Ok(())
    }

    /// `dat_cr_handoff`.
    fn dat_cr_handoff(cr: KernelHandle, conn_qual: u64) {
        let (adapter, cr) = Adapter::of_object::<Cr>(cr)?;
        adapter.ia.handoff(cr, conn_qual)
    }
}
