// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! CM IDs that this module owns.

use super::{
    borrowed::{
        IdRef,
        LockedId, //
    },
    call::CallOut,
    callback::{
        self,
        Context, //
    },
    stop_listening::Steps,
    Handler, //
    LingeringIds,
};
use crate::{
    rdma::{
        addr::SockAddr,
        device::Device,
        signals::without_signals, //
    },
    sys::{
        net::NetRef,
        thread::{
            run_as,
            Identity, //
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

/// An ID that is destroyed on drop. Must not be dropped in a handler of the ID.
///
/// # Invariants
///
/// `raw` is a live ID owned by this value. Its context is `context`, its handler
/// [`callback::handler`].
pub(super) struct Owned {
    pub(super) raw: NonNull<bindings::rdma_cm_id>,
    // Dropped after `raw` is destroyed, because handlers borrow it.
    pub(super) context: Arc<Context>,
    pub(super) steps: Steps,
}

// SAFETY: `rdma_cm` allows the use of an ID from any thread.
unsafe impl Send for Owned {}
// SAFETY: As above.
unsafe impl Sync for Owned {}

impl Owned {
    /// Takes ownership of an ID.
    ///
    /// # Safety
    ///
    /// `raw` is a live ID that the caller owns. Its context is `context`, its handler
    /// [`callback::handler`].
    unsafe fn new(raw: NonNull<bindings::rdma_cm_id>, context: Arc<Context>) -> ManuallyDrop<Self> {
        // INVARIANT: The caller guarantees it.
        ManuallyDrop::new(Self {
            raw,
            context,
            steps: Steps::default(),
        })
    }

    /// Replaces the handler, and returns the previous one.
    pub(super) fn hand_over(&self, handler: Arc<dyn Handler>) -> Option<Arc<dyn Handler>> {
        // SAFETY: The ID is alive as long as `self`.
        let _locked = unsafe { LockedId::new(self.raw) };
        self.context.set(handler)
    }

    /// Waits for a running handler. Must not be called in a handler of the same ID.
    pub(super) fn wait_for_handler(&self) {
        // SAFETY: The ID is alive as long as `self`.
        drop(unsafe { LockedId::new(self.raw) });
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let raw = self.raw.as_ptr();
        // SAFETY: By the type invariant this value owns the ID, which any thread may destroy. Its
        // device is alive, if it has one. The call waits for a running handler, and no handler runs
        // afterwards.
        unsafe { without_signals((*raw).device, || bindings::rdma_destroy_id(raw)) };
        self.context.call().release();
    }
}

/// A CM ID owned by its user.
///
/// After the drop the handler gets no more events. If a peer has not answered a disconnect yet,
/// `ib_cm` repeats the request for a while. Over iWARP a connect or an accept is completed: see
/// [`LingeringIds`](super::LingeringIds).
pub(crate) struct CmId {
    /// Taken only in `drop`.
    pub(super) own: ManuallyDrop<Owned>,
    /// Delays the removal of the device until the ID is destroyed or is in the device's
    /// [`LingeringIds`] list.
    pub(super) device: Arc<Device>,
}

impl CmId {
    /// Accounts the ID of a request that was not answered to another user.
    pub(crate) fn account_to(&self, user: UserId) {
        self.own.context.account_to(user);
    }

    /// Creates an ID for a connect on behalf of a user. Allocates with `flags`. Context: process;
    /// sleeps.
    ///
    /// # Errors
    ///
    /// `EAGAIN` over iWARP if too many connects and accepts of the user have no outcome yet;
    /// `ENOMEM`.
    pub(crate) fn new(
        device: Arc<Device>,
        net: &NetRef,
        user: UserId,
        handler: Arc<dyn Handler>,
        flags: Flags,
    ) -> Result<Self> {
        let this = Self::make(device, net, user, flags)?;
        if this.device.is_iwarp() {
            let permit = LingeringIds::permit_call(this.own.context.lingering(), user)?;
            this.call().reserve(permit);
        }
        drop(this.own.context.set(handler));
        Ok(this)
    }

    /// Creates an ID for listening, without a handler. Context: process; sleeps.
    pub(crate) fn without_handler(device: Arc<Device>, net: &NetRef) -> Result<Self> {
        Self::make(device, net, UserId::current(), GFP_KERNEL_ACCOUNT)
    }

    fn make(device: Arc<Device>, net: &NetRef, user: UserId, flags: Flags) -> Result<Self> {
        let lingering = device.lingering().clone();
        let context = Context::new(user, lingering, flags)?;
        // SAFETY: The namespace and the context are alive. The context lives until the ID is
        // destroyed.
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
        // SAFETY: The ID was just created with this context and handler.
        let own = unsafe { Owned::new(raw, context) };
        Ok(Self { own, device })
    }

    /// Takes ownership of an ID that `rdma_cm` created, without a handler.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: ownership is not taken.
    ///
    /// # Safety
    ///
    /// `raw` is a live ID that inherited [`callback::handler`]. Its handler mutex is held, and its
    /// ownership passes to the caller.
    pub(super) unsafe fn adopt(
        raw: NonNull<bindings::rdma_cm_id>,
        device: Arc<Device>,
        user: UserId,
        flags: Flags,
    ) -> Result<Self> {
        let lingering = device.lingering().clone();
        let context = Context::new(user, lingering, flags)?;
        if !device.is_iwarp() {
            context.allow_disconnect();
        }
        // SAFETY: The caller guarantees that the ID is alive and its mutex held, so no handler
        // reads the context now.
        unsafe {
            (*raw.as_ptr()).context = Context::as_raw(&context);
            bindings::rdma_set_min_rnr_timer(raw.as_ptr(), super::bind::MIN_RNR_TIMER);
        }
        // SAFETY: The caller guarantees the ownership and the handler. The context was just set.
        let own = unsafe { Owned::new(raw, context) };
        Ok(Self { own, device })
    }

    /// Returns whether this is the ID that a handler borrows.
    pub(crate) fn is(&self, id: &IdRef<'_>) -> bool {
        id.is_of(self.own.raw)
    }

    /// Waits for a running handler. Must not be called in a handler of the same ID.
    pub(crate) fn wait_for_handler(&self) {
        self.own.wait_for_handler();
    }

    /// Takes the handler mutex. Must not be called in a handler of the same ID.
    pub(crate) fn lock(&self) -> LockedId<'_> {
        // SAFETY: The ID is alive as long as `self`.
        unsafe { LockedId::new(self.own.raw) }
    }

    /// Replaces the handler.
    pub(crate) fn set_handler(&self, _locked: &LockedId<'_>, handler: Arc<dyn Handler>) {
        drop(self.own.context.set(handler));
    }

    /// Returns the raw ID, which is alive.
    pub(super) fn raw(&self) -> *mut bindings::rdma_cm_id {
        self.own.raw.as_ptr()
    }

    /// Returns the device.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Requests a quality of service: a Differentiated Services field, from which the transport
    /// derives its own parameters. Must be called before the route is resolved.
    pub(crate) fn set_service_type(&self, service_type: u8) {
        // SAFETY: The ID is alive.
        unsafe { bindings::rdma_set_service_type(self.own.raw.as_ptr(), service_type.into()) };
    }

    /// Asks the peer to disconnect, or answers the peer's disconnect. Does nothing before a
    /// connection exists.
    pub(crate) fn disconnect(&self) {
        // SAFETY: The ID is alive, and its context is a `Context` of this module.
        unsafe { disconnect(self.own.raw) };
    }

    /// Rejects a request on behalf of the consumer.
    pub(crate) fn reject(&self, private_data: &[u8]) -> Result {
        // SAFETY: The ID is alive, and its context is a `Context` of this module.
        unsafe {
            reject(
                self.own.raw,
                private_data,
                bindings::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED,
            )
        }
    }

    /// Leaves the ID to `rdma_cm`, which destroys it when the request handler returns. That handler
    /// still borrows the context of the listening ID.
    ///
    /// # Safety
    ///
    /// The request handler of this ID is running, and returns that the ID is to be destroyed.
    pub(super) unsafe fn disown(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used any more, so each field is dropped once. `steps` is empty: the
        // ID never listened. `raw` is not destroyed here but by `rdma_cm`, which passes no event to
        // the context from now on.
        unsafe {
            core::ptr::drop_in_place(&raw mut this.own.context);
            core::ptr::drop_in_place(&raw mut this.device);
        }
    }

    /// Calls `action` in a new thread, with the handler mutex held and with the identity of a
    /// caller.
    ///
    /// It is for calls that may block: over iWARP the driver creates a socket and may wait for the
    /// peer. In a handler of `rdma_cm` the socket would be the kernel's own, and all users of
    /// `rdma_cm` would wait.
    ///
    /// `action` is not called if [`CmId::cancel_call`] comes first. A later [`CmId::cancel_call`]
    /// ends its wait.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`run_as`].
    pub(crate) fn call_out(
        this: Arc<Self>,
        identity: Identity,
        action: impl FnOnce(&IdRef<'_>) + Send + 'static,
    ) -> Result {
        run_as(c"kdapl_connect", identity, move |thread| {
            let locked = this.lock();
            if this.call().enter(thread) {
                action(&locked);
                this.call().leave();
            }
            drop(locked);
        })
    }

    /// Interrupts the action of [`CmId::call_out`], or prevents it. Does not wait for its end.
    ///
    /// Context: process; sleeps.
    pub(crate) fn cancel_call(&self) {
        self.call().cancel_call();
    }

    /// Returns whether [`CmId::cancel_call`] would wait. Context: process; sleeps.
    pub(crate) fn call_has_just_begun(&self) -> bool {
        self.call().has_just_begun()
    }

    /// Calls `action`, which may answer the request of the ID. Calls of `rdma_cm` for that require
    /// the handler mutex. With a driver that discards signals, a worker calls it.
    ///
    /// Context: process; sleeps. The caller holds no lock of the ID.
    pub(crate) fn answer<R: Send>(&self, action: impl FnOnce() -> R + Send) -> R {
        // SAFETY: The ID and its device are alive. `action` may be called in any thread.
        unsafe { without_signals((*self.raw()).device, action) }
    }

    fn call(&self) -> &CallOut {
        self.own.context.call()
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        let is_listening = self.ends_in_steps();
        // SAFETY: The field is not used after this.
        let own = unsafe { ManuallyDrop::take(&mut self.own) };
        if is_listening {
            own.stop_listening();
        }
        LingeringIds::destroy_or_defer(own);
    }
}

/// Asks the peer to disconnect, if a connection exists.
///
/// # Safety
///
/// `raw` is a live ID whose handler is [`callback::handler`].
pub(super) unsafe fn disconnect(raw: NonNull<bindings::rdma_cm_id>) {
    // SAFETY: The caller guarantees that the ID is alive.
    let context = unsafe { Context::of(raw) };
    if context.may_disconnect() {
        context.ask();
        let raw = raw.as_ptr();
        // SAFETY: As above. The call fails without a connection, and then there is nothing to do.
        unsafe { without_signals((*raw).device, || bindings::rdma_disconnect(raw)) };
    }
}

/// Rejects a request, with a reason of `ib_cm` and private data for the peer.
///
/// # Safety
///
/// `raw` is a live ID whose handler is [`callback::handler`].
pub(super) unsafe fn reject(
    raw: NonNull<bindings::rdma_cm_id>,
    data: &[u8],
    reason: u32,
) -> Result {
    let len = u8::try_from(data.len()).map_err(|_| EINVAL)?;
    // SAFETY: The caller guarantees that the ID is alive and that its context is a `Context`. The
    // data is valid through the call, which any thread may make.
    let ret = unsafe {
        Context::of(raw).end();
        let raw = raw.as_ptr();
        without_signals((*raw).device, || {
            bindings::rdma_reject(raw, data.as_ptr().cast(), len, reason as u8)
        })
    };
    kernel::error::to_result(ret)
}

/// Returns the local and the remote address.
///
/// # Safety
///
/// `raw` is a live ID.
pub(super) unsafe fn addresses(raw: NonNull<bindings::rdma_cm_id>) -> (SockAddr, SockAddr) {
    // SAFETY: The caller guarantees that the ID is alive. Both addresses are a
    // `struct sockaddr_storage`.
    unsafe {
        let addr = &raw const (*raw.as_ptr()).route.addr;
        (
            SockAddr::from_storage(&raw const (*addr).src_addr),
            SockAddr::from_storage(&raw const (*addr).dst_addr),
        )
    }
}
