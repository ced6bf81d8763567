// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The module's own workqueue.
//!
//! Work on a system queue may still run after `rmmod`; destroying a queue of one's own waits for
//! all that is on it. And a delayed work item can be taken back, which the kernel crate cannot.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    },
    workqueue::{
        HasWork,
        Queue,
        WorkItem, //
    },
};

/// The queue, while the module is loaded.
static QUEUE: Atomic<*mut bindings::workqueue_struct> = Atomic::new(core::ptr::null_mut());

/// Owner of the module's queue: made first at load, dropped last at unload.
pub(crate) struct OwnedQueue(());

impl OwnedQueue {
    /// Makes the queue.
    pub(crate) fn new(name: &'static CStr) -> Result<Self> {
        // SAFETY: `name` is NUL-terminated.
        let queue = unsafe { bindings::kdapl_helper_alloc_workqueue(name.as_char_ptr()) };
        if queue.is_null() {
            return Err(ENOMEM);
        }
        QUEUE.store(queue, Release);
        Ok(Self(()))
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        // SAFETY: `new` stored a queue, which nobody else destroys. What is queued on it runs
        // before this returns, and nobody queues any more: the module is going.
        unsafe { bindings::destroy_workqueue(QUEUE.load(Acquire)) };
    }
}

/// The module's queue: unbound, for work that may sleep.
pub(crate) fn queue() -> &'static Queue {
    // SAFETY: The module's `init` makes the queue before anything that could call this, and its
    // owner is dropped after everything that could.
    unsafe { Queue::from_raw(QUEUE.load(Acquire).cast_const().cast()) }
}

/// Takes a delayed work item back before it runs.
///
/// Does not wait for one that is running already, so it may be called from what that one waits
/// for.
pub(crate) fn cancel_delayed<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID>,
{
    let ptr = Arc::as_ptr(item).cast_mut();
    // SAFETY: `ptr` is a live object, so its work item is initialised; every work item that is
    // queued through `enqueue_delayed` lies at the start of a `delayed_work`.
    let pending = unsafe {
        let work = kernel::workqueue::Work::raw_get(T::raw_get_work(ptr));
        bindings::cancel_delayed_work(work.cast())
    };
    give_back(item, pending);
}

/// As [`cancel_delayed`], and waits for one that is running. Context: process; sleeps.
pub(crate) fn cancel_delayed_sync<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID>,
{
    let ptr = Arc::as_ptr(item).cast_mut();
    // SAFETY: As in `cancel_delayed`.
    let pending = unsafe {
        let work = kernel::workqueue::Work::raw_get(T::raw_get_work(ptr));
        bindings::cancel_delayed_work_sync(work.cast())
    };
    give_back(item, pending);
}

/// Drops the reference that the queue had of an item which was taken back.
fn give_back<T>(item: &Arc<T>, pending: bool) {
    let ptr = Arc::as_ptr(item);
    if pending {
        // SAFETY: `enqueue_delayed` gave the queue a reference; the item will not run, so the
        // reference is ours now.
        drop(unsafe { Arc::from_raw(ptr) });
    }
}
