// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waits without a task: a function is called in the place of a wake-up.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)

use super::queue::Head;
use core::pin::Pin;
use kdapl_bindings as bindings;
use kernel::{
    container_of,
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// Receiver of wake-ups by a function call.
pub(crate) trait Wake: Send + Sync {
    /// Wakes the receiver. Returns whether the wake-up was needed. If not, it goes to another
    /// waiter.
    ///
    /// Context: any, including hard IRQ, with the lock of a wait queue held.
    fn wake(&self) -> bool;
}

/// An object with a wait queue.
pub(crate) trait HasHead: Send + Sync {
    /// Returns the queue.
    fn head(&self) -> &Head;
}

/// A `wait_queue_entry` with a function.
#[pin_data]
struct RawEntry {
    #[pin]
    raw: Opaque<bindings::wait_queue_entry>,
    waker: Arc<dyn Wake>,
}

/// Entry of a wait queue that calls a waker. The drop removes it.
///
/// # Invariants
///
/// The entry is in the queue of the object.
pub(crate) struct WaitEntry<T: HasHead> {
    entry: Pin<KBox<RawEntry>>,
    object: Arc<T>,
}

// SAFETY: The lock of the queue protects the entry. The other fields are `Send`.
unsafe impl<T: HasHead> Send for WaitEntry<T> {}

impl<T: HasHead> WaitEntry<T> {
    /// Enters the queue of `object` as an exclusive waiter: `wake_one` calls this waker or wakes
    /// another exclusive waiter.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(object: Arc<T>, waker: Arc<dyn Wake>) -> Result<Self> {
        let entry = KBox::pin_init(
            pin_init!(RawEntry {
                raw <- Opaque::ffi_init(|slot| {
                    // SAFETY: `slot` is valid for a write.
                    unsafe { bindings::kdapl_helper_init_wait_entry_func(slot, Some(wake)) }
                }),
                waker,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        // SAFETY: Head and entry are initialised. The entry is pinned, and the object keeps the
        // head, until the drop removes the entry.
        unsafe { bindings::add_wait_queue_exclusive(object.head().as_ptr(), entry.raw.get()) };
        // INVARIANT: The entry has just entered the queue.
        Ok(Self { entry, object })
    }
}

impl<T: HasHead> Drop for WaitEntry<T> {
    /// Leaves the queue. Waits for a running call of the waker.
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the entry is in the queue. The function takes the queue's
        // lock, under which the calls are made.
        unsafe { bindings::remove_wait_queue(self.object.head().as_ptr(), self.entry.raw.get()) };
    }
}

/// Calls the waker of an entry. Returns 1 if the wake-up was needed, and 0 otherwise.
///
/// # Safety
///
/// `entry` is that of an [`RawEntry`] in a queue. The caller holds the queue's lock.
unsafe extern "C" fn wake(
    entry: *mut bindings::wait_queue_entry,
    _mode: c_uint,
    _flags: c_int,
    _key: *mut c_void,
) -> c_int {
    let raw = Opaque::cast_from(entry.cast_const());
    // SAFETY: By the safety requirement, this is the field of an entry that cannot leave the queue
    // meanwhile.
    let entry = unsafe { &*container_of!(raw, RawEntry, raw) };
    entry.waker.wake().into()
}

#[kunit_tests(kdapl_sys_wait_entry)]
mod tests {
    use super::{
        super::queue::{
            new_wait_queue,
            WaitQueue, //
        },
        *, //
    };
    use kernel::sync::atomic::{
        Acquire,
        Atomic,
        Full, //
    };

    #[pin_data]
    struct Object {
        #[pin]
        queue: WaitQueue,
    }

    impl HasHead for Object {
        fn head(&self) -> &Head {
            self.queue.head()
        }
    }

    impl Object {
        fn new() -> Result<Arc<Self>> {
            let object = pin_init!(Self { queue <- new_wait_queue!("Object::queue") });
            Arc::pin_init(object, GFP_KERNEL)
        }
    }

    /// A party that counts its wake-ups.
    struct Party {
        needs_wake_ups: bool,
        calls: Atomic<u32>,
    }

    impl Wake for Party {
        fn wake(&self) -> bool {
            self.calls.fetch_add(1, Full);
            self.needs_wake_ups
        }
    }

    impl Party {
        /// Enters the queue of an object.
        fn enter(
            object: &Arc<Object>,
            needs_wake_ups: bool,
        ) -> Result<(Arc<Self>, WaitEntry<Object>)> {
            let calls = Atomic::new(0);
            let party = Arc::new(
                Self {
                    needs_wake_ups,
                    calls,
                },
                GFP_KERNEL,
            )?;
            Ok((party.clone(), WaitEntry::new(object.clone(), party)?))
        }

        fn calls(&self) -> u32 {
            self.calls.load(Acquire)
        }
    }

    #[test]
    fn each_wake_up_calls_one_party() -> Result {
        let object = Object::new()?;
        let (first, _entry) = Party::enter(&object, true)?;
        let (second, _other) = Party::enter(&object, true)?;
        for calls in 1..=3 {
            object.queue.wake_one();
            assert_eq!(first.calls() + second.calls(), calls);
        }
        object.queue.wake_all();
        assert_eq!(first.calls() + second.calls(), 5);
        Ok(())
    }

    #[test]
    fn a_needless_wake_up_goes_to_another_party() -> Result {
        let object = Object::new()?;
        let (first, _entry) = Party::enter(&object, false)?;
        let (second, _other) = Party::enter(&object, true)?;
        object.queue.wake_one();
        assert_eq!((first.calls(), second.calls()), (1, 1));
        Ok(())
    }

    #[test]
    fn a_party_that_has_left_is_not_called() -> Result {
        let object = Object::new()?;
        let (first, entry) = Party::enter(&object, true)?;
        let (second, _other) = Party::enter(&object, true)?;
        drop(entry);
        object.queue.wake_all();
        assert_eq!((first.calls(), second.calls()), (0, 1));
        Ok(())
    }
}
