// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection management ids and their events.
//!
//! Two types for one `struct rdma_cm_id`: a [`CmId`] owns it, an [`IdRef`] borrows it while its
//! handler mutex is held, in a handler or under [`CmId::lock`]. What `rdma_cm` wants done with that
//! mutex held exists on [`IdRef`] only; what must not be (destroying) on [`CmId`] only.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

mod borrowed;
mod call;
mod callback;
mod event;
mod id;
mod linger;
mod listen;
mod param;
mod request;

pub(super) use self::linger::Lingering;
pub(crate) use self::{
    borrowed::{
        IdRef,
        Refusal, //
    },
    event::{
        Event,
        Rejected, //
    },
    id::{
        is_unreachable,
        CmId, //
    },
    listen::BindError,
    param::ConnParam,
    request::{
        NewId,
        Verdict, //
    },
};

use kernel::sync::Arc;

/// Who hears of an id's events.
pub(crate) trait Handler: Send + Sync {
    /// Something happened. Context: process, in `rdma_cm`'s workqueue; may sleep, holds up the
    /// events of this id.
    fn event(self: Arc<Self>, id: &IdRef<'_>, event: Event<'_>);

    /// A request arrived on a listening id; a new id was made for it. Context: as above.
    ///
    /// Only those who listen hear of it.
    fn request<'a>(self: Arc<Self>, id: NewId<'a>, _private_data: &[u8]) -> Verdict<'a> {
        id.finish()
    }
}
