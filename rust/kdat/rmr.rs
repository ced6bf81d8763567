// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Remote Memory Regions.

use crate::{
    adapter::Handle,
    bindings,
    dto::Remote,
    ep::Ep,
    error::{
        to_result,
        Error,
        Result, //
    },
    memory::Region,
    pz::Pz,
    shared::{
        Access,
        Shared, //
    },
};
use kernel::sync::Arc;

/// Remote Memory Region (RMR): a part of a [`Shared`] that is open to peers while it is bound.
pub struct Rmr {
    handle: Handle,
    _pz: Pz,
    /// Memory of the last bind, which is freed after the RMR.
    bound: Option<Arc<Region>>,
}

impl Rmr {
    pub(crate) fn new(pz: &Pz) -> Result<Self> {
        let zone = pz.0.handle.raw();
        // SAFETY: `rmr` is valid for writes.
        let handle = Handle::made(|rmr| unsafe { bindings::dat_rmr_create(zone, rmr) })?;
        Ok(Self {
            handle,
            _pz: pz.clone(),
            bound: None,
        })
    }

    /// Opens `length` bytes of memory to the peer, by a request on the queue of a connected
    /// Endpoint: `dat_rmr_bind`. Returns the memory as the peer has to name it, which a later send
    /// on the same Endpoint may carry. An [`Event::Bind`](crate::Event::Bind) returns `context`.
    pub fn bind(
        &mut self,
        memory: &Shared,
        (offset, length): (usize, u32),
        access: Access,
        ep: &Ep,
        context: u64,
    ) -> Result<Remote> {
        memory.check(offset, length as usize)?;
        if length == 0 || access == Access::Bind {
            return Err(Error::new(bindings::DAT_LENGTH_ERROR, 0));
        }
        let local = bindings::DAT_LMR_TRIPLET {
            virtual_address: memory.0.at(offset).addr().get() as u64,
            segment_length: length,
            lmr_context: memory.0.lmr_context,
        };
        let rmr_context = self.post(memory.0.lmr, &local, access.privileges(), ep, context)?;
        // Without a context the request is flushed, and the RMR stays bound as it was.
        if rmr_context != 0 {
            self.bound = Some(memory.0.clone());
        }
        Ok(Remote {
            address: local.virtual_address,
            length,
            context: rmr_context,
        })
    }

    /// Ends the bind, by a request on the queue of a connected Endpoint.
    pub fn unbind(&mut self, ep: &Ep, context: u64) -> Result {
        let nothing = bindings::DAT_LMR_TRIPLET::default();
        self.post(Handle::NULL, &nothing, 0, ep, context).map(drop)
    }

    /// Lets go of the memory of a bind that an unbind has ended.
    pub fn forget_memory(&mut self) {
        self.bound = None;
    }

    fn post(
        &self,
        lmr: Handle,
        local: &bindings::DAT_LMR_TRIPLET,
        privileges: u32,
        ep: &Ep,
        context: u64,
    ) -> Result<u32> {
        let mut rmr_context = 0;
        // SAFETY: `local` is valid for reads, and `rmr_context` for writes. There are no references
        // to the memory, and it is freed after the LMR, which the bind holds.
        to_result(unsafe {
            bindings::dat_rmr_bind(
                self.handle.raw(),
                lmr.raw(),
                core::ptr::from_ref(local),
                privileges,
                bindings::DAT_VA_TYPE_VA,
                ep.handle().raw(),
                bindings::DAT_RMR_COOKIE { as_64: context },
                bindings::DAT_COMPLETION_DEFAULT_FLAG,
                &raw mut rmr_context,
            )
        })?;
        Ok(rmr_context)
    }
}

impl Drop for Rmr {
    fn drop(&mut self) {
        // SAFETY: The call has no pointers.
        unsafe { bindings::dat_rmr_free(self.handle.raw()) };
    }
}
