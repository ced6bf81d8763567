// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Kernel threads for calls that may block for long, and on whose behalf they call.
//!
//! A worker would call in the first network namespace with the kernel's own credentials, and cannot be
//! interrupted.
//!
//! C headers: [`include/linux/kthread.h`](srctree/include/linux/kthread.h),
//! [`include/linux/nsproxy.h`](srctree/include/linux/nsproxy.h)

use super::net::NetRef;
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    cred::Credential,
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Completion,
        Mutex, //
    },
    task::{
        Kuid,
        Task, //
    },
};

/// A network namespace, and the credentials of a task.
#[derive(Clone)]
pub(crate) struct Party {
    net: NetRef,
    cred: ARef<Credential>,
}

impl Party {
    /// The calling task, in a network namespace. Context: process.
    pub(crate) fn current_in(net: NetRef) -> Self {
        // SAFETY: The credentials of the running task stay as long as it does not change them, which
        // it does not do here.
        let cred = unsafe { Credential::from_ptr(bindings::kdapl_helper_current_cred()) };
        Self {
            net,
            cred: cred.into(),
        }
    }

    /// Its effective user.
    pub(crate) fn user(&self) -> Kuid {
        self.cred.euid()
    }
}

/// A thread of this module that [`run_as`] has begun.
pub(crate) struct Thread(ARef<Task>);

impl Thread {
    /// The calling one.
    fn current() -> Self {
        Self(ARef::from(&**kernel::current!()))
    }

    /// Ends its sleep if a signal may end that, and each such sleep from now on.
    pub(crate) fn interrupt(&self) {
        // SAFETY: The task is alive, or has ended and takes no signal: both are allowed.
        unsafe { bindings::kdapl_helper_thread_interrupt(self.0.as_ptr().cast()) };
    }
}

/// What a thread is to do, until it has begun.
struct Errand<F> {
    party: Party,
    action: F,
}

/// Calls `action` in a thread of its own, in the party's network namespace and with its credentials.
/// The module stays until the thread has ended.
///
/// Context: process; sleeps.
///
/// # Errors
///
/// `ENOMEM`, `ENODEV` while the module is unloaded; `action` is dropped then.
pub(crate) fn run_as<F>(name: &'static CStr, party: Party, action: F) -> Result
where
    F: FnOnce(Thread) + Send + 'static,
{
    let errand = KBox::new(Errand { party, action }, GFP_KERNEL_ACCOUNT)?;
    let raw = KBox::into_raw(errand);
    // SAFETY: The name is NUL-terminated, and `enter` takes what `raw` points to, once.
    let ret = unsafe {
        bindings::kdapl_helper_thread_run(name.as_char_ptr(), Some(enter::<F>), raw.cast())
    };
    kernel::error::to_result(ret).inspect_err(|_| {
        // SAFETY: No thread has begun, so it is still ours.
        drop(unsafe { KBox::from_raw(raw) });
    })
}

/// What a caller waits for.
#[pin_data]
struct Outcome<R> {
    #[pin]
    done: Completion,
    #[pin]
    result: Mutex<Option<R>>,
}

/// Completed by the drop, also of an action that was never called.
struct Done<R>(Arc<Outcome<R>>);

impl<R> Drop for Done<R> {
    fn drop(&mut self) {
        self.0.done.complete_all();
    }
}

/// As [`run_as`], and waits until `action` has returned. Context: process; sleeps.
///
/// # Errors
///
/// As for [`run_as`].
pub(crate) fn run_and_wait<F, R>(name: &'static CStr, party: Party, action: F) -> Result<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + Unpin + 'static,
{
    let outcome = Arc::pin_init(
        pin_init!(Outcome {
            done <- Completion::new(),
            result <- new_mutex!(None, "Outcome::result"),
        }),
        GFP_KERNEL_ACCOUNT,
    )?;
    let done = Done(outcome.clone());
    run_as(name, party, move |_| {
        let result = action();
        *done.0.result.lock() = Some(result);
        drop(done);
    })?;
    outcome.done.wait_for_completion();
    let result = outcome.result.lock().take();
    result.ok_or(ENOMEM)
}

/// A thread begins.
///
/// # Safety
///
/// `data` is an [`Errand`] of `F` that [`run_as`] gave away, for this call.
unsafe extern "C" fn enter<F: FnOnce(Thread)>(data: *mut c_void) {
    // SAFETY: The caller vouches for it.
    let errand = unsafe { KBox::from_raw(data.cast::<Errand<F>>()) };
    let Errand { party, action } = KBox::into_inner(errand);
    let mut action = Some(action);
    let data = (&raw mut action).cast();
    // SAFETY: This is a kernel thread of ours. Namespace and credentials live until `party` is dropped,
    // after the call, and so does `action`, which `call` takes.
    unsafe {
        bindings::kdapl_helper_run_as(
            party.net.as_ptr(),
            party.cred.as_ptr().cast(),
            Some(call::<F>),
            data,
        );
    }
}

/// Calls the action on behalf of the party.
///
/// # Safety
///
/// `data` is an `Option` of the action.
unsafe extern "C" fn call<F: FnOnce(Thread)>(data: *mut c_void) {
    let Some(mut action) = NonNull::new(data.cast::<Option<F>>()) else {
        return;
    };
    // SAFETY: The caller vouches for it, and nobody else uses it meanwhile.
    if let Some(action) = unsafe { action.as_mut() }.take() {
        action(Thread::current());
    }
}
