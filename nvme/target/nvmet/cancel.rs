// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Cancels delayed work items, which the kernel crate lacks.

use crate::bindings;
use kernel::{
    sync::Arc,
    workqueue::{
        HasDelayedWork,
        WorkItem, //
    },
};

/// Cancels the delayed work item of a value, or waits until it has run. It may be queued again
/// afterwards. Context: process, not in the item.
pub(crate) fn cancel_delayed<T, const ID: u64>(value: &Arc<T>)
where
    T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID>,
{
    let raw = Arc::as_ptr(value);
    // SAFETY: The value lives.
    let work: *mut bindings::work_struct = unsafe { T::raw_get_work(raw.cast_mut()) }.cast();
    // SAFETY: By `HasDelayedWork` the item is in a `delayed_work`.
    let delayed = unsafe { kernel::container_of!(work, bindings::delayed_work, work) };
    // SAFETY: The item is initialized, as the value is.
    if unsafe { bindings::cancel_delayed_work_sync(delayed) } {
        // SAFETY: The queue had a reference, as the item's pointer is an `Arc`, and has it no more.
        drop(unsafe { Arc::from_raw(raw) });
    }
}
