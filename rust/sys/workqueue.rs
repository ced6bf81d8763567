// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The module's own workqueues: for upcalls, in threads and in soft interrupts, for closes of
//! released files, for calls that no signal may reach, for waits on the pools of the CPUs, and for
//! all other work.
//!
//! A work item on a system queue may still run after the module's unload. Destroying an own queue
//! waits for all its items. Upcalls of a storage consumer may be necessary to free memory, so their
//! queue needs no memory to make progress.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

mod delayed;

use delayed::give_back;
pub(crate) use delayed::{
    cancel_delayed,
    cancel_delayed_sync, //
};

use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        Arc, //
    },
    workqueue::{
        self,
        HasWork,
        Queue,
        Work,
        WorkItem, //
    },
};

/// A queue while its [`OwnedQueue`] exists, otherwise null.
type QueuePointer = Atomic<*mut bindings::workqueue_struct>;

/// The queue for all work that has no queue of its own.
static QUEUE: QueuePointer = Atomic::new(core::ptr::null_mut());

/// The queue for upcalls.
static UPCALLS: QueuePointer = Atomic::new(core::ptr::null_mut());

/// The queue for upcalls in soft interrupts.
static BH_UPCALLS: QueuePointer = Atomic::new(core::ptr::null_mut());

/// The queue for closes of released files.
static RELEASES: QueuePointer = Atomic::new(core::ptr::null_mut());

/// Closes that run at once. One may take seconds, and a user may have a thousand.
const MOST_RELEASES: i32 = 16;

/// The queue for [calls in a worker](super::worker_call).
static CALLS: QueuePointer = Atomic::new(core::ptr::null_mut());

/// The queue for [`PercpuPeriod`](super::percpu_period::PercpuPeriod).
static PERIODS: QueuePointer = Atomic::new(core::ptr::null_mut());

/// Owner of one of the module's queues. The module creates it before, and drops it after, all that
/// queues work on it.
pub(crate) struct OwnedQueue(&'static QueuePointer);

impl OwnedQueue {
    /// Creates the queue for all work that has no queue of its own.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the queue exists already, `ENOMEM`.
    pub(crate) fn new(name: &'static CStr) -> Result<Self> {
        Self::create(&QUEUE, name, false, 0)
    }

    /// Creates the queue for upcalls. Fails as [`OwnedQueue::new`] does.
    pub(crate) fn for_upcalls(name: &'static CStr) -> Result<Self> {
        Self::create(&UPCALLS, name, true, 0)
    }

    /// Creates the queue for upcalls in soft interrupts. Fails as [`OwnedQueue::new`] does.
    pub(crate) fn for_bh_upcalls(name: &'static CStr) -> Result<Self> {
        // SAFETY: `name` is NUL-terminated.
        let queue = unsafe { bindings::kdapl_helper_alloc_bh_workqueue(name.as_char_ptr()) };
        Self::publish(&BH_UPCALLS, queue)
    }

    /// Creates the queue for closes of released files. Fails as [`OwnedQueue::new`] does.
    pub(crate) fn for_releases(name: &'static CStr) -> Result<Self> {
        Self::create(&RELEASES, name, false, MOST_RELEASES)
    }

    /// Creates the queue for [calls in a worker](super::worker_call). Fails as [`OwnedQueue::new`]
    /// does.
    pub(crate) fn for_calls(name: &'static CStr) -> Result<Self> {
        Self::create(&CALLS, name, false, 0)
    }

    /// Creates the queue for [`PercpuPeriod`](super::percpu_period::PercpuPeriod).
    ///
    /// # Errors
    ///
    /// As for [`OwnedQueue::new`].
    pub(crate) fn for_periods(name: &'static CStr) -> Result<Self> {
        // SAFETY: `name` is NUL-terminated.
        let queue = unsafe { bindings::kdapl_helper_alloc_percpu_workqueue(name.as_char_ptr()) };
        Self::publish(&PERIODS, queue)
    }

    fn create(
        pointer: &'static QueuePointer,
        name: &'static CStr,
        reclaim: bool,
        most: i32,
    ) -> Result<Self> {
        let name = name.as_char_ptr();
        // SAFETY: `name` is NUL-terminated.
        let queue = unsafe { bindings::kdapl_helper_alloc_workqueue(name, reclaim, most) };
        Self::publish(pointer, queue)
    }

    /// Stores a queue that was just created, or null, in its place.
    fn publish(
        pointer: &'static QueuePointer,
        queue: *mut bindings::workqueue_struct,
    ) -> Result<Self> {
        if queue.is_null() {
            return Err(ENOMEM);
        }
        if pointer.cmpxchg(core::ptr::null_mut(), queue, Full).is_err() {
            // SAFETY: The queue was just created and is not visible to other threads.
            unsafe { bindings::destroy_workqueue(queue) };
            return Err(EBUSY);
        }
        Ok(Self(pointer))
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        let queue = self.0.load(Acquire);
        // SAFETY: The queue exists, and the caller may sleep. Afterwards no work item removes an
        // object from a table, which would queue another one after a grace period.
        unsafe { bindings::__flush_workqueue(queue) };
        // SAFETY: The caller may sleep. The call waits for the grace periods after which work items
        // are queued.
        unsafe { bindings::rcu_barrier() };
        // SAFETY: `new` stored the queue, and no other code destroys it. The call waits for its
        // items, and for those that they queue in turn. These must find the queue, so the pointer
        // is cleared afterwards.
        unsafe { bindings::destroy_workqueue(queue) };
        self.0.store(core::ptr::null_mut(), Release);
    }
}

/// Returns the module's queue for calls of C. It exists while a part of the module does that is
/// dropped before its [`OwnedQueue`].
pub(super) fn raw() -> *mut bindings::workqueue_struct {
    QUEUE.load(Acquire)
}

/// Returns the queue for all work that has no queue of its own. It is unbound, so work may sleep.
/// Returns the system's queue if the module's does not exist.
///
/// The module itself owns the queue. It exists before, and longer than, everything that queues
/// work.
pub(crate) fn queue() -> &'static Queue {
    queue_at(&QUEUE)
}

/// As [`queue`], for closes of released files, so that these delay no other work.
pub(crate) fn release_queue() -> &'static Queue {
    queue_at(&RELEASES)
}

/// As [`queue`], for [calls in a worker](super::worker_call), which may block for seconds.
pub(super) fn call_queue() -> &'static Queue {
    queue_at(&CALLS)
}

/// As [`queue`], for upcalls.
pub(crate) fn upcall_queue() -> &'static Queue {
    queue_at(&UPCALLS)
}

/// As [`queue`], for upcalls in soft interrupts. Its items must not sleep. Those of one CPU run one
/// after the other, in the order in which they were queued.
pub(crate) fn bh_upcall_queue() -> &'static Queue {
    queue_at(&BH_UPCALLS)
}

/// Cancels a work item, and waits for it if it is running. The run has dropped its reference then.
///
/// Not `flush_work()`: in a worker of a queue for memory reclaim, the kernel warns of a wait for an
/// item of another queue.
///
/// Context: process; sleeps.
pub(crate) fn cancel_sync<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID>,
{
    let ptr = Arc::as_ptr(item).cast_mut();
    // SAFETY: `ptr` is a live object, so its work item is initialised.
    let work = unsafe { Work::raw_get(T::raw_get_work(ptr)) };
    // SAFETY: The work item is initialised, and valid as long as `item`. The caller may sleep.
    let pending = unsafe { bindings::cancel_work_sync(work) };
    give_back(item, pending);
}

fn queue_at(pointer: &'static QueuePointer) -> &'static Queue {
    match pointer.load(Acquire) {
        queue if queue.is_null() => workqueue::system(),
        // SAFETY: The pointer is not null, so the owner exists or is in its drop. No caller is left
        // when the queue is freed: the parts of the module that use this queue are dropped before
        // its owner, and the destruction waits for the work items of the queue.
        queue => unsafe { Queue::from_raw(queue.cast_const().cast()) },
    }
}

/// Returns the queue for [`PercpuPeriod`](super::percpu_period::PercpuPeriod). It exists until all
/// listeners of the module have ended.
pub(super) fn period_queue() -> *mut bindings::workqueue_struct {
    PERIODS.load(Acquire)
}
