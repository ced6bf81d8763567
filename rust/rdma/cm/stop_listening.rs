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
//! So a listening ID first loses its address, and no search finds it from then on. Then the
//! searches that have found it end: they run in a per-CPU workqueue of the kernel (`ib_cm`), and
//! do not sleep before they take the handler mutex.

use super::{
    borrowed::{
        IdRef,
        Refusal, //
    },
    id::Owned,
    request::{
        NewId,
        RequestDecision, //
    },
    Event,
    Handler, //
};
use crate::sys::workqueue::wait_for_percpu_workers;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Address family of no address.
const AF_UNSPEC: u16 = bindings::AF_UNSPEC as u16;

/// Handler of a listener that stops: rejects requests.
struct Stopping;

impl Handler for Stopping {
    fn event(self: Arc<Self>, _id: &IdRef<'_>, _event: Event<'_>) {}

    fn request<'a>(self: Arc<Self>, id: NewId<'a>, _private_data: &[u8]) -> RequestDecision<'a> {
        id.refuse(Refusal::NobodyListens)
    }
}

impl Owned {
    /// Stops listening, so that the ID can be destroyed. Its handler gets no more requests.
    /// Requests for which `rdma_cm` has found the ID are rejected.
    ///
    /// Context: process; sleeps. Must not be called in a handler of `rdma_cm`.
    pub(super) fn stop_listening(&self) {
        self.give_up_address();
        // Without memory the previous handler stays, which rejects requests as well: its service
        // point has ended.
        if let Ok(stopping) = Arc::new(Stopping, GFP_KERNEL) {
            drop(self.hand_over(stopping));
        }
        // After this each search waits for the handler mutex, or is over.
        wait_for_percpu_workers();
        // The holder of the mutex wakes the searches that wait for it. They are over after this.
        self.wait_for_handler();
        wait_for_percpu_workers();
    }

    /// Removes the address of a listening ID, so that no later search finds it.
    fn give_up_address(&self) {
        // SAFETY: The ID is alive. `rdma_cm` compares the family of a listener's address before
        // the address: `cma_match_private_data` and `cma_check_port` find no ID of the family
        // AF_UNSPEC. They may run now, and read the family before or after this write of one
        // aligned word. The end of an ID that is bound to a device does not depend on its address.
        unsafe {
            let address = &raw mut (*self.raw.as_ptr()).route.addr.src_addr;
            address.cast::<u16>().write_volatile(AF_UNSPEC);
        }
    }
}
