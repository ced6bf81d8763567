// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of a listening ID beside a request for it.
//!
//! `rdma_cm` searches for the listener of a request under a lock of its own. Then it releases that
//! lock, and takes the handler mutex of the listener (`cma_ib_req_handler`). In between nothing
//! holds the listener. If it is the only one at its port of the device, `rdma_destroy_id` waits for
//! the request, because `ib_cm` does. If others listen at the same port, at other addresses or in
//! other network namespaces, they share an ID of `ib_cm`. Then `rdma_destroy_id` frees the listener
//! at once, and `rdma_cm` uses freed memory.
//!
//! So a listening ID ends in three steps:
//!
//! 1. It loses its address, and no search finds it from then on.
//! 2. The searches that have found it reach its handler mutex. They run in a per-CPU workqueue of
//!    the kernel (`ib_cm`), and do not sleep before they take the mutex.
//! 3. Those that wait for the mutex get it, and end.
//!
//! Each of the last two steps waits for a work item on each CPU. Many IDs share these waits, if a
//! caller carries out each step for all IDs before the next step.
//!
//! Steps 2 and 3 are repeated while requests arrive. The kernel cannot report whether a thread
//! waits for the handler mutex.

use super::{
    borrowed::{
        IdRef,
        Refusal, //
    },
    id::{
        CmId,
        Owned, //
    },
    request::{
        NewId,
        RequestDecision, //
    },
    Event,
    Handler, //
};
use crate::sys::percpu_period::PercpuPeriod;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce, //
    },
};

/// Address family of no address.
const AF_UNSPEC: u16 = bindings::AF_UNSPEC as u16;

/// Handler of a listener that stops: rejects requests, and counts them.
struct Stopping {
    requests: Atomic<u32>,
}

impl Handler for Stopping {
    fn event(self: Arc<Self>, _id: &IdRef<'_>, _event: Event<'_>) {}

    fn request<'a>(self: Arc<Self>, id: NewId<'a>, _private_data: &[u8]) -> RequestDecision<'a> {
        self.requests.fetch_add(1, Relaxed);
        id.refuse(Refusal::NoListener)
    }
}

/// Completed steps of the end of a listening ID.
#[derive(Default)]
pub(super) struct Steps {
    /// End of the first step, and the handler since then, if there was memory for it.
    hidden: SetOnce<(PercpuPeriod, Option<Arc<Stopping>>)>,
    /// End of the second one.
    reached: SetOnce<PercpuPeriod>,
}

impl Owned {
    /// Stops listening, so that the ID can be destroyed. Its handler gets no more requests.
    /// Requests for which `rdma_cm` has found the ID are rejected.
    ///
    /// Context: process; sleeps. Must not be called in a handler of `rdma_cm`.
    pub(super) fn stop_listening(&self) {
        self.hide();
        if let Some(reached) = self.await_searches() {
            reached.wait();
        }
    }

    /// Carries out the first step.
    fn hide(&self) {
        if self.steps.hidden.as_ref().is_some() {
            return;
        }
        self.give_up_address();
        // Without memory the previous handler stays. It rejects requests, too: the adapter takes no
        // more, or the service point has ended.
        let requests = Atomic::new(0);
        let stopping = Arc::new(Stopping { requests }, GFP_KERNEL).ok();
        if let Some(stopping) = &stopping {
            drop(self.hand_over(stopping.clone()));
        }
        let _ = self.steps.hidden.populate((PercpuPeriod::now(), stopping));
    }

    /// Carries out the second step, and returns its end. `None` before the first step.
    fn await_searches(&self) -> Option<PercpuPeriod> {
        if self.steps.reached.as_ref().is_none() {
            let (hidden, stopping) = self.steps.hidden.as_ref()?;
            hidden.wait();
            let requests = || stopping.as_ref().map_or(0, |it| it.requests.load(Relaxed));
            let mut seen = 0;
            let reached = loop {
                // The holder of the mutex wakes the first search that waits for it.
                self.wait_for_handler();
                let reached = PercpuPeriod::now();
                let now = requests();
                if now == seen {
                    break reached;
                }
                seen = now;
                reached.wait();
            };
            let _ = self.steps.reached.populate(reached);
        }
        self.steps.reached.as_ref().copied()
    }

    /// Removes the address of a listening ID, so that no later search finds it.
    fn give_up_address(&self) {
        // SAFETY: The ID is alive. `rdma_cm` compares the family of a listener's address before
        // the address, so `cma_match_private_data` finds no ID of the family AF_UNSPEC. It may run
        // now, and reads the family before or after this write of one aligned word. So does
        // `cma_ib_new_conn_id`, which only distinguishes AF_IB. `cma_check_port` still counts the
        // ID against a wildcard address. The end of a bound ID does not depend on its address.
        unsafe {
            let address = &raw mut (*self.raw.as_ptr()).route.addr.src_addr;
            address.cast::<u16>().write_volatile(AF_UNSPEC);
        }
    }
}

impl CmId {
    /// Returns whether the end of the ID needs the steps. Over iWARP a request names its listener,
    /// and `iw_cm` itself drops those that have not reached the handler yet: see "Known gaps" in
    /// `docs/security.md`.
    pub(super) fn ends_in_steps(&self) -> bool {
        self.own.context.listens() && !self.device.is_iwarp()
    }

    /// Hides a listening ID from requests, as the first step of its end. Later requests are
    /// rejected.
    ///
    /// Context: process; sleeps. Must not be called in a handler of `rdma_cm`.
    pub(crate) fn hide(&self) {
        if self.ends_in_steps() {
            self.own.hide();
        }
    }

    /// Waits for requests that have found a hidden ID, as the second step of its end. The drop
    /// carries out the last one.
    ///
    /// Context: process; sleeps. Must not be called in a handler of `rdma_cm`.
    pub(crate) fn await_searches(&self) {
        if self.ends_in_steps() {
            self.own.await_searches();
        }
    }
}
