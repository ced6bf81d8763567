// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection Requests (CRs).
//!
//! A request exists from its arrival until it is accepted, rejected or handed off. Meanwhile
//! `rdma_cm` keeps the peer waiting, and events of the ID are ignored. If the peer ends its
//! attempt, the answer to the request fails.
//!
//! # Ownership of the ID
//!
//! The request owns the connection manager (CM) ID from its arrival on, in [`Cr::id`]. The call
//! that answers takes the ID and removes the request from the table, under the lock of the table.
//! So only one call answers. A handoff moves the ID to a new request of the other consumer. When
//! the adapter closes or the device is removed, the ID is taken, and the peer is rejected.

use super::{
    point::BacklogSlot,
    PassiveContext,
    Point, //
};
use crate::{
    dat::{
        base::{
            Freeing,
            Object,
            PrivateData, //
        },
        ep::{
            AcceptingEp,
            Ep, //
        },
        prelude::*, //
    },
    model::{
        ep::ReadyGate,
        handle::HandleKind, //
    },
    rdma::{
        addr::SockAddr,
        cm::{
            CmId,
            NewId, //
        },
    },
    sys::census::{
        self,
        Counted, //
    },
};
use kernel::{
    alloc::Flags,
    new_mutex,
    sync::{
        Mutex,
        UniqueArc, //
    },
};

/// Contents of a peer's request.
#[derive(Clone, Copy)]
pub(super) struct RequestData {
    /// Address at which the request arrived.
    local: SockAddr,
    remote: SockAddr,
    /// Connection qualifier that the peer connects to.
    conn_qual: u64,
    data: PrivateData,
}

impl RequestData {
    /// Creates the contents of the request that arrived with an ID.
    pub(super) fn new(id: &NewId<'_>, conn_qual: u64, data: PrivateData) -> Self {
        let (local, remote) = id.addresses();
        Self {
            local,
            remote,
            conn_qual,
            data,
        }
    }
}

/// A Connection Request.
#[pin_data]
pub(crate) struct Cr {
    backlog_slot: BacklogSlot,
    pub(super) request: RequestData,
    /// Endpoint of the provider, or the reserved one; `None` if the consumer supplies one.
    ep: Option<Arc<Ep>>,
    /// `None` once answered, or once the device was removed.
    #[pin]
    id: Mutex<Option<CmId>>,
    _counted: Counted,
}

/// Parameters that [`Cr::query`] returns.
pub(crate) struct Param {
    pub(crate) remote: SockAddr,
    pub(crate) private_data: PrivateData,
    /// Handle of the Endpoint that came with the request, or 0.
    pub(crate) local_ep: u64,
}

impl Cr {
    /// Creates a request that has no ID yet.
    pub(super) fn new(
        backlog_slot: BacklogSlot,
        request: RequestData,
        ep: Option<Arc<Ep>>,
        flags: Flags,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                backlog_slot,
                request,
                ep,
                id <- new_mutex!(None, "Cr::id"),
                _counted: Counted::new(census::Kind::Cr),
            }),
            flags,
        )
    }

    /// Returns the addresses of the service point at which the request arrived. Unlike the address
    /// in the request, they name the network device of a link-local address.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SockAddr> + '_ {
        let addresses = self.point().addresses.iter().copied();
        addresses.filter(|address| address.ip() == self.request.local.ip())
    }

    /// Implements `dat_cr_query`.
    pub(crate) fn query(&self) -> Param {
        Param {
            remote: self.request.remote,
            private_data: self.request.data,
            local_ep: self.ep.as_ref().map_or(0, |ep| ep.handle()),
        }
    }

    /// Returns pointers to the peer's address and private data. They are valid until the request is
    /// answered.
    pub(crate) fn request_at(&self) -> (*const SockAddr, *const u8) {
        let data = self.request.data.bytes().as_ptr();
        (&raw const self.request.remote, data)
    }

    /// Implements `dat_cr_accept`. `ep` is a handle, or 0 for the Endpoint that came with the
    /// request.
    ///
    /// If the peer has ended its attempt meanwhile, the call succeeds nevertheless, and an
    /// ACCEPT_COMPLETION_ERROR event reports it. `gate` is the ready gate of the connection.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// On an error the request remains.
    ///
    /// - INVALID_HANDLE.
    /// - INVALID_PARAMETER (Endpoint) for another Endpoint than the one that came with the
    ///   request.
    /// - INVALID_STATE unless the Endpoint is configured, and free for the request.
    /// - INSUFFICIENT_RESOURCES (device).
    pub(in crate::dat) fn accept(
        context: &PassiveContext,
        handle: u64,
        ep: u64,
        gate: ReadyGate,
        data: &PrivateData,
    ) -> DatResult {
        let cr = context.crs.get(handle)?;
        let ep = cr.choose(context, ep)?;
        let memory = UniqueArc::<CmId>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let (mut taken, mut life) = (None, 0);
        context.crs.take(handle, |cr| {
            let mut id = cr.id.lock();
            if id.is_none() {
                return Err(DatError::device());
            }
            let origin = match cr.ep {
                Some(_) => AcceptingEp::OfRequest,
                None => AcceptingEp::OfConsumer,
            };
            life = ep.begin_accept(origin, gate)?;
            taken = id.take();
            Ok(())
        })?;
        let id = memory.write(taken.ok_or(DatError::internal())?).into();
        let RequestData {
            remote, conn_qual, ..
        } = cr.request;
        ep.accept(id, life, remote, conn_qual, data);
        Ok(())
    }

    /// Returns the Endpoint to accept with.
    fn choose(&self, context: &PassiveContext, given: u64) -> DatResult<Arc<Ep>> {
        let eps = &context.ep_context.eps;
        match &self.ep {
            Some(own) if given == 0 || given == own.handle() => Ok(own.clone()),
            // Another Endpoint is invalid in any state.
            Some(_) => eps.get(given).and(Err(DatError::Invalid(Arg::Ep))),
            None => eps.get(given),
        }
    }

    /// Implements `dat_cr_reject`. A reserved Endpoint is unconnected again. One of the provider is
    /// freed.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE.
    pub(in crate::dat) fn reject(
        context: &PassiveContext,
        handle: u64,
        data: &PrivateData,
    ) -> DatResult {
        let cr = context.crs.take(handle, |_| Ok(()))?;
        if let Some(id) = cr.take_id() {
            // This fails if the peer has ended its attempt, and then no answer is needed.
            let _ = id.reject(data.bytes());
        }
        cr.release_ep();
        Ok(())
    }

    /// Rejects the peer, because the request can no longer be accepted. The request remains in the
    /// table without an ID.
    pub(in crate::dat) fn reject_unanswered(&self) {
        if let Some(id) = self.take_id() {
            id.lock().refuse();
        }
    }

    /// Releases the Endpoint that came with the request.
    pub(super) fn release_ep(&self) {
        if let Some(ep) = &self.ep {
            ep.release();
        }
    }

    /// Returns the service point that received the request.
    pub(super) fn point(&self) -> &Arc<Point> {
        self.backlog_slot.point()
    }

    /// Returns the Endpoint that came with the request.
    pub(super) fn ep(&self) -> Option<&Arc<Ep>> {
        self.ep.as_ref()
    }

    /// Returns the size of the private data in bytes.
    pub(super) fn private_data_size(&self) -> u32 {
        self.request.data.size()
    }

    /// Moves the ID into the request, which no other thread knows yet.
    pub(super) fn put_id(&self, id: CmId) {
        let none = self.id.lock().replace(id);
        drop(none);
    }

    /// Moves the ID to the caller.
    pub(super) fn take_id(&self) -> Option<CmId> {
        self.id.lock().take()
    }
}

impl Object for Cr {
    const KIND: HandleKind = HandleKind::Cr;
    const INVALID: Subtype = Subtype::InvalidHandleCr;

    /// Rejects the request because the adapter closes.
    fn shutdown(self: &Arc<Self>, _freeing: Freeing<'_, Self>) {
        self.reject_unanswered();
        self.release_ep();
    }
}
