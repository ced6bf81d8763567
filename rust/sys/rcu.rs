// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tables whose objects are found without a lock, in any context.
//!
//! C headers: [`include/linux/xarray.h`](srctree/include/linux/xarray.h),
//! [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::workqueue;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    alloc::Flags,
    error::to_result,
    ffi::c_ulong,
    prelude::*,
    sync::{
        rcu::Guard,
        Arc, //
    },
    types::Opaque, //
};

/// Entry of a table.
#[pin_data]
struct Entry<T> {
    /// Drops the entry after a grace period.
    #[pin]
    work: Opaque<bindings::rcu_work>,
    key: u64,
    object: Arc<T>,
}

/// Table of objects by index, which readers search under RCU. Each object has a key, which
/// distinguishes it from others that had the index before. The module drops its tables before its
/// [queue](workqueue::OwnedQueue).
///
/// # Invariants
///
/// Each entry of `entries` is a pointer to an [`Entry`] that was made from a box, and that belongs
/// to the table. It is freed a grace period after it was removed.
#[pin_data(PinnedDrop)]
pub(crate) struct RcuTable<T: Send + Sync + 'static> {
    #[pin]
    entries: Opaque<bindings::xarray>,
    objects: PhantomData<Arc<T>>,
}

// SAFETY: The table owns references to the objects. The xarray has its own lock.
unsafe impl<T: Send + Sync> Send for RcuTable<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for RcuTable<T> {}

/// Returns an index for calls of C.
fn place(index: u32) -> c_ulong {
    // Widening cast.
    index as c_ulong
}

impl<T: Send + Sync> RcuTable<T> {
    /// Creates an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: The function initialises the memory, which is pinned.
            entries <- Opaque::ffi_init(|ptr| unsafe { bindings::xa_init_flags(ptr, 0) }),
            objects: PhantomData,
        })
    }

    /// Stores an object at an index, which is free. Allocates the entry with `flags`, and sometimes
    /// a part of the table, for which no cgroup is charged.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn store(&self, index: u32, key: u64, object: Arc<T>, flags: Flags) -> Result {
        let entry = KBox::pin_init(
            pin_init!(Entry {
                work <- Opaque::uninit(),
                key,
                object,
            }),
            flags,
        )?;
        // SAFETY: The entry stays at its address: the table gives no access to it but by reference.
        let entry = KBox::into_raw(unsafe { Pin::into_inner_unchecked(entry) });
        // SAFETY: The table is initialised. A box is aligned, as the xarray demands of entries.
        let old = unsafe {
            bindings::xa_store(self.entries.get(), place(index), entry.cast(), bindings::GFP_KERNEL)
        };
        // INVARIANT: The table owns the entry, unless the call failed.
        // SAFETY: `old` is a result of `xa_store`.
        to_result(unsafe { bindings::xa_err(old) }).inspect_err(|_| {
            // SAFETY: The entry was made from a box above, and the table has not got it.
            drop(unsafe { KBox::from_raw(entry) });
        })
    }

    /// Removes the object at an index, if there is one. Readers may use it until the end of a grace
    /// period. Then the table's reference is dropped in a work item.
    ///
    /// Context: any that may take a spinlock with interrupts enabled.
    pub(crate) fn remove(&self, index: u32) {
        // SAFETY: The table is initialised.
        let removed = unsafe { bindings::xa_erase(self.entries.get(), place(index)) };
        if let Some(entry) = NonNull::new(removed.cast::<Entry<T>>()) {
            // SAFETY: By the type invariant. It was removed.
            unsafe { Self::drop_later(entry) };
        }
    }

    /// Returns the object at an index, if `is_it` accepts its key. Context: any.
    #[inline]
    pub(crate) fn get<'a>(
        &'a self,
        _guard: &'a Guard,
        index: u32,
        is_it: impl FnOnce(u64) -> bool,
    ) -> Option<&'a Arc<T>> {
        // SAFETY: The table is initialised.
        let entry = unsafe { bindings::xa_load(self.entries.get(), place(index)) };
        // SAFETY: By the type invariant. The guard keeps the entry for the lifetime of the result,
        // also if it is removed meanwhile.
        let entry = unsafe { entry.cast::<Entry<T>>().as_ref() }?;
        is_it(entry.key).then_some(&entry.object)
    }

    /// Drops an entry after a grace period.
    ///
    /// # Safety
    ///
    /// The entry was made from a box, and no reader that begins now finds it.
    unsafe fn drop_later(entry: NonNull<Entry<T>>) {
        // SAFETY: By the safety requirement the entry is valid. `raw_get` does not make a
        // reference.
        let work = Opaque::cast_into(unsafe { &raw const (*entry.as_ptr()).work });
        // SAFETY: The work item is in an entry, of which this function is the owner now, and which
        // stays valid until the work item runs. The queue exists, as the table belongs to the
        // module.
        unsafe { bindings::kdapl_helper_queue_rcu_work(workqueue::raw(), work, Some(drop_entry::<T>)) };
    }
}

/// Drops an entry: work item of [`RcuTable::drop_later`].
///
/// # Safety
///
/// `work` is in an [`Entry<T>`] that was made from a box, which no one else uses.
unsafe extern "C" fn drop_entry<T: Send + Sync + 'static>(work: *mut bindings::work_struct) {
    // SAFETY: By the safety requirement.
    let rcu_work = unsafe { kernel::container_of!(work, bindings::rcu_work, work) };
    // SAFETY: As above.
    let entry = unsafe {
        kernel::container_of!(Opaque::cast_from(rcu_work), Entry<T>, work)
    };
    // SAFETY: As above.
    drop(unsafe { KBox::from_raw(entry.cast_mut()) });
}

#[pinned_drop]
impl<T: Send + Sync> PinnedDrop for RcuTable<T> {
    fn drop(self: Pin<&mut Self>) {
        let table = self.entries.get();
        let mut index = 0;
        // SAFETY: The table is initialised, and has no readers any more.
        unsafe {
            while let Some(entry) = NonNull::new(bindings::kdapl_helper_xa_next(table, &raw mut index))
            {
                bindings::xa_erase(table, index);
                Self::drop_later(entry.cast());
            }
            bindings::xa_destroy(table);
        }
    }
}
