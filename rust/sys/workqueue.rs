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
            Full,
            Release, //
        },
        Arc, //
    },
    workqueue::{
        self,
        HasDelayedWork,
        Queue,
        Work,
        WorkItem, //
    },
};

/// The queue, while there is an [`OwnedQueue`]; null otherwise.
static QUEUE: Atomic<*mut bindings::workqueue_struct> = Atomic::new(core::ptr::null_mut());

/// Owner of the module's queue: made first at load, dropped last at unload.
pub(crate) struct OwnedQueue(());

impl OwnedQueue {
    /// Makes the queue.
    ///
    /// # Errors
    ///
    /// `EBUSY` if there is one already, `ENOMEM`.
    pub(crate) fn new(name: &'static CStr) -> Result<Self> {
        // SAFETY: `name` is NUL-terminated.
        let queue = unsafe { bindings::kdapl_helper_alloc_workqueue(name.as_char_ptr()) };
        if queue.is_null() {
            return Err(ENOMEM);
        }
        if QUEUE.cmpxchg(core::ptr::null_mut(), queue, Full).is_err() {
            // SAFETY: Just made, and nobody else has seen it.
            unsafe { bindings::destroy_workqueue(queue) };
            return Err(EBUSY);
        }
        Ok(Self(()))
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        let queue = QUEUE.load(Acquire);
        // SAFETY: `new` stored a queue, which nobody else destroys. What is queued on it runs
        // before this returns. What that queues lands on it too: the pointer is taken away after.
        unsafe { bindings::destroy_workqueue(queue) };
        QUEUE.store(core::ptr::null_mut(), Release);
    }
}

/// The module's queue: unbound, for work that may sleep. The system's where there is none.
///
/// Its owner is the module itself: it is made before, and dropped after, everything that queues work.
pub(crate) fn queue() -> &'static Queue {
    match QUEUE.load(Acquire) {
        queue if queue.is_null() => workqueue::system(),
        // SAFETY: Not null: its owner has not come to the end of its drop.
        queue => unsafe { Queue::from_raw(queue.cast_const().cast()) },
    }
}

/// Takes a delayed work item back before it runs.
///
/// Does not wait for one that is running already, so it may be called from what that one waits
/// for.
///
/// Only for an item that lies in a [`DelayedWork`](workqueue::DelayedWork), since the kernel looks at
/// the timer beside it. A plain work item is refused by the compiler:
///
/// ```compile_fail,E0277
/// # use crate::sys::workqueue::cancel_delayed;
/// # use kernel::{impl_has_work, prelude::*, sync::Arc, workqueue::{Work, WorkItem}};
/// #[pin_data]
/// struct Plain {
///     #[pin]
///     work: Work<Plain>,
/// }
///
/// impl_has_work! { impl HasWork<Self> for Plain { self.work } }
/// # impl WorkItem for Plain {
/// #     type Pointer = Arc<Self>;
/// #     fn run(_this: Arc<Self>) {}
/// # }
///
/// fn cancel(plain: &Arc<Plain>) {
///     cancel_delayed::<Plain, 0>(plain); // `Plain` is no `HasDelayedWork`.
/// }
/// ```
///
/// An item that the queue holds in another way than by an `Arc` is refused too, since the reference that
/// the queue had is given back:
///
/// ```compile_fail,E0271
/// # use crate::sys::workqueue::cancel_delayed;
/// # use kernel::{impl_has_delayed_work, prelude::*, sync::Arc, workqueue::{DelayedWork, WorkItem}};
/// # #[pin_data]
/// # struct Boxed {
/// #     #[pin]
/// #     work: DelayedWork<Boxed>,
/// # }
/// # impl_has_delayed_work! { impl HasDelayedWork<Self> for Boxed { self.work } }
/// impl WorkItem for Boxed {
///     type Pointer = Pin<KBox<Self>>;
/// #   fn run(_this: Pin<KBox<Self>>) {}
/// }
///
/// fn cancel(boxed: &Arc<Boxed>) {
///     cancel_delayed::<Boxed, 0>(boxed); // The queue has a box.
/// }
/// ```
///
/// ```no_run
/// # use crate::sys::workqueue::{cancel_delayed, cancel_delayed_sync};
/// # use kernel::{impl_has_delayed_work, prelude::*, sync::Arc, workqueue::{DelayedWork, WorkItem}};
/// # #[pin_data]
/// # struct Timer {
/// #     #[pin]
/// #     work: DelayedWork<Timer>,
/// # }
/// # impl_has_delayed_work! { impl HasDelayedWork<Self> for Timer { self.work } }
/// impl WorkItem for Timer {
///     type Pointer = Arc<Self>;
/// #   fn run(_this: Arc<Self>) {}
/// }
///
/// fn cancel(timer: &Arc<Timer>) {
///     cancel_delayed::<Timer, 0>(timer);
///     cancel_delayed_sync::<Timer, 0>(timer);
/// }
/// ```
pub(crate) fn cancel_delayed<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    // SAFETY: The item is a `delayed_work`, as `as_delayed` says, and initialised.
    let pending = unsafe { bindings::cancel_delayed_work(as_delayed(item)) };
    give_back(item, pending);
}

/// As [`cancel_delayed`], and waits for one that is running. Context: process; sleeps.
pub(crate) fn cancel_delayed_sync<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    // SAFETY: As in `cancel_delayed`.
    let pending = unsafe { bindings::cancel_delayed_work_sync(as_delayed(item)) };
    give_back(item, pending);
}

/// The `delayed_work` that the work item `ID` of an object lies in.
fn as_delayed<T, const ID: u64>(item: &Arc<T>) -> *mut bindings::delayed_work
where
    T: HasDelayedWork<T, ID>,
{
    let ptr = Arc::as_ptr(item).cast_mut();
    // SAFETY: `ptr` is a live object, so its work item is initialised.
    let work = unsafe { Work::raw_get(T::raw_get_work(ptr)) };
    // SAFETY: `HasDelayedWork` promises that it is the field `work` of a `delayed_work`, of which the
    // rest may be used as the field itself.
    unsafe { kernel::container_of!(work, bindings::delayed_work, work) }
}

/// Drops the reference that the queue had of an item which was taken back.
fn give_back<T>(item: &Arc<T>, pending: bool) {
    let ptr = Arc::as_ptr(item);
    if pending {
        // SAFETY: The work item was queued with a reference to its object, which is `Arc<T>` for this
        // item; it will not run, so the reference is ours now.
        drop(unsafe { Arc::from_raw(ptr) });
    }
}
