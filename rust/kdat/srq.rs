// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Shared Receive Queues.

use crate::{
    adapter::Handle,
    bindings,
    error::{
        to_result,
        Result, //
    },
    ia::count,
    memory::Buffer,
    post::{
        post_to_srq,
        Refused, //
    },
    pz::Pz,
    reserved::Reserved, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Queue that is freed after its Endpoints.
struct Queue {
    handle: Handle,
    pz: Pz,
    reserved: Reserved,
}

/// Shared Receive Queue (SRQ): receives that any of several Endpoints takes. Clones are the same
/// queue.
#[derive(Clone)]
pub struct Srq(Arc<Queue>);

impl Srq {
    pub(crate) fn new(pz: &Pz, receives: u32, segments: u32) -> Result<Self> {
        let attr = bindings::DAT_SRQ_ATTR {
            max_recv_dtos: count(receives),
            max_recv_iov: count(segments),
            low_watermark: bindings::DAT_SRQ_LW_DEFAULT as i32,
        };
        let (ia, zone) = (pz.0.adapter.ia.raw(), pz.0.handle.raw());
        // SAFETY: `attr` is valid for reads, and `srq` for writes.
        let handle = Handle::made(|srq| unsafe {
            bindings::dat_srq_create(ia, zone, &raw const attr, srq)
        })?;
        let queue = Queue {
            handle,
            pz: pz.clone(),
            reserved: Reserved::none(),
        };
        let srq = Self(Arc::new(queue, GFP_KERNEL)?);
        srq.replace_lost()?;
        Ok(srq)
    }

    /// Reserves slots for all receives that may be outstanding, beside those of receives that the
    /// queue has lost. These have no event: they keep their buffers until the queue is freed.
    /// Called after the end of a connection, which may lose receives.
    pub(crate) fn replace_lost(&self) -> Result {
        let adapter = &self.0.pz.0.adapter;
        // In this order: a receive that is posted meanwhile adds a slot, and does not hide a loss.
        let param = self.query()?;
        let posted = adapter.posted_of(self.0.handle);
        let count = |count| usize::try_from(count).unwrap_or(0);
        let lost = posted.saturating_sub(count(param.outstanding_dto_count));
        let number = count(param.max_recv_dtos).saturating_add(lost);
        self.0.reserved.raise_to(adapter, number)
    }

    fn query(&self) -> Result<bindings::DAT_SRQ_PARAM> {
        let mut param = bindings::DAT_SRQ_PARAM::default();
        // SAFETY: `param` is valid for writes.
        let ret = unsafe { bindings::dat_srq_query(self.0.handle.raw(), 0, &raw mut param) };
        to_result(ret)?;
        Ok(param)
    }

    pub(crate) fn handle(&self) -> Handle {
        self.0.handle
    }

    /// Returns the number of receives that are posted: `dat_srq_query`.
    pub fn outstanding(&self) -> Result<u32> {
        let param = self.query()?;
        Ok(u32::try_from(param.outstanding_dto_count).unwrap_or(0))
    }

    /// Posts a receive: `dat_srq_post_recv`. The event of the Endpoint that takes it returns the
    /// buffer and `context`. Context: any.
    pub fn post(&self, buffer: Buffer, context: u64) -> Result<(), Refused> {
        post_to_srq(&self.0.pz.0.adapter, self.0.handle, buffer, context)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: The call has no pointers.
        let freed = unsafe { bindings::dat_srq_free(self.handle.raw()) };
        if freed == bindings::DAT_SUCCESS {
            self.pz.0.adapter.drop_posted(self.handle);
            self.reserved.release(&self.pz.0.adapter);
        }
    }
}
