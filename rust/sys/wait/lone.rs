// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A place in which one task at a time can wait.
//!
//! With a single waiter a wait queue's list and lock are not needed. The waker only needs a pointer
//! to the task while it waits.
//!
//! C header: [`include/linux/rcuwait.h`](srctree/include/linux/rcuwait.h)

use super::{
    alarm::{
        Alarm,
        WakeAll, //
    },
    Deadline,
    HasHead,
    Head,
    SleepResult,
    WaitEntry,
    Wake, //
};
use crate::model::atomic::AtomicBool;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    static_lock_class,
    sync::Arc,
    task::might_sleep,
    types::Opaque, //
};

/// A `struct rcuwait`.
struct Rcuwait(Opaque<bindings::rcuwait>);

impl WakeAll for Rcuwait {
    fn wake(&self) {
        // SAFETY: The structure is initialised. RCU keeps the waiting task alive while it is woken.
        unsafe { bindings::rcuwait_wake_up(self.0.get()) };
    }
}

/// A place in which one task at a time can wait.
#[pin_data]
pub(crate) struct LoneWaiter {
    #[pin]
    alarm: Alarm<Rcuwait>,
    /// The waiter, if it is a [`WaitEntry`] instead of a task.
    #[pin]
    called: Head,
    taken: AtomicBool,
}

// SAFETY: The type is meant to be shared. A waker reads the task pointer under RCU. Only the task
// that has reserved it writes it, and there is one such task at a time.
unsafe impl Send for LoneWaiter {}
// SAFETY: As above.
unsafe impl Sync for LoneWaiter {}

impl LoneWaiter {
    /// Creates it without a waiter.
    pub(crate) fn new() -> impl PinInit<Self> {
        // All zeros is the state without a waiter, as `rcuwait_init` sets it.
        let nobody = Rcuwait(Opaque::new(bindings::rcuwait::default()));
        pin_init!(Self {
            alarm <- Alarm::new(nobody),
            called <- Head::new(c"LoneWaiter::called", static_lock_class!()),
            taken: AtomicBool::new(false),
        })
    }

    /// Reserves it for the caller, unless it is reserved already.
    pub(crate) fn take(&self) -> Option<WaiterReservation<'_>> {
        (!self.taken.swap(true)).then(|| WaiterReservation(self))
    }

    /// Returns whether it is reserved. The owner of the reservation may be awake.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load_acquire()
    }

    /// Wakes the waiter, if there is one.
    ///
    /// Context: any, including hard IRQ. The caller must have made the condition true before. This
    /// function contains the full barrier between that store and the check for a waiter.
    pub(crate) fn wake(&self) {
        // Contains a full barrier.
        self.alarm.sleepers.wake();
        self.called.wake_one_after_barrier();
    }
}

/// An object with a [`LoneWaiter`].
pub(crate) trait HasLoneWaiter: Send + Sync {
    /// Returns the place of the only waiter.
    fn lone_waiter(&self) -> &LoneWaiter;
}

impl<T: HasLoneWaiter> HasHead for T {
    fn head(&self) -> &Head {
        &self.lone_waiter().called
    }
}

/// Reservation of a [`LoneWaiter`] for a waker instead of a task, until the drop.
pub(crate) struct OwnedWaiterReservation<T: HasLoneWaiter> {
    object: Arc<T>,
    entry: Option<WaitEntry<T>>,
}

impl<T: HasLoneWaiter> OwnedWaiterReservation<T> {
    /// Reserves the waiter of `object`, unless it is reserved already.
    pub(crate) fn take(object: Arc<T>) -> Option<Self> {
        let was_taken = object.lone_waiter().taken.swap(true);
        (!was_taken).then(|| Self {
            object,
            entry: None,
        })
    }

    /// Lets wake-ups call `waker`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.entry = Some(WaitEntry::new(self.object.clone(), waker)?);
        Ok(())
    }

    /// Returns whether wake-ups call a waker.
    pub(crate) fn is_called(&self) -> bool {
        self.entry.is_some()
    }
}

impl<T: HasLoneWaiter> Drop for OwnedWaiterReservation<T> {
    fn drop(&mut self) {
        self.entry = None;
        self.object.lone_waiter().taken.swap(false);
    }
}

/// Reservation of a [`LoneWaiter`], until the drop.
pub(crate) struct WaiterReservation<'a>(&'a LoneWaiter);

impl WaiterReservation<'_> {
    /// Sleeps until `ready` returns true, the deadline passes, or a signal is pending.
    ///
    /// `ready` takes precedence: it is checked once more after each sleep. It also runs with the
    /// task state set, so it must not sleep.
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait(
        &mut self,
        deadline: &mut Deadline,
        ready: impl FnMut() -> bool,
    ) -> SleepResult {
        might_sleep();
        let alarm = &self.0.alarm;
        let task = alarm.sleepers.0.get();
        // SAFETY: The structure is initialised, and only the owner of the reservation writes it.
        unsafe { bindings::kdapl_helper_prepare_to_rcuwait(task) };
        let outcome = alarm.wait(
            deadline,
            // SAFETY: `finish_rcuwait` below restores the task state.
            || unsafe { bindings::kdapl_helper_set_interruptible() },
            ready,
        );
        // SAFETY: As above.
        unsafe { bindings::finish_rcuwait(task) };
        outcome
    }
}

impl Drop for WaiterReservation<'_> {
    fn drop(&mut self) {
        self.0.taken.swap(false);
    }
}

#[kunit_tests(kdapl_sys_wait_lone)]
mod tests {
    use super::{
        super::now,
        *, //
    };
    use crate::sys::workqueue::queue;
    use kernel::{
        impl_has_work, new_work,
        sync::Arc,
        workqueue::{
            Work,
            WorkItem, //
        },
    };

    /// A waiter, and a work item that wakes it.
    #[pin_data]
    struct Pair {
        #[pin]
        waiter: LoneWaiter,
        is_ready: AtomicBool,
        #[pin]
        waker: Work<Pair>,
    }

    impl_has_work! { impl HasWork<Self> for Pair { self.waker } }

    impl WorkItem for Pair {
        type Pointer = Arc<Self>;

        fn run(this: Arc<Self>) {
            this.is_ready.swap(true);
            this.waiter.wake();
        }
    }

    impl Pair {
        fn new() -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    waiter <- LoneWaiter::new(),
                    is_ready: AtomicBool::new(false),
                    waker <- new_work!("Pair::waker"),
                }),
                GFP_KERNEL,
            )
        }

        /// Waits as the only waiter.
        fn wait(&self, mut deadline: Deadline, ready: impl FnMut() -> bool) -> Result<SleepResult> {
            let mut reservation = self.waiter.take().ok_or(EBUSY)?;
            Ok(reservation.wait(&mut deadline, ready))
        }
    }

    #[test]
    fn one_reservation_at_a_time() -> Result {
        let pair = Pair::new()?;
        let reservation = pair.waiter.take();
        assert!(reservation.is_some());
        assert!(pair.waiter.is_taken());
        assert!(pair.waiter.take().is_none());
        drop(reservation);
        assert!(!pair.waiter.is_taken());
        assert!(pair.waiter.take().is_some());
        Ok(())
    }

    #[test]
    fn the_condition_precedes_the_deadline() -> Result {
        let outcome = Pair::new()?.wait(Deadline::after_nanos(0), || true)?;
        assert!(outcome == SleepResult::Ready);
        Ok(())
    }

    #[test]
    fn no_wait_ends_before_its_deadline() -> Result {
        let pair = Pair::new()?;
        // A high-resolution timer measures the first two, the shared timer the third.
        for nanoseconds in [0, 1_000_000, 400_000_000] {
            let begin = now();
            let outcome = pair.wait(Deadline::after_nanos(nanoseconds), || false)?;
            assert!(outcome == SleepResult::TimedOut);
            assert!(now() - begin >= nanoseconds as i64);
        }
        Ok(())
    }

    /// Hangs if a wake-up is lost, since no deadline ends the wait.
    #[test]
    fn no_wake_up_is_lost() -> Result {
        let pair = Pair::new()?;
        for _ in 0..200 {
            queue().enqueue(pair.clone()).map_err(|_| EBUSY)?;
            let outcome = pair.wait(Deadline::Never, || pair.is_ready.swap(false))?;
            assert!(outcome == SleepResult::Ready);
        }
        Ok(())
    }
}
