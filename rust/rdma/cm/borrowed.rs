// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! CM IDs borrowed from their owner, while the handler mutex is held.

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
    device::Device,
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

/// Time limit for resolving a route, in milliseconds.
const ROUTE_TIMEOUT_MS: usize = 4_000;

/// Reason for rejecting a request on behalf of the transport.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Resources for the connection are short.
    NoResources,
    /// No consumer listens for the requested service.
    NoListener,
}

impl Refusal {
    fn reason(self) -> u32 {
        match self {
            Self::NoResources => bindings::ib_cm_rej_reason_IB_CM_REJ_NO_RESOURCES,
            Self::NoListener => bindings::ib_cm_rej_reason_IB_CM_REJ_INVALID_SERVICE_ID,
        }
    }
}

/// A CM ID whose handler mutex is held.
///
/// It stays in the thread that holds the mutex:
///
/// ```compile_fail,E0277
/// # use crate::rdma::cm::IdRef;
/// fn elsewhere(id: &'static IdRef<'static>) {
///     fn run(_action: impl FnOnce() + Send) {}
///     run(move || id.disconnect());
/// }
/// ```
///
/// It does not outlive the guard:
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
    /// Borrows an ID.
    ///
    /// # Safety
    ///
    /// `raw` is a live ID, and its handler mutex is held, both for the lifetime of the returned
    /// value.
    pub(super) unsafe fn new(raw: NonNull<bindings::rdma_cm_id>) -> Self {
        Self {
            raw,
            _lifetime: PhantomData,
            _not_send: NotThreadSafe,
        }
    }

    /// Returns the raw ID.
    pub(super) fn raw(&self) -> NonNull<bindings::rdma_cm_id> {
        self.raw
    }

    /// Returns whether it borrows this ID.
    pub(super) fn is_of(&self, raw: NonNull<bindings::rdma_cm_id>) -> bool {
        self.raw == raw
    }

    /// Returns whether the ID is bound to this device.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        // SAFETY: The caller of `new` guarantees that the ID is alive.
        unsafe { (*self.raw.as_ptr()).device == device.as_ptr() }
    }

    /// Starts to resolve the route.
    pub(crate) fn resolve_route(&self) -> Result {
        // SAFETY: The ID is alive.
        let ret = unsafe { bindings::rdma_resolve_route(self.raw.as_ptr(), ROUTE_TIMEOUT_MS) };
        kernel::error::to_result(ret)
    }

    /// Sends the request to connect this queue pair.
    ///
    /// Over iWARP it may block until TCP has established the connection: see [`CmId::call_out`].
    ///
    /// # Errors
    ///
    /// `EAGAIN` over iWARP if too many connects and accepts of this user have no outcome yet; any
    /// error of `rdma_cm`.
    pub(crate) fn connect<H: qp::Handler, C: cq::Handler>(
        &self,
        qp: &Arc<Qp<H, C>>,
        param: &ConnParam<'_>,
    ) -> Result {
        self.with_qp(qp, param, |id, raw| {
            // SAFETY: The ID is alive and its handler mutex held. The call copies the parameters.
            unsafe { bindings::rdma_connect_locked(id, raw) }
        })
    }

    /// Accepts a request with this queue pair. On failure the request is rejected.
    ///
    /// # Errors
    ///
    /// As for [`IdRef::connect`].
    pub(crate) fn accept<H: qp::Handler, C: cq::Handler>(
        &self,
        qp: &Arc<Qp<H, C>>,
        param: &ConnParam<'_>,
    ) -> Result {
        self.context().accepts();
        self.with_qp(qp, param, |id, raw| {
            // SAFETY: As for `connect`.
            unsafe { bindings::rdma_accept(id, raw) }
        })
    }

    /// Makes a call that passes the number of a queue pair to `rdma_cm`.
    ///
    /// Over iWARP `iw_cm` and the driver look up the queue pair by that number, and `iw_cm` holds a
    /// reference to it. The destruction of the queue pair waits until that reference is dropped. So
    /// the CM ID keeps the queue pair until the ID itself is destroyed.
    ///
    /// The state of the queue pair must not change during the call: when a queue pair fails,
    /// drivers free the data of its connection, also in the middle of these calls. With some
    /// drivers it must not change before the outcome, either: see [`Qp::fail`].
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
            let mut state = qp.hold_state();
            let begun = if is_iwarp { state.begin_call() } else { Ok(()) };
            begun.and_then(|()| kernel::error::to_result(call(self.raw.as_ptr(), &raw mut raw)))
        };
        if is_iwarp && result.is_err() {
            // The driver will report no outcome. No handler runs concurrently: the handler mutex is
            // held.
            context.call().end();
        }
        result
    }

    /// Returns whether the ID is bound to an iWARP device.
    pub(super) fn is_iwarp(&self) -> bool {
        // SAFETY: The ID is alive. Its device does not change once it is bound, and the ID keeps
        // the device.
        unsafe {
            let (device, port) = ((*self.raw.as_ptr()).device, (*self.raw.as_ptr()).port_num);
            !device.is_null()
                && bindings::kdapl_helper_device_transport(device, port)
                    == bindings::KDAPL_TRANSPORT_IWARP
        }
    }

    /// Confirms the peer's accept. The queue pair must be able to send by now.
    pub(crate) fn confirm(&self) -> Result {
        // SAFETY: As for `connect`. This step has no parameters.
        let ret = unsafe { bindings::rdma_accept(self.raw.as_ptr(), core::ptr::null_mut()) };
        // On failure `rdma_cm` has rejected the connection.
        kernel::error::to_result(ret).inspect_err(|_| self.context().end())
    }

    pub(super) fn context(&self) -> ArcBorrow<'_, Context> {
        // SAFETY: The ID is alive, and its context is a `Context` of this module.
        unsafe { Context::of(self.raw) }
    }

    /// Rejects the peer's request on behalf of the transport, for lack of resources.
    pub(crate) fn refuse(&self) {
        self.refuse_as(Refusal::NoResources);
    }

    /// Rejects the peer's request for this reason. iWARP does not transmit the reason.
    pub(crate) fn refuse_as(&self, why: Refusal) {
        // SAFETY: The ID is alive. If the call fails, the request of the peer times out.
        let _ = unsafe { reject(self.raw, &[], why.reason()) };
    }

    /// Disconnects, as [`CmId::disconnect`] does.
    pub(crate) fn disconnect(&self) {
        // SAFETY: The ID is alive, and its context is a `Context` of this module.
        unsafe { disconnect(self.raw) };
    }

    /// Returns the local and the remote address.
    pub(crate) fn addresses(&self) -> (SockAddr, SockAddr) {
        // SAFETY: The ID is alive, and its addresses are always initialised.
        unsafe { addresses(self.raw) }
    }

    /// Fills in the attributes that a queue pair needs for the state in `attr`. Returns their mask.
    pub(in crate::rdma) fn init_qp_attr(&self, attr: &mut bindings::ib_qp_attr) -> Result<u32> {
        let mut mask = 0;
        // SAFETY: The ID is alive. `attr` and `mask` are exclusive references.
        let ret = unsafe { bindings::rdma_init_qp_attr(self.raw.as_ptr(), attr, &raw mut mask) };
        kernel::error::to_result(ret)?;
        Ok(mask as u32)
    }
}

/// Guard of the handler mutex of an ID, outside the handler.
pub(crate) struct LockedId<'a>(IdRef<'a>);

impl LockedId<'_> {
    /// Takes the mutex.
    ///
    /// # Safety
    ///
    /// `raw` is a live ID for the lifetime of the returned value.
    pub(super) unsafe fn new(raw: NonNull<bindings::rdma_cm_id>) -> Self {
        // SAFETY: The caller guarantees that the ID is alive. The mutex is taken here and held
        // until the drop.
        unsafe {
            bindings::rdma_lock_handler(raw.as_ptr());
            Self(IdRef::new(raw))
        }
    }
}

impl<'a> core::ops::Deref for LockedId<'a> {
    type Target = IdRef<'a>;

    fn deref(&self) -> &IdRef<'a> {
        &self.0
    }
}

impl Drop for LockedId<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` took the mutex.
        unsafe { bindings::rdma_unlock_handler(self.0.raw.as_ptr()) };
    }
}
