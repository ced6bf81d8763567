// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A connection request, during the handler of that request.

use super::{
    borrowed::{
        IdRef,
        Refusal, //
    },
    id::CmId, //
};
use crate::{
    rdma::{
        addr::SockAddr,
        device::Device, //
    },
    sys::user::UserId, //
};
use core::marker::PhantomData;
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

/// The CM ID that `rdma_cm` created for a request, during the handler of that request.
///
/// [`NewId::refuse`], [`NewId::finish`] and [`NewId::give_back`] consume it and return the
/// [`RequestDecision`] that the handler must return. There is no other way to create a
/// [`RequestDecision`], and its lifetime ties it to this request. So `rdma_cm` never destroys an ID
/// that was adopted, and always destroys one that was not.
///
/// ```no_run
/// # use crate::rdma::{cm::{CmId, NewId, Refusal, RequestDecision}, device::Device};
/// # use crate::sys::user::UserId;
/// # use kernel::{prelude::*, sync::Arc};
/// fn request<'a>(mut id: NewId<'a>, device: Arc<Device>, own: &mut Option<CmId>) ->
/// RequestDecision<'a> {
///     match id.adopt(device, UserId::current(), GFP_KERNEL) {
///         Ok(adopted) => *own = Some(adopted),
///         Err(_) => return id.refuse(Refusal::NoResources),
///     }
///     id.finish()
/// }
/// ```
///
/// A decision cannot be created without an ID:
///
/// ```compile_fail,E0451
/// # use crate::rdma::cm::RequestDecision;
/// # use core::marker::PhantomData;
/// fn keep<'a>() -> RequestDecision<'a> {
///     RequestDecision { destroy: false, _this_request: PhantomData } // The ID was not adopted.
/// }
/// ```
///
/// One ID does not give two decisions:
///
/// ```compile_fail,E0382
/// # use crate::rdma::cm::{NewId, Refusal, RequestDecision};
/// fn twice(id: NewId<'_>) {
///     let refused = id.refuse(Refusal::NoListener);
///     let kept = id.finish();
/// #   drop((refused, kept));
/// }
/// ```
///
/// A decision of another request is refused:
///
/// ```compile_fail,E0621
/// # use crate::rdma::cm::{NewId, RequestDecision};
/// fn confused<'a>(_id: NewId<'a>, other: NewId<'_>) -> RequestDecision<'a> {
///     other.finish()
/// }
/// ```
///
/// The ID does not outlive its handler:
///
/// ```compile_fail,lifetime
/// # use crate::rdma::cm::NewId;
/// fn later(kept: &mut Option<NewId<'static>>, id: NewId<'_>) {
///     *kept = Some(id);
/// }
/// ```
///
/// It does not move to another thread:
///
/// ```compile_fail,E0277
/// # use crate::rdma::cm::NewId;
/// fn elsewhere(id: NewId<'static>) {
///     fn run(_action: impl FnOnce() + Send) {}
///     run(move || drop(id.finish()));
/// }
/// ```
///
/// A shared reference does not adopt it:
///
/// ```compile_fail,E0596
/// # use crate::rdma::{cm::{CmId, NewId}, device::Device};
/// # use crate::sys::user::UserId;
/// # use kernel::{prelude::*, sync::Arc};
/// fn look(id: &NewId<'_>, device: Arc<Device>) -> Result<CmId> {
///     id.adopt(device, UserId::current(), GFP_KERNEL)
/// }
/// ```
pub(crate) struct NewId<'a> {
    id: IdRef<'a>,
    /// Whether a [`CmId`] owns the ID.
    adopted: bool,
    _this_request: Brand<'a>,
}

/// An invariant lifetime, which identifies one call.
type Brand<'a> = PhantomData<fn(&'a ()) -> &'a ()>;

/// Decision on the ID of a request, returned by the handler.
pub(crate) struct RequestDecision<'a> {
    /// Whether `rdma_cm` destroys the ID, because it has no owner.
    destroy: bool,
    _this_request: Brand<'a>,
}

impl RequestDecision<'_> {
    /// Returns the value that the C handler returns.
    pub(super) fn as_raw(&self) -> i32 {
        i32::from(self.destroy)
    }
}

impl<'a> NewId<'a> {
    /// Wraps the ID of a request.
    ///
    /// # Safety
    ///
    /// `id` was created for a request whose handler is running, and has no owner. The handler
    /// returns the [`RequestDecision`] that results.
    pub(super) unsafe fn new(id: IdRef<'a>) -> Self {
        Self {
            id,
            adopted: false,
            _this_request: PhantomData,
        }
    }

    /// Takes ownership of the ID on behalf of a user. Memory for it is allocated with `flags`.
    ///
    /// Events are dropped until [`CmId::set_handler`] sets a handler. While a request is pending,
    /// the only event is the end of the peer's attempt. The answer to the request then fails.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: the ID still has no owner. `EBUSY` if it was adopted before.
    pub(crate) fn adopt(
        &mut self,
        device: Arc<Device>,
        user: UserId,
        flags: Flags,
    ) -> Result<CmId> {
        if self.adopted {
            return Err(EBUSY);
        }
        // SAFETY: The caller of `new` guarantees that the ID has no owner and that its handler
        // mutex is held. The ID has not been adopted since. From now on the handler leaves it to
        // the new owner, unless `give_back` returns it.
        let id = unsafe { CmId::adopt(self.id.raw(), device, user, flags) }?;
        self.adopted = true;
        Ok(id)
    }

    /// Rejects the adopted request, and returns the ID to `rdma_cm`. If `id` is not the ID of this
    /// request, it is only dropped.
    pub(crate) fn give_back(self, id: CmId, why: Refusal) -> RequestDecision<'a> {
        if !id.is(&self.id) {
            return self.finish();
        }
        self.id.refuse_as(why);
        // Keep this call last: the ID has no valid context afterwards.
        // SAFETY: The handler of this request is running, and returns the decision below.
        unsafe { id.disown() };
        RequestDecision {
            destroy: true,
            _this_request: PhantomData,
        }
    }

    /// Rejects the request, unless the ID was adopted.
    pub(crate) fn refuse(self, why: Refusal) -> RequestDecision<'a> {
        if !self.adopted {
            self.id.refuse_as(why);
        }
        self.finish()
    }

    /// Leaves an adopted ID to its owner. `rdma_cm` destroys an ID that was not adopted.
    pub(crate) fn finish(self) -> RequestDecision<'a> {
        RequestDecision {
            destroy: !self.adopted,
            _this_request: PhantomData,
        }
    }

    /// Returns the local and the remote address.
    pub(crate) fn addresses(&self) -> (SockAddr, SockAddr) {
        self.id.addresses()
    }
}
