// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Wait queues.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)

use super::{
    alarm::{
        Alarm,
        WakeAll, //
    },
    Deadline,
    SleepResult, //
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::LockClassKey,
    task::might_sleep,
    types::Opaque, //
};

/// Events of `poll` that a wake-up announces.
type PollEvents = bindings::__poll_t;

/// Any event.
const ANY: PollEvents = 0;
/// A file can be read. Polls for other events sleep on, also with `EPOLLEXCLUSIVE`, with which a
/// poll takes the place of a task.
const READABLE: PollEvents = bindings::POLLIN | bindings::POLLRDNORM;

/// A `wait_queue_head_t`.
#[pin_data]
pub(crate) struct Head {
    #[pin]
    raw: Opaque<bindings::wait_queue_head>,
}

// SAFETY: A wait queue is meant to be shared: its internal lock protects the list.
unsafe impl Send for Head {}
// SAFETY: As above.
unsafe impl Sync for Head {}

impl Head {
    /// Creates an empty queue.
    pub(super) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            raw <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for a write. `name` and `key` are static.
                unsafe {
                    bindings::kdapl_helper_init_waitqueue_head(
                        slot,
                        name.as_char_ptr(),
                        key.as_ptr(),
                    )
                }
            }),
        })
    }

    /// Returns the C pointer, for C functions that wait on the queue.
    pub(super) fn as_ptr(&self) -> *mut bindings::wait_queue_head {
        self.raw.get()
    }

    /// As [`Head::wake`] for one exclusive waiter, after a full barrier.
    ///
    /// Context: any, including hard IRQ.
    pub(super) fn wake_one_after_barrier(&self) {
        // SAFETY: The head is initialised and outlives this call.
        if unsafe { bindings::kdapl_helper_waitqueue_active(self.raw.get()) } {
            self.wake(1, ANY);
        }
    }

    /// Returns whether a task or a poll waits, after a full barrier. Context: any.
    fn has_sleepers(&self) -> bool {
        // SAFETY: The head is initialised and outlives this call.
        unsafe { bindings::kdapl_helper_wq_has_sleeper(self.raw.get()) }
    }

    /// Wakes all non-exclusive waiters, and at most `exclusive` exclusive ones; 0 wakes all. A poll
    /// is woken only if it waits for one of `events`.
    fn wake(&self, exclusive: i32, events: PollEvents) {
        if !self.has_sleepers() {
            return;
        }
        // SAFETY: As above.
        unsafe {
            bindings::__wake_up(
                self.raw.get(),
                bindings::TASK_NORMAL,
                exclusive,
                // The kernel's `poll_to_key()`.
                core::ptr::without_provenance_mut(events as usize),
            )
        };
    }
}

impl WakeAll for Head {
    fn wake(&self) {
        Head::wake(self, 0, ANY);
    }
}

/// A place in which any number of tasks can wait.
#[pin_data]
pub(crate) struct WaitQueue {
    #[pin]
    alarm: Alarm<Head>,
}

// SAFETY: A wait queue is meant to be shared: its internal lock protects the list.
unsafe impl Send for WaitQueue {}
// SAFETY: As above.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Creates an empty wait queue. Use [`new_wait_queue!`].
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self { alarm <- Alarm::new(Head::new(name, key)) })
    }

    /// Returns the queue, for [entries](super::WaitEntry).
    pub(crate) fn head(&self) -> &Head {
        &self.alarm.sleepers
    }

    /// Returns the C pointer, for C functions that wait on the queue.
    pub(in crate::sys) fn as_ptr(&self) -> *mut bindings::wait_queue_head {
        self.alarm.sleepers.raw.get()
    }

    /// Returns whether a task or a poll waits, after a full barrier. Context: any.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.alarm.sleepers.has_sleepers()
    }

    /// Wakes all waiters.
    ///
    /// Context: any, including hard IRQ. The caller must have made the condition true before. This
    /// function contains the full barrier between that store and the check for waiters.
    pub(crate) fn wake_all(&self) {
        self.alarm.sleepers.wake(0, ANY);
    }

    /// Wakes one of the tasks in [`WaitQueue::wait`], and the polls for something to read.
    ///
    /// Context: as for [`WaitQueue::wake_all`].
    pub(crate) fn wake_one(&self) {
        self.alarm.sleepers.wake(1, READABLE);
    }

    /// Sleeps until `ready` returns true, the deadline passes, or a signal is pending. The wait is
    /// exclusive: [`WaitQueue::wake_one`] wakes one such waiter.
    ///
    /// `ready` takes precedence: it is checked once more after each sleep. It also runs with the
    /// task state set, so it must not sleep.
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait(&self, deadline: &mut Deadline, ready: impl FnMut() -> bool) -> SleepResult {
        let (flags, state) = (bindings::WQ_FLAG_EXCLUSIVE, bindings::TASK_INTERRUPTIBLE);
        self.wait_as(flags as i32, state as i32, deadline, ready)
    }

    /// Sleeps until `ready` returns true, and ignores signals. It is for conditions that must hold
    /// before the caller can continue and that will always come true. `ready` is as for
    /// [`WaitQueue::wait`].
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait_for(&self, ready: impl FnMut() -> bool) {
        let state = bindings::TASK_UNINTERRUPTIBLE as i32;
        // There is no deadline, and signals do not end the wait.
        let _ = self.wait_as(0, state, &mut Deadline::Never, ready);
    }

    /// Sleeps until `ready` returns true or the deadline passes, and ignores signals. `ready` is as
    /// for [`WaitQueue::wait`].
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait_until(
        &self,
        deadline: &mut Deadline,
        ready: impl FnMut() -> bool,
    ) -> SleepResult {
        let state = bindings::TASK_UNINTERRUPTIBLE as i32;
        self.wait_as(0, state, deadline, ready)
    }

    fn wait_as(
        &self,
        flags: i32,
        state: i32,
        deadline: &mut Deadline,
        ready: impl FnMut() -> bool,
    ) -> SleepResult {
        might_sleep();
        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: `entry` is valid for a write. It stays in place until `finish_wait` below.
        unsafe { bindings::init_wait_entry(entry.get(), flags) };
        let outcome = self.alarm.wait(
            deadline,
            // SAFETY: Head and entry are initialised. `finish_wait` removes the entry before either
            // is freed.
            || unsafe { bindings::prepare_to_wait_event(self.as_ptr(), entry.get(), state) != 0 },
            ready,
        );
        // SAFETY: As above. Afterwards the entry is not in the queue.
        unsafe { bindings::finish_wait(self.as_ptr(), entry.get()) };
        outcome
    }
}

/// Creates a [`WaitQueue`] with its own lockdep class.
macro_rules! new_wait_queue {
    ($name:literal) => {
        $crate::sys::wait::WaitQueue::new(::kernel::c_str!($name), ::kernel::static_lock_class!())
    };
}
pub(crate) use new_wait_queue;

#[kunit_tests(kdapl_sys_wait_queue)]
mod tests {
    use super::{
        super::SleepResult,
        *, //
    };
    use crate::sys::workqueue::queue;
    use kernel::{
        impl_has_work, new_work,
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Full, //
            },
            Arc, //
        },
        workqueue::{
            Work,
            WorkItem, //
        },
    };

    /// A queue in which each waiter waits for a token of its own.
    #[pin_data]
    struct Tokens {
        #[pin]
        waiters: WaitQueue,
        #[pin]
        test: WaitQueue,
        tokens: Atomic<i32>,
        served: Atomic<i32>,
    }

    impl Tokens {
        fn new() -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    waiters <- new_wait_queue!("Tokens::waiters"),
                    test <- new_wait_queue!("Tokens::test"),
                    tokens: Atomic::new(0),
                    served: Atomic::new(0),
                }),
                GFP_KERNEL,
            )
        }

        /// Takes a token if there is one.
        fn take(&self) -> bool {
            loop {
                let tokens = self.tokens.load(Acquire);
                if tokens == 0 {
                    return false;
                }
                if self.tokens.cmpxchg(tokens, tokens - 1, Full).is_ok() {
                    return true;
                }
            }
        }

        /// Waits until so many waiters have a token. Hangs if a wake-up is lost.
        fn wait_for(&self, served: i32) {
            self.test.wait_for(|| self.served.load(Acquire) == served);
        }
    }

    #[pin_data]
    struct Waiter {
        #[pin]
        work: Work<Waiter>,
        tokens: Arc<Tokens>,
    }

    impl_has_work! { impl HasWork<Self> for Waiter { self.work } }

    impl WorkItem for Waiter {
        type Pointer = Arc<Self>;

        fn run(this: Arc<Self>) {
            let tokens = &this.tokens;
            if tokens.waiters.wait(&mut Deadline::Never, || tokens.take()) == SleepResult::Ready {
                tokens.served.fetch_add(1, Full);
                tokens.test.wake_all();
            }
        }
    }

    impl Waiter {
        fn start(tokens: Arc<Tokens>) -> Result {
            let waiter = pin_init!(Self { work <- new_work!("Waiter::work"), tokens });
            let waiter = Arc::pin_init(waiter, GFP_KERNEL)?;
            queue().enqueue(waiter).map_err(|_| EBUSY)
        }
    }

    /// Starts so many waiters.
    fn waiters(count: usize) -> Result<Arc<Tokens>> {
        let tokens = Tokens::new()?;
        for _ in 0..count {
            Waiter::start(tokens.clone())?;
        }
        Ok(tokens)
    }

    #[test]
    fn each_wake_one_ends_a_wait() -> Result {
        let tokens = waiters(3)?;
        for served in 1..=3 {
            tokens.tokens.fetch_add(1, Full);
            tokens.waiters.wake_one();
            tokens.wait_for(served);
        }
        Ok(())
    }

    #[test]
    fn wake_all_ends_all_waits() -> Result {
        let tokens = waiters(3)?;
        tokens.tokens.fetch_add(3, Full);
        tokens.waiters.wake_all();
        tokens.wait_for(3);
        Ok(())
    }

    #[test]
    fn a_passed_deadline_ends_a_wait() -> Result {
        let tokens = Tokens::new()?;
        for (is_ready, outcome) in [(true, SleepResult::Ready), (false, SleepResult::TimedOut)] {
            let mut deadline = Deadline::after_nanos(0);
            assert!(tokens.waiters.wait(&mut deadline, || is_ready) == outcome);
            assert!(tokens.waiters.wait_until(&mut deadline, || is_ready) == outcome);
        }
        Ok(())
    }
}
