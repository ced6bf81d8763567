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
use crate::{
    rdma::{
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
    },
    sys::user::UserId, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    alloc::Flags,
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

/// The id that `rdma_cm` made for a request, in the handler that is called for it.
///
/// Whoever answers consumes it, by [`NewId::refuse`] or [`NewId::finish`]: only so a [`Verdict`] comes
/// about, and it is that of this very request, since no other has its lifetime. So an id that somebody
/// has adopted is never destroyed by `rdma_cm` as well, and one that nobody has adopted never stays.
///
/// ```compile_fail
/// fn request(self: Arc<Self>, id: NewId<'_>, _: &[u8]) -> Verdict<'_> {
///     Verdict::Keep // Nobody has adopted it; and a verdict cannot be made here.
/// }
/// ```
pub(crate) struct NewId<'a> {
    id: IdRef<'a>,
    /// Whether there is a [`CmId`] for it.
    adopted: bool,
    _this_request: Brand<'a>,
}

/// Neither longer nor shorter: a lifetime that stands for one call.
type Brand<'a> = PhantomData<fn(&'a ()) -> &'a ()>;

/// What becomes of the id of a request after its handler has run.
pub(crate) struct Verdict<'a> {
    /// Whether `rdma_cm` destroys it: nobody owns it.
    destroy: bool,
    _this_request: Brand<'a>,
}

impl Verdict<'_> {
    /// As a handler returns it.
    pub(super) fn as_raw(&self) -> i32 {
        i32::from(self.destroy)
    }
}

impl<'a> NewId<'a> {
    /// # Safety
    ///
    /// `id` was made for a request whose handler runs, and nobody has taken it. The handler returns the
    /// [`Verdict`] that comes of it.
    pub(super) unsafe fn new(id: IdRef<'a>) -> Self {
        Self {
            id,
            adopted: false,
            _this_request: PhantomData,
        }
    }

    /// Takes the id, on behalf of a user. Nobody hears of its events until [`CmId::set_handler`] says
    /// who does: while a request waits the peer can only give up, which shows when it is answered.
    /// Memory for it is allocated with `flags`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; the id is still nobody's. `EBUSY` if it was taken before.
    pub(crate) fn adopt(
        &mut self,
        device: Arc<Device>,
        user: UserId,
        flags: Flags,
    ) -> Result<CmId> {
        if self.adopted {
            return Err(EBUSY);
        }
        // SAFETY: `new`'s caller vouches that the id is there to be taken, which has not happened yet,
        // and that its handler mutex is held. From now on the handler leaves it to the owner, unless it
        // is given back.
        let id = unsafe { CmId::adopt(self.id.raw, device, user, flags) }?;
        self.adopted = true;
        Ok(id)
    }

    /// Turns the request down that was adopted; the id is nobody's again. Any other id is only dropped.
    pub(crate) fn give_back(self, id: CmId, why: Refusal) -> Verdict<'a> {
        if !id.is(&self.id) {
            return self.finish();
        }
        self.id.refuse_as(why);
        // Nothing is done with the id behind that, for it has lost its context.
        id.disown();
        Verdict {
            destroy: true,
            _this_request: PhantomData,
        }
    }

    /// Turns the request down, unless somebody has adopted it.
    pub(crate) fn refuse(self, why: Refusal) -> Verdict<'a> {
        if !self.adopted {
            self.id.refuse_as(why);
        }
        self.finish()
    }

    /// Leaves the id to whoever has adopted it; otherwise `rdma_cm` destroys it.
    pub(crate) fn finish(self) -> Verdict<'a> {
        Verdict {
            destroy: !self.adopted,
            _this_request: PhantomData,
        }
    }

    /// Local and remote address.
    pub(crate) fn addresses(&self) -> (SockAddr, SockAddr) {
        self.id.addresses()
    }
}
