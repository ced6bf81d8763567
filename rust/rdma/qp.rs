// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reliable-connected queue pairs whose states the caller of this module manages.
//!
//! `rdma_cm` does not manage the queue pair (`id->qp` stays NULL). So a queue pair can be created
//! before an address is known, accept receives in INIT, and be used for a connection request that
//! arrives later. The caller moves it through its states. The CM (connection manager) ID supplies
//! the attributes that each state needs.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

mod chain;
mod loopback;
mod post;

mod size;
mod state;

pub(super) use self::state::HeldQp;
pub(crate) use self::{
    chain::{
        RecvChain,
        SendChain,
        MAX_CHAIN,
        MAX_CHAIN_SGE, //
    },
    post::is_changing_state,
    size::{
        Capacity,
        ReadDepth, //
    },
};

use self::state::QpState;

use super::{
    charge::{
        Charge,
        Resource, //
    },
    cm::IdRef,
    cq::{
        Cq,
        Handler as CqHandler, //
    },
    leak::check_destroyed,
    pd::Pd,
    signals::without_signals,
    srq::SrqRef,
    wc::QpId, //
};
use crate::model::{
    handle::PerDirection,
    retry::Retry, //
};
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        ArcBorrow,
        Mutex, //
    },
};

/// Receiver of a queue pair's failures, and of its end.
pub(crate) trait Handler: Send + Sync + Sized + 'static {
    /// A value that the queue pair owns until it is destroyed.
    type Kept: Send + Sync;

    /// Handles a failure of the queue pair that no work completion reports.
    ///
    /// Context: that of the driver: rxe calls from the queue pair's own task, siw from softirq with
    /// its locks held. It may only queue work.
    fn failed(this: ArcBorrow<'_, Self>);

    /// Handles the end of the receives: the queue pair has stopped, and has reported the last
    /// receive that it has taken from a shared receive queue. Some drivers never call this.
    ///
    /// Context: as for [`Handler::failed`].
    fn last_receive(this: ArcBorrow<'_, Self>);

    /// Handles the end of the queue pair: it was destroyed, or could not be created. No completion
    /// of it arrives any more.
    ///
    /// Context: process; sleeps.
    fn destroyed(kept: Self::Kept);

    /// Handles a queue pair that the driver has failed to destroy. Completions of it may arrive as
    /// long as there is the device. The removal of the device waits for all references to it, so
    /// this must drop those that the value has.
    ///
    /// Context: process; sleeps.
    fn leaked(kept: Self::Kept);
}

/// Context of a queue pair's events. It passes them to the handler until they are ignored.
/// Dropped after the queue pair was destroyed.
struct QpContext<H: Handler> {
    handler: Arc<H>,
    /// Whether events are no longer reported.
    ignores_events: Atomic<bool>,
}

impl<H: Handler> QpContext<H> {
    fn new(handler: Arc<H>) -> Result<Arc<Self>> {
        let context = Self {
            handler,
            ignores_events: Atomic::new(false),
        };
        Ok(Arc::new(context, GFP_KERNEL_ACCOUNT)?)
    }
}

/// A value that the handler gets back when the queue pair ends.
struct KeptUntilEnd<H: Handler>(Option<H::Kept>);

impl<H: Handler> KeptUntilEnd<H> {
    /// Returns the value of a queue pair that cannot be destroyed.
    fn leak(&mut self) {
        if let Some(kept) = self.0.take() {
            H::leaked(kept);
        }
    }
}

impl<H: Handler> Drop for KeptUntilEnd<H> {
    fn drop(&mut self) {
        if let Some(kept) = self.0.take() {
            H::destroyed(kept);
        }
    }
}

/// A queue pair whose completions are reported to `C` and whose failures are reported to `H`.
///
/// # Invariants
///
/// `raw` is a live queue pair, owned by this value. Its context is `context`.
pub(crate) struct Qp<H: Handler, C: CqHandler> {
    raw: NonNull<bindings::ib_qp>,
    state: Pin<KBox<Mutex<QpState>>>,
    // `Some` until `raw` is destroyed.
    context: Option<Arc<QpContext<H>>>,
    kept: KeptUntilEnd<H>,
    /// Whether the transport sends the peer the key of the memory that an RDMA read writes to.
    shows_sinks: bool,
    _pd: Arc<Pd>,
    _cqs: PerDirection<Arc<Cq<C>>>,
    _srq: Option<SrqRef>,
    charge: Charge,
}

// SAFETY: `ib_core` allows the use of a queue pair from any thread.
unsafe impl<H: Handler, C: CqHandler> Send for Qp<H, C> {}
// SAFETY: As above.
unsafe impl<H: Handler, C: CqHandler> Sync for Qp<H, C> {}

impl<H: Handler, C: CqHandler> Qp<H, C> {
    /// Creates a queue pair for a port of the device and moves it to INIT, in which receives may be
    /// posted. With a shared receive queue, it takes its receives from there.
    ///
    /// Context: process; sleeps.
    pub(crate) fn new(
        handler: Arc<H>,
        kept: H::Kept,
        pd: Arc<Pd>,
        cqs: PerDirection<Arc<Cq<C>>>,
        srq: Option<SrqRef>,
        capacity: Capacity,
        port: u32,
    ) -> Result<Arc<Self>> {
        let kept = KeptUntilEnd(Some(kept));
        let capacity = match srq {
            Some(_) => capacity.without_receives(),
            None => capacity.with_receives(),
        };
        let charge = Charge::new(pd.device(), Resource::QueuePair(capacity))?;
        let shows_sinks = pd.device().is_iwarp();
        let state = KBox::<Mutex<QpState>>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let context = QpContext::new(handler)?;
        let mut attr = bindings::ib_qp_init_attr {
            event_handler: Some(event::<H>),
            qp_context: Arc::as_ptr(&context).cast_mut().cast::<c_void>(),
            send_cq: cqs.requests.as_ptr(),
            recv_cq: cqs.receives.as_ptr(),
            srq: srq.as_ref().map_or(core::ptr::null_mut(), SrqRef::as_ptr),
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            cap: capacity.as_raw(),
            ..Default::default()
        };
        // SAFETY: The protection domain, the completion queues and the shared receive queue are
        // alive, and the new value keeps them so. It also keeps the context.
        let raw = unsafe {
            bindings::ib_create_qp_kernel(pd.as_ptr(), &raw mut attr, c"kdapl".as_char_ptr())
        };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // SAFETY: The queue pair was just created. The value below owns it and the state.
        let new = unsafe { QpState::new(raw) };
        let Ok(state) = state.write_pin_init(new_mutex!(new, "Qp::state"));
        // INVARIANT: The queue pair was just created with `context` as its context. On failure the
        // drop destroys it.
        let this = Arc::new(
            Self {
                raw,
                state,
                context: Some(context),
                kept,
                shows_sinks,
                _pd: pd,
                _cqs: cqs,
                _srq: srq,
                charge,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        this.initialise(port)?;
        Ok(this)
    }

    /// Moves the queue pair from RESET to INIT.
    fn initialise(&self, port: u32) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_INIT,
            port_num: port,
            ..Default::default()
        };
        self.state.lock().modify(
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE
                | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
                | bindings::ib_qp_attr_mask_IB_QP_PORT
                | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS,
        )
    }

    /// Returns the queue pair number.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: By the type invariant the queue pair is alive.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// Returns the identity that completions of this queue pair have. Another queue pair may get it
    /// once this one is destroyed.
    pub(crate) fn id(&self) -> QpId {
        QpId(self.raw.as_ptr().addr())
    }

    /// Stops the reports of events. It is called when the owner has another queue pair, or none.
    /// Over iWARP the ID of a connection may keep this one alive for longer.
    pub(crate) fn ignore_events(&self) {
        if let Some(context) = &self.context {
            context.ignores_events.store(true, Release);
        }
    }

    /// Moves the queue pair from INIT to RTS (ready to send), with the attributes that the CM ID
    /// supplies. Returns the limits of RDMA reads that both sides accept.
    ///
    /// A peer that does not answer for `peer_timeout_ms` breaks the connection. `None` breaks it as
    /// late as the device allows, see [`Retry`]. Over iWARP TCP sets that time-out.
    ///
    /// Context: process; sleeps.
    pub(crate) fn connect(
        &self,
        id: &IdRef<'_>,
        mut depth: ReadDepth,
        peer_timeout_ms: Option<u32>,
    ) -> Result<ReadDepth> {
        // INIT again: the access rights depend on the peer, which is known only now.
        for state in [
            bindings::ib_qp_state_IB_QPS_INIT,
            bindings::ib_qp_state_IB_QPS_RTR,
            bindings::ib_qp_state_IB_QPS_RTS,
        ] {
            let mut attr = bindings::ib_qp_attr {
                qp_state: state,
                ..Default::default()
            };
            let mask = id.init_qp_attr(&mut attr)?;
            if depth.responder == 0 {
                // `ib_cm` derives the access rights from the peer's request.
                attr.qp_access_flags &= bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE as i32;
            }
            if mask & bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC != 0 {
                depth.responder = depth.responder.min(attr.max_dest_rd_atomic);
                attr.max_dest_rd_atomic = depth.responder;
            }
            if mask & bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC != 0 {
                let own = depth.initiator;
                depth.initiator = own.min(attr.max_rd_atomic);
                // A read to a peer that accepts none is sent, and refused. With 0 it would wait
                // for ever.
                attr.max_rd_atomic = depth.initiator.max(own.min(1));
            }
            if mask & bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT != 0 {
                self.limit_retries(&mut attr, peer_timeout_ms);
            }
            self.state.lock().modify(&mut attr, mask)?;
        }
        Ok(depth)
    }

    /// Sets the ACK time-out and the retry count. `ib_cm` has filled in a time-out for the path,
    /// and the retry count that the active side requested.
    ///
    /// Both are local to a queue pair. `rdma_set_ack_timeout()` would also delay the retries of
    /// `rdma_cm`'s own messages.
    fn limit_retries(&self, attr: &mut bindings::ib_qp_attr, peer_timeout_ms: Option<u32>) {
        let limits = self._pd.device().retry_limits(attr.timeout);
        let retry = match peer_timeout_ms {
            Some(milliseconds) => Retry::for_peer_timeout(milliseconds, limits),
            None => Retry::for_any_time(limits),
        };
        attr.timeout = retry.timeout;
        attr.retry_cnt = retry.count;
    }
}

impl<H: Handler, C: CqHandler> Drop for Qp<H, C> {
    fn drop(&mut self) {
        let raw = self.raw.as_ptr();
        // SAFETY: By the type invariant this value owns the queue pair, which any thread may
        // destroy. Its device is alive. No event occurs after the call has returned 0. A late
        // completion contains a number as its `wr_id`, not a pointer.
        let ret = unsafe {
            without_signals((*raw).device, || {
                bindings::ib_destroy_qp_user(raw, core::ptr::null_mut())
            })
        };
        if !check_destroyed("queue pair", ret, self.context.take(), &mut self.charge) {
            self.kept.leak();
        }
    }
}

/// Implements `ib_qp_init_attr.event_handler`.
///
/// # Safety
///
/// Only `ib_core` calls it, with an event and the context of a live queue pair that [`Qp::new`]
/// created.
unsafe extern "C" fn event<H: Handler>(event: *mut bindings::ib_event, context: *mut c_void) {
    // SAFETY: `Qp::new` passed the context, which lives as long as the queue pair.
    let context = unsafe { ArcBorrow::from_raw(context.cast_const().cast::<QpContext<H>>()) };
    if context.ignores_events.load(Acquire) {
        return;
    }
    // SAFETY: `ib_core` passes a valid event.
    match unsafe { (*event).event } {
        bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED => {
            H::last_receive(context.handler.as_arc_borrow());
        }
        bindings::ib_event_type_IB_EVENT_QP_FATAL
        | bindings::ib_event_type_IB_EVENT_QP_REQ_ERR
        | bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR => {
            H::failed(context.handler.as_arc_borrow());
        }
        _ => {}
    }
}
