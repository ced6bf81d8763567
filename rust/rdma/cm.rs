// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection manager (CM) IDs and their events.
//!
//! Two types wrap one `struct rdma_cm_id`. A [`CmId`] owns it. An [`IdRef`] borrows it while its
//! handler mutex is held, in a handler or under [`CmId::lock`]. Calls that `rdma_cm` requires to be
//! made with that mutex held are methods of [`IdRef`] only. Destroying, which must not be done with
//! it held, is possible for a [`CmId`] only.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

mod bind;
mod borrowed;
mod call;
mod callback;
mod errno;
mod event;
mod id;
mod lingering_ids;
mod listen;
mod local_port;
mod param;
mod request;
mod stop_listening;

pub(super) use self::lingering_ids::LingeringIds;
pub(crate) use self::{
    bind::{
        BindError,
        ResolveError, //
    },
    borrowed::{
        IdRef,
        Refusal, //
    },
    errno::{
        is_local_port_in_use,
        is_unreachable, //
    },
    event::{
        Event,
        Rejected, //
    },
    id::CmId,
    param::ConnParam,
    request::{
        NewId,
        RequestDecision, //
    },
};

use kernel::sync::Arc;

/// Receiver of the events of a CM ID.
pub(crate) trait Handler: Send + Sync {
    /// Handles an event.
    ///
    /// Context: process, in `rdma_cm`'s workqueue. It may sleep, but delays later events of this
    /// ID.
    fn event(self: Arc<Self>, id: &IdRef<'_>, event: Event<'_>);

    /// Handles a connection request on a listening ID. `id` is the new ID that `rdma_cm` created
    /// for it. Context: as for [`Handler::event`].
    ///
    /// Only handlers of listening IDs implement it. By default `rdma_cm` destroys the new ID.
    fn request<'a>(self: Arc<Self>, id: NewId<'a>, _private_data: &[u8]) -> RequestDecision<'a> {
        id.finish()
    }
}
