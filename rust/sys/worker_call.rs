// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls in a worker, where no signal of the calling task ends a sleep.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use super::{
    task::is_kernel_thread,
    workqueue::call_queue, //
};
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// A call and, once it was made, its result.
struct Call<F, R> {
    action: Option<F>,
    result: Option<R>,
}

/// Calls `action` in a worker, waits for its end, and returns its result. A thread of the kernel
/// makes the call itself: no signal reaches it.
///
/// The caller may hold locks that `action` does not take.
///
/// Context: process; sleeps.
pub(crate) fn call_in_worker<F, R>(action: F) -> R
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    if is_kernel_thread() {
        return action();
    }
    let mut call = Call {
        action: Some(action),
        result: None,
    };
    let queue = core::ptr::from_ref(call_queue()).cast_mut().cast();
    // SAFETY: A `Queue` is a `workqueue_struct`, and this one exists while objects of the module
    // do. `run` gets the type that it expects. The call is alive, and this thread does not access
    // it, until the helper returns.
    unsafe {
        bindings::kdapl_helper_call_in_worker(queue, Some(run::<F, R>), (&raw mut call).cast());
    }
    // SAFETY: The helper returns after `run`, which has stored the result.
    unsafe { call.result.unwrap_unchecked() }
}

/// Makes a call of [`call_in_worker`].
///
/// # Safety
///
/// `data` is a `Call<F, R>` that no other thread accesses.
unsafe extern "C" fn run<F: FnOnce() -> R, R>(data: *mut c_void) {
    let Some(mut call) = NonNull::new(data.cast::<Call<F, R>>()) else {
        return;
    };
    // SAFETY: The caller guarantees the type, and that the access is exclusive.
    let call = unsafe { call.as_mut() };
    if let Some(action) = call.action.take() {
        call.result = Some(action());
    }
}

#[kunit_tests(kdapl_sys_worker_call)]
mod tests {
    use super::*;
    use kernel::current;

    #[test]
    fn a_call_may_borrow_from_its_caller() {
        let (base, mut sum) = (40, 0);
        let result = call_in_worker(|| {
            sum = base + 2;
            sum
        });
        assert!(result == 42);
        assert!(sum == 42);
    }

    #[test]
    fn a_call_within_a_call_stays_in_its_worker() {
        let pid = || current!().pid();
        let (outer, inner) = call_in_worker(|| (pid(), call_in_worker(pid)));
        assert!(outer == inner);
    }
}
