// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of a queue pair, and its move to ERR.
//!
//! Over iWARP the driver of a connecting queue pair looks at its state when the peer answers. Some
//! drivers expect that it has not changed since the connect
//! ([`DriverProperties::may_fail_amid_connect`]). With such a driver the move to ERR is delayed
//! until the outcome of the connect or accept is known.
//!
//! [`DriverProperties::may_fail_amid_connect`]:
//!     crate::model::driver::DriverProperties::may_fail_amid_connect

use super::{
    CqHandler,
    Handler,
    Qp, //
};
use crate::rdma::signals::without_signals;
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::lock::{
        mutex::MutexBackend,
        Guard, //
    },
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    },
};

/// Longest delay of a move to ERR, in milliseconds, for a caller that waits for it. A live peer has
/// answered by then.
const MAX_DELAY_MS: i64 = 5_000;

/// Progress of the move to ERR.
#[derive(Clone, Copy)]
enum Failure {
    /// The queue pair is not to be moved.
    None,
    /// The move follows the outcome of the connect or accept. It was requested at this time.
    Delayed(Instant<Monotonic>),
    /// The queue pair is in ERR.
    Done,
}

/// State of a queue pair. The holder of the reference may change it, or keep it unchanged.
///
/// # Invariants
///
/// The queue pair is alive. (The [`Qp`] that owns this value destroys it.)
pub(in crate::rdma) struct QpState {
    raw: NonNull<bindings::ib_qp>,
    /// Whether a connect or an accept over iWARP has no outcome yet.
    call_is_pending: bool,
    failure: Failure,
}

// SAFETY: `ib_core` allows the use of a queue pair from any thread.
unsafe impl Send for QpState {}

impl QpState {
    /// The state of a new queue pair.
    ///
    /// # Safety
    ///
    /// The queue pair is alive as long as the new value.
    pub(super) unsafe fn new(raw: NonNull<bindings::ib_qp>) -> Self {
        // INVARIANT: The caller guarantees that the queue pair is alive.
        Self {
            raw,
            call_is_pending: false,
            failure: Failure::None,
        }
    }

    /// Changes the state and the attributes that `mask` names. Context: process; sleeps.
    pub(super) fn modify(&mut self, attr: &mut bindings::ib_qp_attr, mask: u32) -> Result {
        let raw = self.raw.as_ptr();
        // SAFETY: By the type invariant the queue pair is alive, and so is its device. `attr` is
        // initialised. Any thread may change a queue pair.
        let ret = unsafe {
            without_signals((*raw).device, || {
                bindings::ib_modify_qp(raw, attr, mask as i32)
            })
        };
        kernel::error::to_result(ret)
    }

    /// Begins a connect or an accept over iWARP. [`HeldQp::call_ended`] ends it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the queue pair has failed.
    pub(in crate::rdma) fn begin_call(&mut self) -> Result {
        if !matches!(self.failure, Failure::None) {
            return Err(EINVAL);
        }
        self.call_is_pending = true;
        Ok(())
    }

    fn move_to_err(&mut self) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_ERR,
            ..Default::default()
        };
        self.failure = Failure::Done;
        self.modify(&mut attr, bindings::ib_qp_attr_mask_IB_QP_STATE)
    }
}

/// A queue pair that a CM ID keeps over iWARP.
pub(in crate::rdma) trait HeldQp: Send + Sync {
    /// Notes that the outcome of the connect or accept is known. A delayed move to ERR follows.
    ///
    /// Context: process; sleeps.
    fn call_ended(&self);
}

impl<H: Handler, C: CqHandler> Qp<H, C> {
    /// Prevents changes of the state until the guard is dropped. Context: process; sleeps.
    pub(in crate::rdma) fn hold_state(&self) -> Guard<'_, QpState, MutexBackend> {
        self.state.lock()
    }

    /// Moves the queue pair to ERR: all posted requests complete as flushed. With a driver that
    /// does not expect it now, this follows the outcome of the connect or accept.
    ///
    /// Context: process; sleeps.
    pub(crate) fn fail(&self) -> Result {
        let mut state = self.state.lock();
        if state.call_is_pending && !self._pd.device().driver().may_fail_amid_connect {
            if matches!(state.failure, Failure::None) {
                state.failure = Failure::Delayed(Instant::now());
            }
            return Ok(());
        }
        state.move_to_err()
    }

    /// Waits for a delayed move to ERR, until [`MAX_DELAY_MS`] after its request. Then makes it, as
    /// the device may write to the memory of posted receives until then. Returns whether it was
    /// delayed.
    ///
    /// Context: process; sleeps.
    pub(crate) fn end_delay(&self) -> bool {
        let mut was_delayed = false;
        loop {
            let mut state = self.state.lock();
            let Failure::Delayed(since) = state.failure else {
                return was_delayed;
            };
            was_delayed = true;
            if since.elapsed().as_millis() >= MAX_DELAY_MS {
                let _ = state.move_to_err();
            } else {
                drop(state);
                fsleep(Delta::from_millis(1));
            }
        }
    }
}

impl<H: Handler, C: CqHandler> HeldQp for Qp<H, C> {
    fn call_ended(&self) {
        let mut state = self.state.lock();
        state.call_is_pending = false;
        if matches!(state.failure, Failure::Delayed(_)) {
            // This fails only if the device is dead, and then there is nothing to stop.
            let _ = state.move_to_err();
        }
    }
}
