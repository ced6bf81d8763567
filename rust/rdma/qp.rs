// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reliable-connected queue pairs that the user of this module manages itself.
//!
//! `rdma_cm` is not told of the queue pair (`id->qp` stays NULL), so that it can be made before an
//! address is known, take receives in INIT, and be given to a request that came later. Moving it
//! through its states is up to the caller; what each state needs comes from the CM id.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

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
    device::{
        Transport,
        PORT, //
    },
    leak::unless_destroyed,
    pd::Pd,
    wr::{
        self,
        Request,
        SgList, //
    },
};
use crate::model::retry::Retry;
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
        lock::{
            mutex::MutexBackend,
            Guard, //
        },
        Arc,
        ArcBorrow,
        Mutex, //
    },
};

/// Who hears of a queue pair that fails.
pub(crate) trait Handler: Send + Sync + Sized + 'static {
    /// The queue pair failed without a work completion to tell it.
    ///
    /// Context: the provider's, whatever that is: rxe calls from the queue pair's own task, siw from
    /// softirq with its locks held. Only queues work.
    fn failed(this: ArcBorrow<'_, Self>);
}

/// Context of a queue pair's events: reports failures to the user, until that ignores them.
struct Failures<H> {
    handler: Arc<H>,
    are_ignored: Atomic<bool>,
}

/// How large a queue pair is.
#[derive(Clone, Copy)]
pub(crate) struct Capacity {
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
}

/// RDMA reads in flight that both sides agreed on.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReadDepth {
    /// Reads that the peer may have in flight here.
    pub(crate) responder: u8,
    /// Reads that we may have in flight there.
    pub(crate) initiator: u8,
}

/// A queue pair whose queues report to `C` and whose failures are reported to `H`.
///
/// # Invariants
///
/// `raw` is a live queue pair, ours to destroy, and its context is `failures`.
pub(crate) struct Qp<H: Handler, C: CqHandler> {
    raw: NonNull<bindings::ib_qp>,
    /// Held by what must not meet a change of state: see [`Qp::hold_state`].
    state: Pin<KBox<Mutex<()>>>,
    // Some until `raw` is destroyed.
    failures: Option<Arc<Failures<H>>>,
    /// Whether the key of memory that RDMA reads write to goes to the peer.
    shows_sinks: bool,
    _pd: Arc<Pd>,
    _send_cq: Arc<Cq<C>>,
    _recv_cq: Arc<Cq<C>>,
    _charge: Charge,
}

// SAFETY: `ib_core` allows the use of a queue pair from any thread.
unsafe impl<H: Handler, C: CqHandler> Send for Qp<H, C> {}
// SAFETY: As above.
unsafe impl<H: Handler, C: CqHandler> Sync for Qp<H, C> {}

impl<H: Handler, C: CqHandler> Qp<H, C> {
    /// Makes a queue pair and moves it to INIT, where receives may be posted.
    ///
    /// Context: process; sleeps.
    pub(crate) fn new(
        handler: Arc<H>,
        pd: Arc<Pd>,
        send_cq: Arc<Cq<C>>,
        recv_cq: Arc<Cq<C>>,
        capacity: Capacity,
    ) -> Result<Arc<Self>> {
        let charge = Charge::new(pd.device(), Resource::QueuePair(capacity))?;
        let shows_sinks = pd.device().transport() == Transport::Iwarp;
        let state = KBox::pin_init(new_mutex!((), "Qp::state"), GFP_KERNEL_ACCOUNT)?;
        let are_ignored = Atomic::new(false);
        let failures = Arc::new(
            Failures {
                handler,
                are_ignored,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let mut attr = bindings::ib_qp_init_attr {
            event_handler: Some(event::<H>),
            qp_context: Arc::as_ptr(&failures).cast_mut().cast::<c_void>(),
            send_cq: send_cq.as_ptr(),
            recv_cq: recv_cq.as_ptr(),
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            cap: bindings::ib_qp_cap {
                // Drivers round up to a power of two, and shift by the logarithm: not of 0.
                max_send_wr: capacity.max_send_wr.max(1),
                max_recv_wr: capacity.max_recv_wr.max(1),
                max_send_sge: capacity.max_send_sge.max(1),
                max_recv_sge: capacity.max_recv_sge.max(1),
                ..Default::default()
            },
            ..Default::default()
        };
        // SAFETY: Protection domain and completion queues are alive, and are kept so below; so is
        // the context.
        let raw = unsafe {
            bindings::ib_create_qp_kernel(pd.as_ptr(), &raw mut attr, c"kdapl".as_char_ptr())
        };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: Just made, with `failures` as its context. On failure the drop destroys it.
        let this = Arc::new(
            Self {
                raw,
                state,
                failures: Some(failures),
                shows_sinks,
                _pd: pd,
                _send_cq: send_cq,
                _recv_cq: recv_cq,
                _charge: charge,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        this.initialise()?;
        Ok(this)
    }

    /// RESET to INIT.
    fn initialise(&self) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_INIT,
            port_num: PORT,
            ..Default::default()
        };
        self.modify(
            &mut attr,
            bindings::ib_qp_attr_mask_IB_QP_STATE
                | bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX
                | bindings::ib_qp_attr_mask_IB_QP_PORT
                | bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS,
        )
    }

    /// The number that the peer knows it by.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: By the invariant it is alive.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// Keeps others from changing the state, until the guard is dropped. Context: process; sleeps.
    pub(super) fn hold_state(&self) -> Guard<'_, (), MutexBackend> {
        self.state.lock()
    }

    /// Reports no failure from now on: its user has another queue pair, or none. Over iWARP the id of a
    /// connection may keep this one for a while.
    pub(crate) fn ignore_failures(&self) {
        if let Some(failures) = &self.failures {
            failures.are_ignored.store(true, Release);
        }
    }

    fn modify(&self, attr: &mut bindings::ib_qp_attr, mask: u32) -> Result {
        let _alone = self.hold_state();
        // SAFETY: The queue pair is alive, and `attr` is initialised.
        let ret = unsafe { bindings::ib_modify_qp(self.raw.as_ptr(), attr, mask as i32) };
        kernel::error::to_result(ret)
    }

    /// Moves the queue pair from INIT to RTS, with what the CM id knows of the peer. Returns how many
    /// RDMA reads both sides can take.
    ///
    /// A peer that does not answer is given up after `peer_timeout_ms`, see [`Retry`]. Over iWARP TCP
    /// decides that.
    ///
    /// Context: process; sleeps.
    pub(crate) fn connect(
        &self,
        id: &IdRef<'_>,
        mut depth: ReadDepth,
        peer_timeout_ms: u32,
    ) -> Result<ReadDepth> {
        // INIT again: now that the peer is known, so are the access rights.
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
            if mask & bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC != 0 {
                depth.responder = depth.responder.min(attr.max_dest_rd_atomic);
                attr.max_dest_rd_atomic = depth.responder;
            }
            if mask & bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC != 0 {
                depth.initiator = depth.initiator.min(attr.max_rd_atomic);
                attr.max_rd_atomic = depth.initiator;
            }
            if mask & bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT != 0 {
                self.limit_retries(&mut attr, peer_timeout_ms);
            }
            self.modify(&mut attr, mask)?;
        }
        Ok(depth)
    }

    /// Sets when requests are sent again, and how often. `ib_cm` has filled in what suits the path, and
    /// the retry count that the active side asked for.
    ///
    /// Both are local to a queue pair. `rdma_set_ack_timeout()` would also make `rdma_cm` wait as long
    /// before it repeats a lost message of its own.
    fn limit_retries(&self, attr: &mut bindings::ib_qp_attr, peer_timeout_ms: u32) {
        let bounds = self._pd.device().retry_bounds(attr.timeout);
        let retry = Retry::after(peer_timeout_ms, bounds);
        attr.timeout = retry.timeout;
        attr.retry_cnt = retry.count;
    }

    /// To ERR: all that is posted completes as flushed. Context: process; sleeps.
    pub(crate) fn fail(&self) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_ERR,
            ..Default::default()
        };
        self.modify(&mut attr, bindings::ib_qp_attr_mask_IB_QP_STATE)
    }

    /// Posts a request. Context: any but a CQ's callback.
    ///
    /// # Errors
    ///
    /// `EPERM` for an RDMA read whose answer would go to [memory of the kernel] where the peer gets
    /// its key: that key opens all memory. `ENOMEM` if the queue is full, whatever else the provider
    /// says.
    ///
    /// [memory of the kernel]: super::kernel_memory::KernelMemory
    pub(crate) fn post_send(
        &self,
        wr_id: u64,
        request: Request,
        fence: bool,
        list: &SgList,
    ) -> Result {
        if self.shows_sinks && matches!(request, Request::RdmaRead(_)) && list.opens_all() {
            return Err(EPERM);
        }
        let wr = wr::build(wr_id, request, fence, list);
        // SAFETY: The queue pair is alive; request and list live through the call, which copies. What
        // lies behind the common part is what the opcode asks for.
        let ret = unsafe { bindings::kdapl_helper_ib_post_send(self.raw.as_ptr(), wr.as_raw()) };
        kernel::error::to_result(ret)
    }

    /// Posts a receive. Context: any but a CQ's callback.
    pub(crate) fn post_recv(&self, wr_id: u64, list: &SgList) -> Result {
        let (sg_list, num_sge) = list.as_raw();
        // SAFETY: Zeroes are a work request. (`default()` makes a call of each part of it.)
        let mut wr: bindings::ib_recv_wr = unsafe { core::mem::zeroed() };
        (wr.sg_list, wr.num_sge) = (sg_list, num_sge);
        wr.__bindgen_anon_1.wr_id = wr_id;
        // SAFETY: As for `post_send`.
        let ret = unsafe { bindings::kdapl_helper_ib_post_recv(self.raw.as_ptr(), &raw const wr) };
        kernel::error::to_result(ret)
    }
}

impl<H: Handler, C: CqHandler> Drop for Qp<H, C> {
    fn drop(&mut self) {
        // SAFETY: By the invariant it is ours. No event comes once this has returned 0; a late
        // completion finds a number in `wr_id`, no pointer.
        let ret = unsafe { bindings::ib_destroy_qp_user(self.raw.as_ptr(), core::ptr::null_mut()) };
        unless_destroyed("queue pair", ret, self.failures.take());
    }
}

/// `ib_qp_init_attr.event_handler`.
///
/// # Safety
///
/// Only `ib_core` calls it, with an event and the context of a live queue pair that [`Qp::new`] made.
unsafe extern "C" fn event<H: Handler>(event: *mut bindings::ib_event, context: *mut c_void) {
    // SAFETY: `ib_core` passes a valid event.
    let kind = unsafe { (*event).event };
    if matches!(
        kind,
        bindings::ib_event_type_IB_EVENT_QP_FATAL
            | bindings::ib_event_type_IB_EVENT_QP_REQ_ERR
            | bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR
    ) {
        // SAFETY: The context is what `Qp::new` gave, alive while the queue pair is.
        let failures = unsafe { ArcBorrow::from_raw(context.cast_const().cast::<Failures<H>>()) };
        if !failures.are_ignored.load(Acquire) {
            H::failed(failures.handler.as_arc_borrow());
        }
    }
}
