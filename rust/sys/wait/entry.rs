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

/// A party that is woken by a call.
pub(crate) trait Wake: Send + Sync {
    /// Wakes the party. Returns whether the wake-up was needed. If not, it goes to another waiter.
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
struct Entry {
    #[pin]
    raw: Opaque<bindings::wait_queue_entry>,
    waker: Arc<dyn Wake>,
}

/// Entry of a party in a wait queue, which leaves the queue with the drop.
///
/// # Invariants
///
/// The entry is in the queue of the object.
pub(crate) struct WaitEntry<T: HasHead> {
    entry: Pin<KBox<Entry>>,
    object: Arc<T>,
}

// SAFETY: The lock of the queue protects the entry. The other fields are `Send`.
unsafe impl<T: HasHead> Send for WaitEntry<T> {}

impl<T: HasHead> WaitEntry<T> {
    /// Enters the queue of `object` as an exclusive waiter: a wake-up of one waiter wakes this
    /// party or another one.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(object: Arc<T>, waker: Arc<dyn Wake>) -> Result<Self> {
        let entry = KBox::pin_init(
            pin_init!(Entry {
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
    /// Leaves the queue. Waits until no call of the party runs.
    fn drop(&mut self) {
        // SAFETY: By the type invariant, the entry is in the queue. The function takes the queue's
        // lock, under which the calls are made.
        unsafe { bindings::remove_wait_queue(self.object.head().as_ptr(), self.entry.raw.get()) };
    }
}

/// Wakes the party of an entry. Returns 1 if the wake-up was needed, and 0 otherwise.
///
/// # Safety
///
/// `entry` is that of an [`Entry`] in a queue. The caller holds the queue's lock.
unsafe extern "C" fn wake(
    entry: *mut bindings::wait_queue_entry,
    _mode: c_uint,
    _flags: c_int,
    _key: *mut c_void,
) -> c_int {
    let raw = Opaque::cast_from(entry.cast_const());
    // SAFETY: By the safety requirement, this is the field of an entry that cannot leave the queue
    // meanwhile.
    let entry = unsafe { &*container_of!(raw, Entry, raw) };
    entry.waker.wake().into()
}
