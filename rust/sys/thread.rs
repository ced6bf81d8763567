// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Kernel threads for calls that may block for long, made on behalf of another task.
//!
//! A workqueue's worker does not serve: it would call in the initial network namespace with the
//! kernel's own credentials, and it cannot be interrupted.
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

/// The network namespace and the credentials with which a call is made.
#[derive(Clone)]
pub(crate) struct Identity {
    net: NetRef,
    cred: ARef<Credential>,
}

impl Identity {
    /// Returns the credentials of the calling task together with the namespace `net`. Context:
    /// process.
    pub(crate) fn current_in(net: NetRef) -> Self {
        // SAFETY: The credentials of the running task are valid until it changes them. It does not
        // do so before `into` has taken a reference.
        let cred = unsafe { Credential::from_ptr(bindings::kdapl_helper_current_cred()) };
        Self {
            net,
            cred: cred.into(),
        }
    }

    /// Returns the effective user ID as a number in the caller's user namespace, or the overflow
    /// number.
    ///
    /// Context: process.
    pub(crate) fn user_number(&self) -> u32 {
        let cred: *const _ = self.cred.as_ptr();
        // SAFETY: The reference keeps the credentials alive.
        unsafe { bindings::kdapl_helper_uid_number(cred.cast()) }
    }

    /// Returns the effective user ID.
    pub(crate) fn user(&self) -> Kuid {
        self.cred.euid()
    }
}

/// Returns the user with a number in the initial user namespace.
pub(crate) fn user_of(number: u32) -> Kuid {
    Kuid::from_raw(kernel::bindings::kuid_t { val: number })
}

/// A reference to a thread that [`run_as`] started.
pub(crate) struct Thread(ARef<Task>);

impl Thread {
    /// Returns the calling thread.
    fn current() -> Self {
        Self(ARef::from(&**kernel::current!()))
    }

    /// Ends the thread's interruptible sleep, and every later one.
    pub(crate) fn interrupt(&self) {
        // SAFETY: The reference keeps the task structure alive. A task that has ended ignores the
        // signal.
        unsafe { bindings::kdapl_helper_thread_interrupt(self.0.as_ptr().cast()) };
    }
}

/// Argument of a new thread.
struct ThreadArgument<F> {
    identity: Identity,
    action: F,
}

/// Calls `action` in a new kernel thread, with the network namespace and credentials. The
/// thread holds a reference to the module until it has ended.
///
/// Context: process; sleeps.
///
/// # Errors
///
/// `ENOMEM`; `ENODEV` during the module's unload. `action` is dropped then.
pub(crate) fn run_as<F>(name: &'static CStr, identity: Identity, action: F) -> Result
where
    F: FnOnce(Thread) + Send + 'static,
{
    let argument = KBox::new(ThreadArgument { identity, action }, GFP_KERNEL_ACCOUNT)?;
    let raw = KBox::into_raw(argument);
    // SAFETY: The name is NUL-terminated. `enter` takes ownership of the target of `raw`, once.
    let ret = unsafe {
        bindings::kdapl_helper_thread_run(name.as_char_ptr(), Some(enter::<F>), raw.cast())
    };
    kernel::error::to_result(ret).inspect_err(|_| {
        // SAFETY: No thread was started, so `enter` has not taken ownership.
        drop(unsafe { KBox::from_raw(raw) });
    })
}

/// Result of a call in another thread, and its completion.
#[pin_data]
struct ThreadResult<R> {
    #[pin]
    done: Completion,
    #[pin]
    result: Mutex<Option<R>>,
}

/// Completes the [`ThreadResult`] when dropped, even if the action was never called.
struct CompleteOnDrop<R>(Arc<ThreadResult<R>>);

impl<R> Drop for CompleteOnDrop<R> {
    fn drop(&mut self) {
        self.0.done.complete_all();
    }
}

/// Calls `action` as [`run_as`] does, and waits for its result. Context: process; sleeps.
///
/// # Errors
///
/// As for [`run_as`].
pub(crate) fn run_and_wait<F, R>(name: &'static CStr, identity: Identity, action: F) -> Result<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + Unpin + 'static,
{
    let outcome = Arc::pin_init(
        pin_init!(ThreadResult {
            done <- Completion::new(),
            result <- new_mutex!(None, "ThreadResult::result"),
        }),
        GFP_KERNEL_ACCOUNT,
    )?;
    let done = CompleteOnDrop(outcome.clone());
    run_as(name, identity, move |_| {
        let result = action();
        *done.0.result.lock() = Some(result);
        drop(done);
    })?;
    outcome.done.wait_for_completion();
    let result = outcome.result.lock().take();
    result.ok_or(ENOMEM)
}

/// Entry point of a thread.
///
/// # Safety
///
/// `data` is an [`ThreadArgument`] of `F` whose ownership [`run_as`] passes to this call.
unsafe extern "C" fn enter<F: FnOnce(Thread)>(data: *mut c_void) {
    // SAFETY: The caller guarantees the type, and passes ownership.
    let argument = unsafe { KBox::from_raw(data.cast::<ThreadArgument<F>>()) };
    let ThreadArgument { identity, action } = KBox::into_inner(argument);
    let mut action = Some(action);
    let data = (&raw mut action).cast();
    // SAFETY: This is a kernel thread of the module. The namespace and the credentials live until
    // `identity` is dropped, after the call. `action` lives as long, and `call` takes it out.
    unsafe {
        bindings::kdapl_helper_run_as(
            identity.net.as_ptr(),
            identity.cred.as_ptr().cast(),
            Some(call::<F>),
            data,
        );
    }
}

/// Calls the action with the namespace and credentials.
///
/// # Safety
///
/// `data` is an `Option<F>`.
unsafe extern "C" fn call<F: FnOnce(Thread)>(data: *mut c_void) {
    let Some(mut action) = NonNull::new(data.cast::<Option<F>>()) else {
        return;
    };
    // SAFETY: The caller guarantees the type. `enter` does not access the action during the call.
    if let Some(action) = unsafe { action.as_mut() }.take() {
        action(Thread::current());
    }
}

#[kunit_tests(kdapl_sys_thread)]
mod tests {
    use super::*;
    use crate::sys::wait::{
        Deadline,
        LoneWaiter,
        SleepResult, //
    };
    use kernel::current;

    fn identity() -> Result<Identity> {
        Ok(Identity::current_in(NetRef::initial()?))
    }

    #[test]
    fn the_result_of_another_thread_comes_back() -> Result {
        let here = current!().pid();
        let there = run_and_wait(c"kdapl-kunit", identity()?, || current!().pid())?;
        assert!(here != there);
        Ok(())
    }

    /// A thread that sleeps until it is interrupted.
    #[pin_data]
    struct Sleeper {
        #[pin]
        waiter: LoneWaiter,
        #[pin]
        thread: Mutex<Option<Thread>>,
        #[pin]
        is_started: Completion,
        #[pin]
        has_ended: Completion,
        #[pin]
        outcome: Mutex<Option<SleepResult>>,
    }

    impl Sleeper {
        fn start() -> Result<Arc<Self>> {
            let sleeper = Arc::pin_init(
                pin_init!(Self {
                    waiter <- LoneWaiter::new(),
                    thread <- new_mutex!(None),
                    is_started <- Completion::new(),
                    has_ended <- Completion::new(),
                    outcome <- new_mutex!(None),
                }),
                GFP_KERNEL,
            )?;
            let there = sleeper.clone();
            run_as(c"kdapl-kunit", identity()?, move |thread| there.run(thread))?;
            sleeper.is_started.wait_for_completion();
            Ok(sleeper)
        }

        fn run(&self, thread: Thread) {
            *self.thread.lock() = Some(thread);
            self.is_started.complete_all();
            let reservation = self.waiter.take();
            let outcome =
                reservation.map(|mut reservation| reservation.wait(&mut Deadline::Never, || false));
            *self.outcome.lock() = outcome;
            self.has_ended.complete_all();
        }
    }

    /// Hangs if the interrupt is lost.
    #[test]
    fn an_interrupt_ends_a_sleep() -> Result {
        let sleeper = Sleeper::start()?;
        if let Some(thread) = sleeper.thread.lock().as_ref() {
            thread.interrupt();
        }
        sleeper.has_ended.wait_for_completion();
        let outcome = *sleeper.outcome.lock();
        assert!(outcome == Some(SleepResult::Interrupted));
        Ok(())
    }
}
