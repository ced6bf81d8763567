// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Slots that objects reserve when they are created, so that a post allocates none.
//!
//! A DTO has its slot from the post until its event is taken. Meanwhile it is outstanding on its
//! queue, which its Endpoint or Shared Receive Queue limits; then its event is queued, which the
//! length of its Event Dispatcher limits, but for a batch; then a thread or an upcall has taken the
//! event:
//!
//! ```text
//!   Ep, Srq: max_request_dtos, max_recv_dtos --> Evd: qlen + BATCH --> TAKERS of each Evd
//! ```
//!
//! Posts that are about to be refused have slots, too: those are [`SPARE`].

use crate::{
    adapter::Adapter,
    error::Result, //
};
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// Completions that an Event Dispatcher may queue beyond its length.
pub(crate) const BATCH: usize = 8;

/// Contexts that may have taken an event of an Event Dispatcher at a time: upcalls of the policy
/// MANY.
pub(crate) const TAKERS: usize = 16;

/// Slots of an adapter beside those that its objects have reserved.
pub(crate) const SPARE: usize = 64;

/// Number of slots that an object has reserved, which changes under the adapter's lock.
pub(crate) struct Reserved(Atomic<usize>);

impl Reserved {
    pub(crate) fn none() -> Self {
        Self(Atomic::new(0))
    }

    /// Returns whether the object has reserved none.
    pub(crate) fn is_none(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    /// Reserves further slots, unless the object has as many. Context: process; sleeps.
    pub(crate) fn raise_to(&self, adapter: &Adapter, number: usize) -> Result {
        adapter.reserve(&self.0, number)
    }

    /// Lets other objects reserve the slots. The object has no DTO any more.
    pub(crate) fn release(&self, adapter: &Adapter) {
        adapter.release(&self.0);
    }
}
