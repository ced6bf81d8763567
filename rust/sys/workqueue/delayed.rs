// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Cancels delayed work items, which the kernel crate cannot do.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::{
        HasDelayedWork,
        Work,
        WorkItem, //
    },
};

/// Cancels a delayed work item if it is not running yet.
///
/// It does not wait for an item that is running. So the caller may hold a resource that the item
/// waits for.
///
/// The item must be in a [`DelayedWork`](workqueue::DelayedWork), because the kernel accesses the
/// timer next to it. The compiler refuses a plain work item:
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
/// An item that the queue holds by another pointer than an `Arc` is refused too, because the
/// queue's reference is dropped:
///
/// ```compile_fail,E0271
/// # use crate::sys::workqueue::cancel_delayed;
/// # use kernel::{impl_has_delayed_work, prelude::*, sync::Arc};
/// # use kernel::workqueue::{DelayedWork, WorkItem};
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
/// # use kernel::{impl_has_delayed_work, prelude::*, sync::Arc};
/// # use kernel::workqueue::{DelayedWork, WorkItem};
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
    // SAFETY: `as_delayed` returns a pointer to an initialised `delayed_work`.
    let pending = unsafe { bindings::cancel_delayed_work(as_delayed(item)) };
    give_back(item, pending);
}

/// Cancels a delayed work item as [`cancel_delayed`] does, and waits for it if it is running.
///
/// Context: process; sleeps.
pub(crate) fn cancel_delayed_sync<T, const ID: u64>(item: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    // SAFETY: As in `cancel_delayed`.
    let pending = unsafe { bindings::cancel_delayed_work_sync(as_delayed(item)) };
    give_back(item, pending);
}

/// Returns the `delayed_work` that contains the work item `ID` of an object.
fn as_delayed<T, const ID: u64>(item: &Arc<T>) -> *mut bindings::delayed_work
where
    T: HasDelayedWork<T, ID>,
{
    let ptr = Arc::as_ptr(item).cast_mut();
    // SAFETY: `ptr` is a live object, so its work item is initialised.
    let work = unsafe { Work::raw_get(T::raw_get_work(ptr)) };
    // SAFETY: `HasDelayedWork` guarantees that the work item is the field `work` of a
    // `delayed_work`. A pointer to it may be used for the whole structure.
    unsafe { kernel::container_of!(work, bindings::delayed_work, work) }
}

/// Drops the queue's reference to the object of a cancelled item. `pending` says whether the item
/// was queued.
pub(super) fn give_back<T>(item: &Arc<T>, pending: bool) {
    let ptr = Arc::as_ptr(item);
    if pending {
        // SAFETY: Queueing the item passed an `Arc<T>` to the queue. The cancelled item will not
        // run, so that reference belongs to this function.
        drop(unsafe { Arc::from_raw(ptr) });
    }
}

#[kunit_tests(kdapl_sys_workqueue)]
mod tests {
    use super::{
        super::queue,
        *, //
    };
    use kernel::{
        impl_has_delayed_work,
        new_delayed_work,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Release, //
            },
            Completion, //
        },
        time::{
            delay::fsleep,
            msecs_to_jiffies,
            Delta, //
        },
        workqueue::DelayedWork, //
    };

    /// A work item that runs until the test allows its end.
    #[pin_data]
    struct Item {
        #[pin]
        work: DelayedWork<Item>,
        #[pin]
        started: Completion,
        #[pin]
        may_end: Completion,
        has_ended: Atomic<bool>,
    }

    impl_has_delayed_work! { impl HasDelayedWork<Self> for Item { self.work } }

    impl WorkItem for Item {
        type Pointer = Arc<Self>;

        fn run(this: Arc<Self>) {
            this.started.complete_all();
            this.may_end.wait_for_completion();
            // A cancellation that does not wait returns meanwhile.
            fsleep(Delta::from_millis(20));
            this.has_ended.store(true, Release);
        }
    }

    impl Item {
        fn new() -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    work <- new_delayed_work!("Item::work"),
                    started <- Completion::new(),
                    may_end <- Completion::new(),
                    has_ended: Atomic::new(false),
                }),
                GFP_KERNEL,
            )
        }

        /// Returns a running item.
        fn started() -> Result<Arc<Self>> {
            let item = Self::new()?;
            queue().enqueue(item.clone()).map_err(|_| EBUSY)?;
            item.started.wait_for_completion();
            Ok(item)
        }
    }

    fn is_unique(item: Arc<Item>) -> bool {
        Arc::into_unique_or_drop(item).is_some()
    }

    #[test]
    fn cancel_drops_the_reference_of_the_queue() -> Result {
        let hour = msecs_to_jiffies(3_600_000);
        for cancel in [cancel_delayed::<Item, 0>, cancel_delayed_sync::<Item, 0>] {
            let item = Item::new()?;
            assert!(queue().enqueue_delayed(item.clone(), hour).is_ok());
            cancel(&item);
            assert!(is_unique(item));
        }
        Ok(())
    }

    #[test]
    fn cancel_of_an_idle_item_drops_nothing() -> Result {
        for cancel in [cancel_delayed::<Item, 0>, cancel_delayed_sync::<Item, 0>] {
            let item = Item::new()?;
            cancel(&item);
            assert!(is_unique(item));
        }
        Ok(())
    }

    #[test]
    fn cancel_sync_waits_for_a_running_item() -> Result {
        let item = Item::started()?;
        item.may_end.complete_all();
        cancel_delayed_sync::<Item, 0>(&item);
        assert!(item.has_ended.load(Acquire));
        assert!(is_unique(item));
        Ok(())
    }

    #[test]
    fn cancel_does_not_wait_for_a_running_item() -> Result {
        let item = Item::started()?;
        cancel_delayed::<Item, 0>(&item);
        assert!(!item.has_ended.load(Acquire));
        item.may_end.complete_all();
        cancel_delayed_sync::<Item, 0>(&item);
        assert!(is_unique(item));
        Ok(())
    }
}
