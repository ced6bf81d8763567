// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! All queues of the module.

use crate::queue::Queue;
use kernel::{
    prelude::*,
    sync::{
        global_lock,
        Arc, //
    },
};

global_lock! {
    // SAFETY: `Queues::init` is called before anything else.
    unsafe(uninit) static QUEUES: Mutex<KVec<Arc<Queue>>> = KVec::new();
}

/// List of all queues: the core names a controller whose queues are to be disconnected.
pub(crate) struct Queues;

impl Queues {
    /// Initializes the list.
    ///
    /// # Safety
    ///
    /// Called once, before any other function of this type.
    pub(super) unsafe fn init() {
        // SAFETY: By the safety requirement.
        unsafe { QUEUES.init() };
    }

    /// Adds a queue.
    pub(crate) fn add(queue: &Arc<Queue>) -> Result {
        Ok(QUEUES.lock().push(queue.clone(), GFP_KERNEL)?)
    }

    /// Removes a queue. Context: process; the caller has a reference to it.
    pub(crate) fn remove(queue: &Arc<Queue>) {
        QUEUES.lock().retain(|other| !Arc::ptr_eq(other, queue));
    }

    /// Disconnects the queues that a predicate selects.
    pub(crate) fn release(selected: impl Fn(&Queue) -> bool) {
        for queue in QUEUES.lock().iter().filter(|queue| selected(queue)) {
            queue.release();
        }
    }
}
