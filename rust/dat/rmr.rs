// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Remote Memory Regions (RMR).
//!
//! A bind opens a part of a Local Memory Region (LMR) to the peers of a Protection Zone (PZ), under
//! a context of its own. It is a request on the queue of an Endpoint (EP), which registers another
//! memory region over the same pages. Each bind creates a new region. So the old context stays
//! invalid until the driver gives its key to another region.

use super::{
    base::{
        Freeing,
        InUse,
        Object,
        Objects,
        Segment, //
    },
    ep::{
        Ep,
        LocalAction,
        LocalRequest, //
    },
    lmr::Lmr,
    pz::{
        Bound,
        BoundReservation,
        Pz, //
    },
};
use crate::{
    dat::prelude::*,
    model::handle::HandleKind,
    rdma::fast_mr::FastMr,
    sys::{
        census::{
            self,
            Counted, //
        },
        memcg::Payer,
        task::{
            is_killed,
            CallContext, //
        },
    },
};
use kernel::{
    new_mutex,
    sync::Mutex,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Milliseconds to wait for the end of a bind before its connection is broken, and again for the
/// flush after that.
const BIND_END_MS: u32 = 1_000;

/// Arguments of `dat_rmr_bind` other than handles.
#[derive(Clone, Copy)]
pub(crate) struct BindArguments {
    /// Part of the LMR. Length 0 is an unbind.
    pub(crate) segment: Segment,
    /// `DAT_MEM_PRIV_FLAGS` of the peers.
    pub(crate) privileges: u32,
    /// Cookie of the completion.
    pub(crate) cookie: u64,
    /// `DAT_COMPLETION_FLAGS`.
    pub(crate) flags: u32,
}

/// Result of `dat_rmr_query`. All but the PZ is 0 while the RMR is not bound.
#[derive(Clone, Copy, Default)]
pub(crate) struct Param {
    pub(crate) pz: u64,
    pub(crate) lmr: u64,
    pub(crate) segment: Segment,
    pub(crate) privileges: u32,
    pub(crate) rmr_context: u32,
}

/// A bind.
struct Binding {
    param: Param,
    region: Arc<FastMr>,
    /// Endpoint that the bind was posted to.
    ep: Arc<Ep>,
}

impl Binding {
    /// Returns the memory, as the destination of RDMA reads.
    fn bound(&self) -> Bound {
        let segment = Segment {
            context: self.param.rmr_context,
            ..self.param.segment
        };
        Bound {
            segment,
            lkey: self.region.lkey(),
            writable: self.region.is_writable(),
        }
    }

    /// Ends the bind: its context is not valid afterwards.
    ///
    /// A peer can stall an earlier request, and so make the context valid later. If the request
    /// does not end in time, this breaks the connection.
    ///
    /// Context: process; sleeps for twice [`BIND_END_MS`] at most.
    fn end(self, pz: &Pz) {
        // Before the region is destroyed. Afterwards the device may give its key to another one.
        pz.remove_bound(self.param.rmr_context);
        if !self.has_ended_in(BIND_END_MS, is_killed) {
            self.ep.break_connection();
            // The device may have carried the request out. It is over once the device flushes it.
            self.has_ended_in(BIND_END_MS, || false);
        }
        // The Endpoint has dropped its reference too, so the drop of `self` destroys the region.
        self.ep.await_end_of_bind();
    }

    /// Waits until the request has ended. Returns `false` after a time-out, or when `stops` returns
    /// `true`.
    ///
    /// Context: process; sleeps.
    fn has_ended_in(&self, milliseconds: u32, stops: impl Fn() -> bool) -> bool {
        let mut waited = 0;
        while self.region.is_posted() {
            self.ep.drain_evds_fully(Payer::Caller);
            if !self.region.is_posted() {
                break;
            }
            if waited >= milliseconds || stops() {
                return false;
            }
            fsleep(Delta::from_millis(1));
            waited = waited.saturating_add(1);
        }
        true
    }
}

/// State of an RMR.
enum RmrState {
    Unbound,
    Bound(Binding),
    /// Freed. A concurrent bind is refused.
    Freed,
}

impl RmrState {
    /// Begins another state. Ends the bind of this one: see [`Binding::end`].
    fn replace(&mut self, new: Self, pz: &Pz) {
        if let Self::Bound(binding) = core::mem::replace(self, new) {
            binding.end(pz);
        }
    }
}

/// Remote Memory Region.
#[pin_data]
pub(crate) struct Rmr {
    handle: u64,
    pz: InUse<Pz>,
    #[pin]
    state: Mutex<RmrState>,
    _counted: Counted,
}

impl Rmr {
    /// Creates an RMR: `dat_rmr_create`. Returns the handle.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - MODEL_NOT_SUPPORTED if work requests of the device cannot register memory.
    /// - INSUFFICIENT_RESOURCES.
    pub(super) fn create(rmrs: &Arc<Objects<Self>>, pz: InUse<Pz>) -> DatResult<u64> {
        if !pz.pd()?.has_fast_registration() {
            return Err(Kind::ModelNotSupported.into());
        }
        let entry = Objects::reserve(rmrs)?;
        let handle = entry.handle().into_raw();
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                pz,
                state <- new_mutex!(RmrState::Unbound, "Rmr::state"),
                _counted: Counted::new(census::Kind::Rmr),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        entry.commit(this)?;
        Ok(handle)
    }

    /// Binds the RMR to a part of an LMR, or unbinds it: `dat_rmr_bind`. Returns the RMR context;
    /// 0 after an unbind, and if the Endpoint is disconnected: the event then says that the request
    /// was flushed. A flushed bind leaves the RMR as it was, a flushed unbind ends its bind.
    ///
    /// The context is valid for peers once the request has been carried out. The device carries the
    /// request out before any later request of the Endpoint. The context of an earlier bind ends
    /// with this call. If the request of that bind was not carried out within a second, this call
    /// breaks the connection of its Endpoint.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (RMR) if the RMR is being freed.
    /// - INVALID_STATE if the state of the Endpoint does not allow a request.
    /// - INVALID_PARAMETER for flags or privileges that a bind does not know.
    /// - PROTECTION_VIOLATION for an LMR or an Endpoint of another PZ, or a segment that is not
    ///   within the LMR.
    /// - PRIVILEGES_VIOLATION for a privilege that the LMR does not grant to this side.
    /// - RESERVED_LMR, or MODEL_NOT_SUPPORTED for an LMR that `dat_lmr_allocate` has created.
    /// - LENGTH_ERROR if the segment has more pages than a region of the device.
    /// - INSUFFICIENT_RESOURCES.
    pub(super) fn bind(
        &self,
        lmr: impl FnOnce() -> DatResult<InUse<Lmr>>,
        ep: Arc<Ep>,
        arguments: &BindArguments,
    ) -> DatResult<u32> {
        let new = match arguments.segment.length {
            0 => None,
            _ => Some((
                self.prepare(lmr()?, ep.clone(), arguments)?,
                BoundReservation::new()?,
            )),
        };
        let region = new.as_ref().map(|(new, _)| &new.region);
        let context = region.map_or(0, |region| region.key());
        let mut state = self.state.lock();
        if matches!(*state, RmrState::Freed) {
            return Err(DatError::new(Kind::InvalidHandle, Self::INVALID));
        }
        let mut request = LocalRequest {
            action: LocalAction::Bind(self.handle, region),
            pz: self.pz.handle(),
            cookie: arguments.cookie,
            flags: arguments.flags,
        };
        let is_made = ep.post_local(&mut request, CallContext::Process)?;
        if !is_made {
            // The Endpoint is disconnected: the event says that the request was flushed. The region
            // of a bind ends with this call. An unbind needs no request to end the bind.
            if new.is_none() {
                state.replace(RmrState::Unbound, &self.pz);
            }
            return Ok(0);
        }
        let new = new.map(|(new, room)| {
            self.pz.add_bound(room, new.bound());
            new
        });
        state.replace(new.map_or(RmrState::Unbound, RmrState::Bound), &self.pz);
        Ok(context)
    }

    /// Creates the region of a bind.
    fn prepare(
        &self,
        lmr: InUse<Lmr>,
        ep: Arc<Ep>,
        arguments: &BindArguments,
    ) -> DatResult<Binding> {
        lmr.may_bind()?;
        let param = lmr.query();
        if param.pz != self.pz.handle() {
            return Err(Kind::ProtectionViolation.into());
        }
        let handle = lmr.handle();
        let region = Lmr::open_to_peers(lmr, &arguments.segment, arguments.privileges)?;
        let param = Param {
            pz: param.pz,
            lmr: handle,
            segment: arguments.segment,
            privileges: arguments.privileges,
            rmr_context: region.key(),
        };
        Ok(Binding { param, region, ep })
    }

    /// Returns the parameters: `dat_rmr_query`.
    pub(crate) fn query(&self) -> Param {
        let unbound = Param {
            pz: self.pz.handle(),
            ..Param::default()
        };
        match &*self.state.lock() {
            RmrState::Bound(binding) => binding.param,
            RmrState::Unbound | RmrState::Freed => unbound,
        }
    }

    /// Ends the bind.
    pub(super) fn release(&self) {
        let mut state = self.state.lock();
        if matches!(*state, RmrState::Bound(_)) {
            state.replace(RmrState::Unbound, &self.pz);
        }
    }
}

impl Object for Rmr {
    const KIND: HandleKind = HandleKind::Rmr;
    const INVALID: Subtype = Subtype::InvalidHandleRmr;

    /// Implements `dat_rmr_free`: the RMR context is not valid afterwards.
    fn shutdown(self: &Arc<Self>, _freeing: Freeing<'_, Self>) {
        self.state.lock().replace(RmrState::Freed, &self.pz);
    }
}
