// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An id that somebody else owns, while its handler mutex is held.

use super::{
    callback::Context,
    id::{
        addresses,
        disconnect,
        reject, //
    },
    param::ConnParam, //
};
use crate::rdma::{
    addr::SockAddr,
    cq,
    device::{
        Device,
        PORT, //
    },
    qp::{
        self,
        Qp, //
    },
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
///
/// So it stays in the thread that holds the mutex:
///
/// ```compile_fail,E0277
/// # use crate::rdma::cm::IdRef;
/// fn elsewhere(id: &'static IdRef<'static>) {
///     fn run(_action: impl FnOnce() + Send) {}
///     run(move || id.disconnect());
/// }
/// ```
///
/// and does not outlive the guard:
///
/// ```compile_fail,E0597
/// # use crate::rdma::cm::CmId;
/// fn unlocked(id: &CmId) {
///     let borrowed = {
///         let locked = id.lock();
///         &*locked
///     };
///     borrowed.disconnect();
/// }
/// ```
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

    /// The id itself.
    pub(super) fn raw(&self) -> NonNull<bindings::rdma_cm_id> {
        self.raw
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

    /// Sends the request for a connection of this queue pair.
    ///
    /// Over iWARP it may block until TCP has a connection: see [`CmId::call_out`].
    ///
    /// # Errors
    ///
    /// `EAGAIN` over iWARP if too many requests and accepts of this user have no outcome yet; whatever
    /// `rdma_cm` says.
    pub(crate) fn connect<H: qp::Handler, C: cq::Handler>(
        &self,
        qp: &Arc<Qp<H, C>>,
        param: &ConnParam<'_>,
    ) -> Result {
        self.with_qp(qp, param, |id, raw| {
            // SAFETY: The id is alive and its handler mutex held; the call copies the parameters.
            unsafe { bindings::rdma_connect_locked(id, raw) }
        })
    }

    /// Accepts a request with this queue pair; on failure it is rejected.
    ///
    /// # Errors
    ///
    /// As for [`IdRef::connect`].
    pub(crate) fn accept<H: qp::Handler, C: cq::Handler>(
        &self,
        qp: &Arc<Qp<H, C>>,
        param: &ConnParam<'_>,
    ) -> Result {
        self.with_qp(qp, param, |id, raw| {
            // SAFETY: As for `connect`.
            unsafe { bindings::rdma_accept(id, raw) }
        })?;
        self.context().accepted();
        Ok(())
    }

    /// Makes a call that tells `rdma_cm` the number of a queue pair.
    ///
    /// Over iWARP `iw_cm` and the driver look it up by that number, and `iw_cm` uses it until it has
    /// dropped its own reference, for which the queue pair's destruction waits. So the id keeps the queue
    /// pair until it is destroyed itself. Nor is the queue pair moved to another state meanwhile:
    /// drivers drop what belongs to the connection when it fails, also in the middle of these calls.
    fn with_qp<H: qp::Handler, C: cq::Handler>(
        &self,
        qp: &Arc<Qp<H, C>>,
        param: &ConnParam<'_>,
        call: impl FnOnce(*mut bindings::rdma_cm_id, *mut bindings::rdma_conn_param) -> i32,
    ) -> Result {
        let mut raw = param.to_raw(qp.number())?;
        let context = self.context();
        let is_iwarp = self.is_iwarp();
        if is_iwarp {
            context.begin_call(qp.clone())?;
        }
        let result = {
            let _unmoved = qp.hold_state();
            kernel::error::to_result(call(self.raw.as_ptr(), &raw mut raw))
        };
        if is_iwarp && result.is_err() {
            // There will be no event. Handlers wait for the mutex that is held here.
            context.call().end();
        }
        result
    }

    /// Whether the id is on an iWARP device.
    pub(super) fn is_iwarp(&self) -> bool {
        // SAFETY: The id is alive. Once it is bound its device does not change, and is kept by it.
        unsafe {
            let device = (*self.raw.as_ptr()).device;
            !device.is_null()
                && bindings::kdapl_helper_device_transport(device, PORT)
                    == bindings::KDAPL_TRANSPORT_IWARP
        }
    }

    /// Confirms the peer's accept, when the queue pair is ready.
    pub(crate) fn confirm(&self) -> Result {
        // SAFETY: As for `connect`; there are no parameters to this step.
        let ret = unsafe { bindings::rdma_accept(self.raw.as_ptr(), core::ptr::null_mut()) };
        // It is rejected then.
        kernel::error::to_result(ret).inspect_err(|_| self.context().end())
    }

    pub(super) fn context(&self) -> ArcBorrow<'_, Context> {
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
