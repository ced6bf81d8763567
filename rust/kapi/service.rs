// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Public, Reserved and Common Service Points (PSPs, RSPs, CSPs).

use super::{
    export::{
        export,
        raw_handle,
        Address,
        In,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        passive::{
            Communicator,
            Csp,
            EpSupplier,
            Psp,
            PspProperties,
            Rsp, //
        },
        prelude::*, //
    },
    model::handle::KernelHandle, //
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// Flag of a PSP that takes requests that processes hand off.
const HANDOFF: u32 = bindings::KDAPL_PSP_HANDOFF_FLAG;

/// Creates a PSP, stores its handle in `psp` and returns its Connection Qualifier.
fn create_psp(
    adapter: &Adapter,
    conn_qual: u64,
    evd: KernelHandle,
    flags: u32,
    psp: &Out<*mut c_void>,
) -> DatResult<u64> {
    let properties = PspProperties {
        supplier: EpSupplier::from_bits(flags & !HANDOFF)?,
        // The default backlog.
        backlog: 0,
        takes_handoffs: flags & HANDOFF != 0,
    };
    let evd = adapter.inner(evd);
    let (handle, conn_qual) = adapter.ia.create_psp(conn_qual, evd, properties)?;
    psp.put(adapter.raw(handle));
    Ok(conn_qual)
}

export! {
    /// `dat_psp_create`.
    fn dat_psp_create(
        ia: KernelHandle,
        conn_qual: u64,
        evd: KernelHandle,
        flags: u32,
        psp: Out<*mut c_void>,
    ) {
        psp.needed(Arg::Handle)?;
        if conn_qual == 0 {
            return Err(DatError::Invalid(Arg::ConnQual));
        }
        create_psp(&Adapter::of(ia)?, conn_qual, evd, flags, &psp).map(drop)
    }

    /// `dat_psp_create_any`.
    fn dat_psp_create_any(
        ia: KernelHandle,
        conn_qual: Out<u64>,
        evd: KernelHandle,
        flags: u32,
        psp: Out<*mut c_void>,
    ) {
        conn_qual.needed(Arg::ConnQual)?;
        psp.needed(Arg::Handle)?;
        conn_qual.put(create_psp(&Adapter::of(ia)?, 0, evd, flags, &psp)?);
        Ok(())
    }

    /// `dat_psp_query`.
    fn dat_psp_query(psp: KernelHandle, _mask: u64, result: Out<bindings::DAT_PSP_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, psp) = Adapter::find::<Psp>(psp)?;
        let param = psp.query();
        result.put(bindings::DAT_PSP_PARAM {
            ia_handle: raw_handle(adapter.handle()),
            conn_qual: param.conn_qual,
            evd_handle: adapter.raw(param.evd),
            psp_flags: param.properties.supplier.bits()
                | if param.properties.takes_handoffs { HANDOFF } else { 0 },
        });
        Ok(())
    }

    /// `dat_psp_free`.
    fn dat_psp_free(psp: KernelHandle) {
        let (adapter, psp) = Adapter::of_object::<Psp>(psp)?;
        adapter.ia.free::<Psp>(psp)
    }

    /// `dat_rsp_create`.
    fn dat_rsp_create(
        ia: KernelHandle,
        conn_qual: u64,
        ep: KernelHandle,
        evd: KernelHandle,
        rsp: Out<*mut c_void>,
    ) {
        rsp.needed(Arg::Handle)?;
        let adapter = Adapter::of(ia)?;
        let (ep, evd) = (adapter.inner(ep), adapter.inner(evd));
        rsp.put(adapter.raw(adapter.ia.create_rsp(conn_qual, ep, evd)?));
        Ok(())
    }

    /// `dat_rsp_query`.
    fn dat_rsp_query(rsp: KernelHandle, _mask: u64, result: Out<bindings::DAT_RSP_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, rsp) = Adapter::find::<Rsp>(rsp)?;
        let param = rsp.query();
        result.put(bindings::DAT_RSP_PARAM {
            ia_handle: raw_handle(adapter.handle()),
            conn_qual: param.conn_qual,
            evd_handle: adapter.raw(param.evd),
            ep_handle: adapter.raw(param.ep),
        });
        Ok(())
    }

    /// `dat_rsp_free`.
    fn dat_rsp_free(rsp: KernelHandle) {
        let (adapter, rsp) = Adapter::of_object::<Rsp>(rsp)?;
        adapter.ia.free::<Rsp>(rsp)
    }

    /// `dat_csp_create`.
    fn dat_csp_create(
        ia: KernelHandle,
        communicator: In<bindings::DAT_COMM>,
        address: Address,
        evd: KernelHandle,
        csp: Out<*mut c_void>,
    ) {
        csp.needed(Arg::Handle)?;
        let adapter = Adapter::of(ia)?;
        let raw = communicator.get().ok_or(DatError::Invalid(Arg::Communicator))?;
        let communicator = Communicator {
            domain: raw.domain,
            kind: raw.type_,
            protocol: raw.protocol,
        };
        let address = address.get().ok_or(DatError::malformed_address())?;
        let evd = adapter.inner(evd);
        let (handle, _) = adapter.ia.create_csp(&communicator, address, evd)?;
        csp.put(adapter.raw(handle));
        Ok(())
    }

    /// `dat_csp_query`.
    fn dat_csp_query(csp: KernelHandle, _mask: u64, result: Out<bindings::DAT_CSP_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, csp) = Adapter::find::<Csp>(csp)?;
        let param = csp.query();
        result.put(bindings::DAT_CSP_PARAM {
            ia_handle: raw_handle(adapter.handle()),
            comm: bindings::DAT_COMM {
                domain: param.communicator.domain,
                type_: param.communicator.kind,
                protocol: param.communicator.protocol,
            },
            address: param.address.to_storage(),
            evd_handle: adapter.raw(param.evd),
        });
        Ok(())
    }

    /// `dat_csp_free`.
    fn dat_csp_free(csp: KernelHandle) {
        let (adapter, csp) = Adapter::of_object::<Csp>(csp)?;
        adapter.ia.free::<Csp>(csp)
    }
}
