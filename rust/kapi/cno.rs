// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Consumer Notification Objects (CNOs).

use super::{
    export::{
        export,
        raw_handle,
        Out, //
    },
    registry::Adapter,
    upcall::agent, //
};
use crate::{
    dat::{
        cno::Cno,
        evd::deadline,
        prelude::*, //
    },
    model::handle::KernelHandle, //
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

export! {
    /// `dat_cno_create`.
    fn dat_cno_create(
        ia: KernelHandle,
        proxy: bindings::DAT_OS_WAIT_PROXY_AGENT,
        cno: Out<*mut c_void>,
    ) {
        cno.needed(Arg::Handle)?;
        let adapter = Adapter::of(ia)?;
        cno.put(adapter.raw(adapter.ia.create_cno(agent(&adapter, proxy)?)?));
        Ok(())
    }

    /// `dat_cno_modify_agent`.
    fn dat_cno_modify_agent(cno: KernelHandle, proxy: bindings::DAT_OS_WAIT_PROXY_AGENT) {
        let (adapter, cno) = Adapter::find::<Cno>(cno)?;
        cno.modify_agent(agent(&adapter, proxy)?);
        Ok(())
    }

    /// `dat_cno_query`.
    fn dat_cno_query(cno: KernelHandle, _mask: u64, result: Out<bindings::DAT_CNO_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, cno) = Adapter::find::<Cno>(cno)?;
        result.put(bindings::DAT_CNO_PARAM {
            ia_handle: raw_handle(adapter.handle()),
            proxy_type: if cno.query().has_agent {
                bindings::DAT_PROXY_TYPE_AGENT
            } else {
                bindings::DAT_PROXY_TYPE_NONE
            },
        });
        Ok(())
    }

    /// `dat_cno_wait`.
    fn dat_cno_wait(cno: KernelHandle, timeout: u32, evd: Out<*mut c_void>) {
        // The time-out counts from the entry of the call.
        let deadline = deadline(timeout);
        evd.needed(Arg::Evd)?;
        evd.put_handle(KernelHandle::NULL);
        let (waited, _waiting) = Adapter::waited::<Cno>(cno)?;
        let triggered = waited.wait(deadline)?;
        evd.put(Adapter::raw_of(cno.adapter(), triggered));
        Ok(())
    }

    /// `dat_cno_trigger`.
    fn dat_cno_trigger(cno: KernelHandle) {
        let cno = Adapter::object::<Cno>(cno)?;
        cno.trigger_by_consumer();
        Ok(())
    }

    /// `dat_cno_free`.
    fn dat_cno_free(cno: KernelHandle) {
        let (adapter, cno) = Adapter::of_object::<Cno>(cno)?;
        adapter.ia.free::<Cno>(cno)
    }
}
