// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An id of one's own.

use super::{
    borrowed::{
        IdRef,
        Locked, //
    },
    call::Call,
    callback::{
        self,
        Context, //
    },
    Handler,
    Lingering, //
};
use crate::{
    rdma::{
        addr::SockAddr,
        device::{
            Device,
            Transport, //
        },
    },
    sys::{
        net::NetRef,
        thread::{
            run_as,
            Party, //
        },
        user::UserId, //
    },
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

/// Milliseconds that resolving an address may take.
const RESOLVE_MS: usize = 4_000;

/// Encoded delay of a receiver-not-ready answer: 0.64 ms, where 0 would be 655 ms.
const MIN_RNR_TIMER: u8 = 12;

/// Whether an error is one of those that the kernel crate has no name for.
pub(super) fn is(error: Error, errno: u32) -> bool {
    i32::try_from(errno).is_ok_and(|errno| error.to_errno() == -errno)
}

/// Whether a connect failed because no way leads to the address, or nobody is there. Over iWARP it is
/// the connect itself that finds out.
pub(crate) fn is_unreachable(error: Error) -> bool {
    [
        bindings::ENETUNREACH,
        bindings::EHOSTUNREACH,
        bindings::ETIMEDOUT,
    ]
    .into_iter()
    .any(|errno| is(error, errno))
}

/// An id that is destroyed when this is dropped. Never in a handler of the id.
///
/// # Invariants
///
/// `raw` is a live id, ours to destroy; its context is `context`, its handler [`callback::handler`].
pub(super) struct Owned {
    pub(super) raw: NonNull<bindings::rdma_cm_id>,
    // Dropped after `raw` is destroyed: handlers borrow it.
    pub(super) context: Arc<Context>,
}

// SAFETY: `rdma_cm` allows the use of an id from any thread.
unsafe impl Send for Owned {}
// SAFETY: As above.
unsafe impl Sync for Owned {}

impl Owned {
    /// Has somebody else hear of events from now on; returns who did.
    pub(super) fn hand_over(&self, handler: Arc<dyn Handler>) -> Option<Arc<dyn Handler>> {
        // SAFETY: The id is alive as long as `self`.
        let _locked = unsafe { Locked::new(self.raw) };
        self.context.set(handler)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: By the invariant it is ours. This waits for a handler that runs; none does
        // afterwards.
        unsafe { bindings::rdma_destroy_id(self.raw.as_ptr()) };
        self.context.call().release();
    }
}

/// An id of one's own.
///
/// When it is dropped nobody hears of it any more. A peer that was asked to disconnect and has not
/// answered yet is asked again for a while, and over iWARP a connect or an accept is brought to its end:
/// see [`Lingering`](super::Lingering).
pub(crate) struct CmId {
    /// Taken in `drop` alone.
    pub(super) own: ManuallyDrop<Owned>,
    /// Holds up the removal of the device until the id is destroyed, or lingers there.
    pub(super) device: Arc<Device>,
}

impl CmId {
    /// Makes an id that is to connect, on behalf of a user. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EAGAIN` over iWARP if too many connects and accepts of the user have no outcome yet; `ENOMEM`.
    pub(crate) fn new(
        device: Arc<Device>,
        net: &NetRef,
        user: UserId,
        handler: Arc<dyn Handler>,
    ) -> Result<Self> {
        let this = Self::make(device, net, user)?;
        if this.device.transport() == Transport::Iwarp {
            let claim = Lingering::claim(this.own.context.lingering(), user)?;
            this.call().reserve(claim);
        }
        drop(this.own.context.set(handler));
        Ok(this)
    }

    /// Makes an id that is to listen, with nobody to hear of its events yet. Context: process; sleeps.
    pub(crate) fn unheard(device: Arc<Device>, net: &NetRef) -> Result<Self> {
        Self::make(device, net, UserId::current())
    }

    fn make(device: Arc<Device>, net: &NetRef, user: UserId) -> Result<Self> {
        let lingering = device.lingering().clone();
        let context = Context::new(None, user, lingering, GFP_KERNEL_ACCOUNT)?;
        // SAFETY: Namespace and context are alive; the context stays so until the id is destroyed.
        let raw = unsafe {
            bindings::__rdma_create_kernel_id(
                net.as_ptr(),
                Some(callback::handler),
                Context::as_raw(&context),
                bindings::rdma_ucm_port_space_RDMA_PS_TCP,
                bindings::ib_qp_type_IB_QPT_RC,
                c"kdapl".as_char_ptr(),
            )
        };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: Just made so.
        let own = ManuallyDrop::new(Owned { raw, context });
        Ok(Self { own, device })
    }

    /// Takes an id that `rdma_cm` made, with nobody to hear of its events yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; the id is not taken.
    ///
    /// # Safety
    ///
    /// `raw` is a live id that inherited [`callback::handler`], becomes the caller's to destroy, and
    /// its handler mutex is held.
    pub(super) unsafe fn adopt(
        raw: NonNull<bindings::rdma_cm_id>,
        device: Arc<Device>,
        user: UserId,
        flags: Flags,
    ) -> Result<Self> {
        let lingering = device.lingering().clone();
        let context = Context::new(Some(device.transport()), user, lingering, flags)?;
        // SAFETY: The caller vouches for the id; the mutex is held, so nobody looks at the context.
        unsafe {
            (*raw.as_ptr()).context = Context::as_raw(&context);
            bindings::rdma_set_min_rnr_timer(raw.as_ptr(), MIN_RNR_TIMER);
        }
        // INVARIANT: The caller vouches for id and handler, and the context was just set.
        let own = ManuallyDrop::new(Owned { raw, context });
        Ok(Self { own, device })
    }

    /// Whether this is the id that an event tells of.
    pub(crate) fn is(&self, id: &IdRef<'_>) -> bool {
        id.is_of(self.own.raw)
    }

    /// Waits for a handler that runs. Never in a handler of the same id.
    pub(crate) fn wait_for_handler(&self) {
        drop(self.lock());
    }

    /// Takes the handler mutex. Never in a handler of the same id.
    pub(crate) fn lock(&self) -> Locked<'_> {
        // SAFETY: The id is alive as long as `self`.
        unsafe { Locked::new(self.own.raw) }
    }

    /// Changes who hears of events from now on.
    pub(crate) fn set_handler(&self, _locked: &Locked<'_>, handler: Arc<dyn Handler>) {
        drop(self.own.context.set(handler));
    }

    /// Binds to a local address, and with it to a device.
    ///
    /// # Errors
    ///
    /// `ENODEV` if that is another device than ours (two can share a network device);
    /// whatever `rdma_cm` says.
    pub(super) fn bind(&self, local: SockAddr) -> Result {
        let mut storage = local.to_storage();
        // SAFETY: Id and address are valid.
        let ret =
            unsafe { bindings::rdma_bind_addr(self.own.raw.as_ptr(), (&raw mut storage).cast()) };
        kernel::error::to_result(ret)?;
        // SAFETY: The id is alive; once bound its device does not change.
        if unsafe { (*self.own.raw.as_ptr()).device } != self.device.as_ptr() {
            return Err(ENODEV);
        }
        Ok(())
    }

    /// Asks for a service of the network: a Differentiated Services field, from which the transport
    /// derives what it has. Before the route is resolved.
    pub(crate) fn set_service_type(&self, service_type: u8) {
        // SAFETY: The id is alive.
        unsafe { bindings::rdma_set_service_type(self.own.raw.as_ptr(), service_type.into()) };
    }

    /// Starts to resolve the peer's address.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also for a route that cannot be allocated; what `rdma_cm` says else.
    pub(crate) fn resolve_addr(&self, local: SockAddr, remote: SockAddr) -> Result {
        self.bind(local.with_port(0))?;
        let remote = remote.to_storage();
        // SAFETY: Id and address are valid; the call copies the address. It is bound already.
        let ret = unsafe {
            bindings::rdma_set_min_rnr_timer(self.own.raw.as_ptr(), MIN_RNR_TIMER);
            bindings::rdma_resolve_addr(
                self.own.raw.as_ptr(),
                core::ptr::null_mut(),
                (&raw const remote).cast(),
                RESOLVE_MS,
            )
        };
        kernel::error::to_result(ret).map_err(|error| match error {
            error if is(error, bindings::ENOBUFS) => ENOMEM,
            error => error,
        })
    }

    /// Asks the peer to disconnect, or answers that it asked. Nothing if there is no connection yet.
    pub(crate) fn disconnect(&self) {
        // SAFETY: The id is alive, and one of ours.
        unsafe { disconnect(self.own.raw) };
    }

    /// Turns a request down in the name of the consumer.
    pub(crate) fn reject(&self, private_data: &[u8]) -> Result {
        // SAFETY: Id and data are valid.
        unsafe {
            reject(
                self.own.raw,
                private_data,
                bindings::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED,
            )
        }
    }

    /// Gives the id back to `rdma_cm`, which is to destroy it. In its own handler, which still borrows
    /// the context of the listening id.
    pub(super) fn disown(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used any more, so each field is dropped once; `raw` is not
        // destroyed here but by `rdma_cm`, which delivers nothing to the context from now on.
        unsafe {
            core::ptr::drop_in_place(&raw mut this.own.context);
            core::ptr::drop_in_place(&raw mut this.device);
        }
    }

    /// Calls `action` with the handler mutex held, in a thread of its own and on behalf of a party, for
    /// calls that may block: over iWARP the driver makes a socket, and may wait for the peer. In the
    /// handlers of `rdma_cm` that would be the kernel's own socket, and all its users would wait.
    ///
    /// Not if [`CmId::give_up`] is quicker, which also ends the wait. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`run_as`].
    pub(crate) fn call_out(
        this: Arc<Self>,
        party: Party,
        action: impl FnOnce(&IdRef<'_>) + Send + 'static,
    ) -> Result {
        run_as(c"kdapl_connect", party, move |thread| {
            let locked = this.lock();
            if this.call().enter(thread) {
                action(&locked);
                this.call().leave();
            }
            drop(locked);
        })
    }

    /// Ends what [`CmId::call_out`] does, or prevents it. Does not wait. Context: process; sleeps.
    pub(crate) fn give_up(&self) {
        self.call().give_up();
    }

    fn call(&self) -> &Call {
        self.own.context.call()
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        // SAFETY: Nobody uses it after this.
        let own = unsafe { ManuallyDrop::take(&mut self.own) };
        Lingering::take_over(own);
    }
}

/// # Safety
///
/// `raw` is a live id whose handler is [`callback::handler`].
pub(super) unsafe fn disconnect(raw: NonNull<bindings::rdma_cm_id>) {
    // SAFETY: The caller vouches for the id.
    let context = unsafe { Context::of(raw) };
    if context.may_disconnect() {
        context.ask();
        // SAFETY: As above. It fails if there is no connection: nothing to do then.
        unsafe { bindings::rdma_disconnect(raw.as_ptr()) };
    }
}

/// # Safety
///
/// `raw` is a live id.
pub(super) unsafe fn reject(
    raw: NonNull<bindings::rdma_cm_id>,
    data: &[u8],
    reason: u32,
) -> Result {
    let len = u8::try_from(data.len()).map_err(|_| EINVAL)?;
    // SAFETY: The caller vouches for the id, one of ours; the data are valid through the call.
    let ret = unsafe {
        Context::of(raw).end();
        bindings::rdma_reject(raw.as_ptr(), data.as_ptr().cast(), len, reason as u8)
    };
    kernel::error::to_result(ret)
}

/// # Safety
///
/// `raw` is a live id.
pub(super) unsafe fn addresses(raw: NonNull<bindings::rdma_cm_id>) -> (SockAddr, SockAddr) {
    // SAFETY: The caller vouches for the id; both addresses are storages.
    unsafe {
        let addr = &raw const (*raw.as_ptr()).route.addr;
        (
            SockAddr::from_storage(&raw const (*addr).src_addr),
            SockAddr::from_storage(&raw const (*addr).dst_addr),
        )
    }
}
