// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An id that somebody else owns, while its handler mutex is held.

use super::{
    callback::Context,
    id::{
        addresses,
        disconnect,
        reject,
        CmId, //
    },
    param::ConnParam, //
};
use crate::rdma::{
    addr::SockAddr,
    device::Device, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::NotThreadSafe, //
};

/// Milliseconds that resolving a route may take.
const RESOLVE_MS: usize = 4_000;

/// Why a request is turned down in the name of the transport.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no room for it.
    NoResources,
    /// Nobody listens for it.
    NobodyListens,
}

impl Refusal {
    fn reason(self) -> u32 {
        match self {
            Self::NoResources => bindings::ib_cm_rej_reason_IB_CM_REJ_NO_RESOURCES,
            Self::NobodyListens => bindings::ib_cm_rej_reason_IB_CM_REJ_INVALID_SERVICE_ID,
        }
    }
}

/// An id whose handler mutex is held.
pub(crate) struct IdRef<'a> {
    raw: NonNull<bindings::rdma_cm_id>,
    _lifetime: PhantomData<&'a bindings::rdma_cm_id>,
    _not_send: NotThreadSafe,
}

impl IdRef<'_> {
    /// # Safety
    ///
    /// `raw` is a live id, and its handler mutex is held, both for the lifetime.
    pub(super) unsafe fn new(raw: NonNull<bindings::rdma_cm_id>) -> Self {
        Self {
            raw,
            _lifetime: PhantomData,
            _not_send: NotThreadSafe,
        }
    }

    /// Whether it borrows this id.
    pub(super) fn is_of(&self, raw: NonNull<bindings::rdma_cm_id>) -> bool {
        self.raw == raw
    }

    /// Whether the id was bound to this device.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        // SAFETY: The id is alive.
        unsafe { (*self.raw.as_ptr()).device == device.as_ptr() }
    }

    /// Starts to resolve the route.
    pub(crate) fn resolve_route(&self) -> Result {
        // SAFETY: The id is alive.
        let ret = unsafe { bindings::rdma_resolve_route(self.raw.as_ptr(), RESOLVE_MS) };
        kernel::error::to_result(ret)
    }

    /// Sends the request.
    pub(crate) fn connect(&self, param: &ConnParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: The id is alive and its handler mutex held; the call copies the parameters.
        let ret = unsafe { bindings::rdma_connect_locked(self.raw.as_ptr(), &raw mut raw) };
        kernel::error::to_result(ret)
    }

    /// Accepts a request; on failure it is rejected.
    pub(crate) fn accept(&self, param: &ConnParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: As for `connect`.
        let ret = unsafe { bindings::rdma_accept(self.raw.as_ptr(), &raw mut raw) };
        kernel::error::to_result(ret)?;
        self.context().accepted();
        Ok(())
    }

    /// Confirms the peer's accept, when the queue pair is ready.
    pub(crate) fn confirm(&self) -> Result {
        // SAFETY: As for `connect`; there are no parameters to this step.
        let ret = unsafe { bindings::rdma_accept(self.raw.as_ptr(), core::ptr::null_mut()) };
        // It is rejected then.
        kernel::error::to_result(ret).inspect_err(|_| self.context().end())
    }

    fn context(&self) -> ArcBorrow<'_, Context> {
        // SAFETY: The id is alive, and one of ours.
        unsafe { Context::of(self.raw) }
    }

    /// Turns the peer down in the name of the transport.
    pub(crate) fn refuse(&self) {
        self.refuse_as(Refusal::NoResources);
    }

    /// As [`IdRef::refuse`], and says why. iWARP has no reasons.
    pub(crate) fn refuse_as(&self, why: Refusal) {
        // SAFETY: The id is alive. If that fails, the peer's own time-out tells it.
        let _ = unsafe { reject(self.raw, &[], why.reason()) };
    }

    /// As [`CmId::disconnect`].
    pub(crate) fn disconnect(&self) {
        // SAFETY: The id is alive, and one of ours.
        unsafe { disconnect(self.raw) };
    }

    /// Local and remote address.
    pub(crate) fn addresses(&self) -> (SockAddr, SockAddr) {
        // SAFETY: The id is alive, and its addresses are always initialised.
        unsafe { addresses(self.raw) }
    }

    /// Fills in what a queue pair needs for the state in `attr`, and says which attributes.
    pub(in crate::rdma) fn init_qp_attr(&self, attr: &mut bindings::ib_qp_attr) -> Result<u32> {
        let mut mask = 0;
        // SAFETY: The id is alive, `attr` and `mask` are ours.
        let ret = unsafe { bindings::rdma_init_qp_attr(self.raw.as_ptr(), attr, &raw mut mask) };
        kernel::error::to_result(ret)?;
        Ok(mask as u32)
    }
}

/// The handler mutex of an id, held outside its handler.
pub(crate) struct Locked<'a>(IdRef<'a>);

impl Locked<'_> {
    /// Takes the mutex.
    ///
    /// # Safety
    ///
    /// `raw` is a live id for the lifetime.
    pub(super) unsafe fn new(raw: NonNull<bindings::rdma_cm_id>) -> Self {
        // SAFETY: The caller vouches for the id; once the mutex is taken it is held until the drop.
        unsafe {
            bindings::rdma_lock_handler(raw.as_ptr());
            Self(IdRef::new(raw))
        }
    }
}

impl<'a> core::ops::Deref for Locked<'a> {
    type Target = IdRef<'a>;

    fn deref(&self) -> &IdRef<'a> {
        &self.0
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` took it.
        unsafe { bindings::rdma_unlock_handler(self.0.raw.as_ptr()) };
    }
}

/// The id that `rdma_cm` made for a request; nobody owns it yet.
pub(crate) struct NewId<'a> {
    id: IdRef<'a>,
}

impl<'a> NewId<'a> {
    /// # Safety
    ///
    /// `id` was made for a request whose handler runs, and nobody has taken it.
    pub(super) unsafe fn new(id: IdRef<'a>) -> Self {
        Self { id }
    }

    /// Takes the id. Nobody hears of its events until [`CmId::set_handler`] says who does: while a
    /// request waits the peer can only give up, which shows when it is answered.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; the id is still nobody's.
    pub(crate) fn adopt(&self, device: Arc<Device>) -> Result<CmId> {
        // SAFETY: `new`'s caller vouches that the id is there to be taken, and that its handler
        // mutex is held; by returning `Verdict::Keep` the handler leaves it to the owner.
        unsafe { CmId::adopt(self.id.raw, device) }
    }

    /// Turns the request down.
    pub(crate) fn refuse(&self, why: Refusal) {
        self.id.refuse_as(why);
    }

    /// Local and remote address.
    pub(crate) fn addresses(&self) -> (SockAddr, SockAddr) {
        self.id.addresses()
    }
}
