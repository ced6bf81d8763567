// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection Requests.
//!
//! A request exists from its arrival until it is accepted, rejected or handed over. `rdma_cm` keeps
//! the peer waiting meanwhile, and nobody hears of the id: if the peer gives up, that shows when the
//! request is answered.
//!
//! # Who owns the id
//!
//! The request, from its arrival on, in [`Cr::id`]. Whoever answers takes it out, under the lock of
//! the table together with the request itself, so that there is one who answers. A handover moves it
//! to the request that the other consumer gets. When the adapter closes or the device goes, it is
//! taken out and the peer is turned away.

use super::{
    point::BacklogSlot,
    Domain,
    Point, //
};
use crate::{
    dat::{
        base::{
            Object,
            PrivateData, //
        },
        ep::Ep,
        prelude::*, //
    },
    model::handle::HandleKind,
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

/// What a peer asks.
#[derive(Clone, Copy)]
pub(super) struct Request {
    remote: SockAddr,
    /// The connection qualifier that it connects to.
    conn_qual: u64,
    data: PrivateData,
}

impl Request {
    /// As it came with an id.
    pub(super) fn new(id: &NewId<'_>, conn_qual: u64, data: PrivateData) -> Self {
        let (_, remote) = id.addresses();
        Self {
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
    pub(super) request: Request,
    /// The provider's or the reserved Endpoint; `None` if the consumer brings one.
    ep: Option<Arc<Ep>>,
    /// `None` once answered, or once the device is gone.
    #[pin]
    id: Mutex<Option<CmId>>,
    _counted: Counted,
}

/// What [`Cr::query`] tells.
pub(crate) struct Param {
    pub(crate) remote: SockAddr,
    pub(crate) private_data: PrivateData,
    /// Handle of the Endpoint that came with the request, or 0.
    pub(crate) local_ep: u64,
}

impl Cr {
    /// A request that has no id yet.
    pub(super) fn new(
        backlog_slot: BacklogSlot,
        request: Request,
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

    /// `dat_cr_query`.
    pub(crate) fn query(&self) -> Param {
        Param {
            remote: self.request.remote,
            private_data: self.request.data,
            local_ep: self.ep.as_ref().map_or(0, |ep| ep.handle()),
        }
    }

    /// Where the peer's address and private data lie, which stay until the request is answered.
    pub(crate) fn request_at(&self) -> (*const SockAddr, *const u8) {
        let data = self.request.data.bytes().as_ptr();
        (&raw const self.request.remote, data)
    }

    /// `dat_cr_accept`. `ep` is a handle, or 0 for the Endpoint that came with the request.
    ///
    /// If the peer has given up in the meantime the call succeeds all the same, and
    /// ACCEPT_COMPLETION_ERROR tells of it.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE; INVALID_PARAMETER (argument 2) for another Endpoint than the one that came
    /// with the request; INVALID_STATE unless the Endpoint is configured and free for it,
    /// INSUFFICIENT_RESOURCES (device). The request stands.
    pub(in crate::dat) fn accept(
        domain: &Domain,
        handle: u64,
        ep: u64,
        data: &PrivateData,
    ) -> DatResult {
        let cr = domain.crs.get(handle)?;
        let ep = cr.choose(domain, ep)?;
        let memory = UniqueArc::<CmId>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let (mut taken, mut life) = (None, 0);
        domain.crs.take(handle, |cr| {
            let mut id = cr.id.lock();
            if id.is_none() {
                return Err(DatError::device());
            }
            life = ep.begin_accept(cr.ep.is_some())?;
            taken = id.take();
            Ok(())
        })?;
        let id = memory.write(taken.ok_or(DatError::internal())?).into();
        let Request {
            remote, conn_qual, ..
        } = cr.request;
        ep.accept(id, life, remote, conn_qual, data);
        Ok(())
    }

    /// The Endpoint to accept with.
    fn choose(&self, domain: &Domain, given: u64) -> DatResult<Arc<Ep>> {
        let eps = &domain.endpoints.eps;
        match &self.ep {
            Some(own) if given == 0 || given == own.handle() => Ok(own.clone()),
            // No state of another one would make it right.
            Some(_) => eps.get(given).and(Err(DatError::invalid_parameter(2))),
            None => eps.get(given),
        }
    }

    /// `dat_cr_reject`. A reserved Endpoint is unconnected again, the provider's is gone.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE.
    pub(in crate::dat) fn reject(domain: &Domain, handle: u64, data: &PrivateData) -> DatResult {
        let cr = domain.crs.take(handle, |_| Ok(()))?;
        if let Some(id) = cr.take_id() {
            // Fails if the peer has given up: then there is nobody to tell.
            let _ = id.reject(data.bytes());
        }
        cr.release_ep();
        Ok(())
    }

    /// Turned away because nobody can accept it any more. The request stands, an empty shell.
    pub(in crate::dat) fn turn_away(&self) {
        if let Some(id) = self.take_id() {
            id.lock().refuse();
        }
    }

    /// The Endpoint that came with it goes back to where it came from.
    pub(super) fn release_ep(&self) {
        if let Some(ep) = &self.ep {
            ep.release();
        }
    }

    /// The service point that it came to.
    pub(super) fn point(&self) -> &Arc<Point> {
        self.backlog_slot.point()
    }

    /// The Endpoint that came with it.
    pub(super) fn ep(&self) -> Option<&Arc<Ep>> {
        self.ep.as_ref()
    }

    /// Bytes of private data.
    pub(super) fn private_data_size(&self) -> u32 {
        self.request.data.size()
    }

    /// The id is the request's from now on, which nobody else knows yet.
    pub(super) fn put_id(&self, id: CmId) {
        let none = self.id.lock().replace(id);
        drop(none);
    }

    /// The id, from now on the caller's.
    pub(super) fn take_id(&self) -> Option<CmId> {
        self.id.lock().take()
    }
}

impl Object for Cr {
    const KIND: HandleKind = HandleKind::Cr;
    const INVALID: Subtype = Subtype::InvalidHandleCr;

    /// Rejects the request because the adapter closes.
    fn shutdown(self: &Arc<Self>) {
        self.turn_away();
        self.release_ep();
    }
}
