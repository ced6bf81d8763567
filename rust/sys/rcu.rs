// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tables whose objects are found without a lock, in any context.
//!
//! C headers: [`include/linux/generic-radix-tree.h`](srctree/include/linux/generic-radix-tree.h),
//! [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::workqueue;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        rcu::Guard,
        Arc, //
    },
    types::Opaque, //
};

/// Entry of a table.
struct RcuEntry<T> {
    /// Work item that drops the entry after a grace period.
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
/// Each pointer in `tree` is an [`RcuEntry`] that was made from a box, and that belongs to the
/// table. It is freed a grace period after it was removed.
pub(crate) struct RcuTable<T: Send + Sync + 'static> {
    /// The kernel allows concurrent calls on a tree, but for its free.
    tree: Opaque<bindings::__genradix>,
    objects: PhantomData<Arc<T>>,
}

// SAFETY: The table owns references to the objects. Its tree is not bound to a thread.
unsafe impl<T: Send + Sync> Send for RcuTable<T> {}
// SAFETY: As above. Shared access to the tree is concurrent calls.
unsafe impl<T: Send + Sync> Sync for RcuTable<T> {}

/// Returns an index for calls of C.
fn c_index(index: u32) -> usize {
    // Widening cast.
    index as usize
}

impl<T: Send + Sync> RcuTable<T> {
    /// Creates an empty table.
    pub(crate) fn new() -> Self {
        Self {
            tree: Opaque::zeroed(),
            objects: PhantomData,
        }
    }

    /// Stores an object at an index, which is free. Allocates the entry with `flags`, and sometimes
    /// a part of the tree, for which no cgroup is charged.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn store(&self, index: u32, key: u64, object: Arc<T>, flags: Flags) -> Result {
        let work = Opaque::uninit();
        let entry = KBox::new(RcuEntry { work, key, object }, flags)?;
        let entry = KBox::into_raw(entry);
        // INVARIANT: The table owns the entry, unless the call failed.
        // SAFETY: The tree is initialised.
        if unsafe { bindings::kdapl_helper_tree_set(self.tree.get(), c_index(index), entry.cast()) }
        {
            return Ok(());
        }
        // SAFETY: The entry was made from a box above, and the table has not got it.
        drop(unsafe { KBox::from_raw(entry) });
        Err(ENOMEM)
    }

    /// Removes the object at an index, if there is one. Readers may use it until the end of a grace
    /// period. Then the table's reference is dropped in a work item.
    ///
    /// Context: any.
    pub(crate) fn remove(&self, index: u32) {
        // SAFETY: The tree is initialised.
        let removed = unsafe { bindings::kdapl_helper_tree_take(self.tree.get(), c_index(index)) };
        if let Some(entry) = NonNull::new(removed) {
            // SAFETY: By the type invariant. It was removed.
            unsafe { Self::drop_later(entry.cast()) };
        }
    }

    /// Returns the object at an index, if `is_it` accepts its key. Context: any.
    pub(crate) fn get<'a>(
        &'a self,
        _guard: &'a Guard,
        index: u32,
        is_it: impl FnOnce(u64) -> bool,
    ) -> Option<&'a Arc<T>> {
        // SAFETY: The tree is initialised.
        let entry = unsafe { bindings::kdapl_helper_tree_get(self.tree.get(), c_index(index)) };
        // SAFETY: By the type invariant. The guard keeps the entry for the lifetime of the result,
        // also if it is removed meanwhile.
        let entry = unsafe { entry.cast::<RcuEntry<T>>().as_ref() }?;
        is_it(entry.key).then_some(&entry.object)
    }

    /// Drops an entry after a grace period.
    ///
    /// # Safety
    ///
    /// The entry was made from a box, and no reader that begins now finds it.
    unsafe fn drop_later(entry: NonNull<RcuEntry<T>>) {
        // SAFETY: By the safety requirement the entry is valid. `raw_get` does not make a
        // reference.
        let work = Opaque::cast_into(unsafe { &raw const (*entry.as_ptr()).work });
        // SAFETY: The work item is in an entry, of which this function is the owner now, and which
        // stays valid until the work item runs. The queue exists, as the table belongs to the
        // module.
        unsafe {
            bindings::kdapl_helper_queue_rcu_work(workqueue::raw(), work, Some(drop_entry::<T>))
        };
    }
}

/// Drops an entry: work item of [`RcuTable::drop_later`].
///
/// # Safety
///
/// `work` is in an [`RcuEntry<T>`] that was made from a box, which no one else uses.
unsafe extern "C" fn drop_entry<T: Send + Sync + 'static>(work: *mut bindings::work_struct) {
    // SAFETY: By the safety requirement.
    let rcu_work = unsafe { kernel::container_of!(work, bindings::rcu_work, work) };
    // SAFETY: As above.
    let entry = unsafe { kernel::container_of!(Opaque::cast_from(rcu_work), RcuEntry<T>, work) };
    // SAFETY: As above.
    drop(unsafe { KBox::from_raw(entry.cast_mut()) });
}

impl<T: Send + Sync> Drop for RcuTable<T> {
    fn drop(&mut self) {
        let (tree, mut index) = (self.tree.get(), 0);
        loop {
            // SAFETY: The tree is initialised.
            let next = unsafe { bindings::kdapl_helper_tree_take_next(tree, &raw mut index) };
            let Some(entry) = NonNull::new(next) else {
                break;
            };
            // SAFETY: By the type invariant. It was removed.
            unsafe { Self::drop_later(entry.cast()) };
        }
        // SAFETY: The tree is initialised, and has no users any more.
        unsafe { bindings::__genradix_free(tree) };
    }
}

#[kunit_tests(kdapl_sys_rcu)]
mod tests {
    use super::*;
    use kernel::sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        rcu::read_lock,
        Completion, //
    };

    /// Shows that an [`Object`] was dropped.
    #[pin_data]
    struct Dropped {
        #[pin]
        completion: Completion,
        is_set: Atomic<bool>,
    }

    struct Object(Arc<Dropped>);

    impl Drop for Object {
        fn drop(&mut self) {
            self.0.is_set.store(true, Release);
            self.0.completion.complete_all();
        }
    }

    /// Returns a table with an object at index 3, with the key 7.
    fn table() -> Result<(RcuTable<Object>, Arc<Dropped>)> {
        let dropped = pin_init!(Dropped {
            completion <- Completion::new(),
            is_set: Atomic::new(false),
        });
        let dropped = Arc::pin_init(dropped, GFP_KERNEL)?;
        let (table, object) = (RcuTable::new(), Object(dropped.clone()));
        table.store(3, 7, Arc::new(object, GFP_KERNEL)?, GFP_KERNEL)?;
        Ok((table, dropped))
    }

    fn has(table: &RcuTable<Object>, index: u32, key: u64) -> bool {
        let guard = read_lock();
        table.get(&guard, index, |found| found == key).is_some()
    }

    #[test]
    fn a_lookup_needs_index_and_key() -> Result {
        let (table, _dropped) = table()?;
        assert!(has(&table, 3, 7));
        for (index, key) in [(3, 8), (2, 7), (4, 7), (u32::MAX, 7)] {
            assert!(!has(&table, index, key));
        }
        Ok(())
    }

    /// Hangs if the object is never dropped.
    #[test]
    fn a_reader_keeps_a_removed_object() -> Result {
        let (table, dropped) = table()?;
        let guard = read_lock();
        let object = table.get(&guard, 3, |_| true).ok_or(ENOENT)?;
        table.remove(3);
        assert!(!has(&table, 3, 7));
        assert!(!object.0.is_set.load(Acquire));
        drop(guard);
        dropped.completion.wait_for_completion();
        Ok(())
    }

    #[test]
    fn an_index_is_used_again() -> Result {
        let ((table, first), (_, second)) = (table()?, table()?);
        table.remove(3);
        table.store(
            3,
            8,
            Arc::new(Object(second.clone()), GFP_KERNEL)?,
            GFP_KERNEL,
        )?;
        assert!(has(&table, 3, 8) && !has(&table, 3, 7));
        first.completion.wait_for_completion();
        assert!(has(&table, 3, 8));
        Ok(())
    }

    /// Hangs if the object is never dropped.
    #[test]
    fn a_table_drops_its_objects() -> Result {
        let (table, dropped) = table()?;
        assert!(!dropped.is_set.load(Acquire));
        drop(table);
        dropped.completion.wait_for_completion();
        Ok(())
    }
}
