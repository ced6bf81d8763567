// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An id of one's own.

use super::{
    borrowed::{
        IdRef,
        Locked, //
    },
    callback::{
        self,
        Context, //
    },
    Handler,
    Lingering,
    Verdict, //
};
use crate::{
    rdma::{
        addr::SockAddr,
        device::Device, //
    },
    sys::net::NetRef,
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Milliseconds that resolving an address may take.
const RESOLVE_MS: usize = 4_000;

/// Encoded delay of a receiver-not-ready answer: 0.64 ms, where 0 would be 655 ms.
const MIN_RNR_TIMER: u8 = 12;

/// Why an id cannot listen at an address.
pub(crate) enum BindError {
    /// Somebody else listens there, or no port is free.
    PortTaken,
    /// The caller may not use the port.
    NotAllowed,
    /// The device has no such address.
    NoSuchAddress,
    /// Something else.
    Other(Error),
}

/// Whether an error is one of those that the kernel crate has no name for.
fn is(error: Error, errno: u32) -> bool {
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
    }
}

/// An id of one's own.
///
/// When it is dropped nobody hears of it any more. A peer that was asked to disconnect and has not
/// answered yet is asked again for a while: see [`Lingering`](super::Lingering).
pub(crate) struct CmId {
    /// Taken in `drop` alone.
    own: ManuallyDrop<Owned>,
    /// Holds up the removal of the device until the id is destroyed, or lingers there.
    device: Arc<Device>,
}

impl CmId {
    /// Makes an id for connections of the device. Context: process; sleeps.
    pub(crate) fn new(
        device: Arc<Device>,
        net: &NetRef,
        handler: Arc<dyn Handler>,
    ) -> Result<Self> {
        let this = Self::unheard(device, net)?;
        drop(this.own.context.set(handler));
        Ok(this)
    }

    /// As [`CmId::new`], with nobody to hear of its events yet.
    pub(crate) fn unheard(device: Arc<Device>, net: &NetRef) -> Result<Self> {
        let context = Context::new(None)?;
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
    ) -> Result<Self> {
        let context = Context::new(Some(device.transport()))?;
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
    fn bind(&self, local: SockAddr) -> Result {
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

    /// Binds to a local address to listen there; port 0 is any free one. Returns the address.
    pub(crate) fn bind_listener(&self, local: SockAddr) -> Result<SockAddr, BindError> {
        match self.bind(local) {
            Ok(()) => {}
            Err(error) if error == EACCES => return Err(BindError::NotAllowed),
            Err(error) if error == ENOMEM => return Err(BindError::Other(error)),
            // The lookup of the address leaves the network device behind; what failed after it is
            // the port.
            // SAFETY: The id is alive.
            Err(_) if unsafe { (*self.own.raw.as_ptr()).route.addr.dev_addr.bound_dev_if } == 0 => {
                return Err(BindError::NoSuchAddress)
            }
            Err(error) if is(error, bindings::EADDRINUSE) || is(error, bindings::EADDRNOTAVAIL) => {
                return Err(BindError::PortTaken)
            }
            // Another device's.
            Err(error) if error == ENODEV => return Err(BindError::NoSuchAddress),
            Err(error) => return Err(BindError::Other(error)),
        }
        // SAFETY: The id is alive; once it is bound its address does not change.
        let (local, _) = unsafe { addresses(self.own.raw) };
        Ok(local)
    }

    /// Listens where it is bound. Requests may arrive before this returns.
    pub(crate) fn listen(&self, backlog: u32) -> Result<(), BindError> {
        // SAFETY: The id is alive.
        let ret = unsafe {
            bindings::rdma_listen(
                self.own.raw.as_ptr(),
                i32::try_from(backlog).unwrap_or(i32::MAX),
            )
        };
        // iWARP listens at a TCP port, which sockets use too, and siw in the caller's namespace.
        kernel::error::to_result(ret).map_err(|error| {
            if is(error, bindings::EADDRINUSE) {
                BindError::PortTaken
            } else if is(error, bindings::EADDRNOTAVAIL) {
                BindError::NoSuchAddress
            } else {
                BindError::Other(error)
            }
        })
    }

    /// Asks for a service of the network: a Differentiated Services field, from which the transport
    /// derives what it has. Before the route is resolved.
    pub(crate) fn set_service_type(&self, service_type: u8) {
        // SAFETY: The id is alive.
        unsafe { bindings::rdma_set_service_type(self.own.raw.as_ptr(), service_type.into()) };
    }

    /// Starts to resolve the peer's address.
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
        kernel::error::to_result(ret)
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

    /// Gives the id back to `rdma_cm`, from its own handler.
    pub(crate) fn into_verdict(self) -> Verdict {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used any more, so each field is dropped once; `raw` is not
        // destroyed here but by `rdma_cm`, which delivers nothing to the context from now on.
        unsafe {
            core::ptr::drop_in_place(&raw mut this.own.context);
            core::ptr::drop_in_place(&raw mut this.device);
        }
        Verdict::Destroy
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        // SAFETY: Nobody uses it after this.
        let own = unsafe { ManuallyDrop::take(&mut self.own) };
        Lingering::take_over(self.device.lingering(), own);
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
