// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A lock that is a mutex or a spinlock, as its owner chooses when it creates the lock.

use super::{
    IrqSaveBackend,
    SpinLockIrq, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{
        Deref,
        DerefMut, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        lock::Guard,
        Mutex,
        MutexGuard, //
    },
};

/// Context in which an object is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockContext {
    /// Threads only. The lock is a mutex: its holder may be preempted, and may take mutexes.
    Process,
    /// Also soft interrupts. The lock is a [`SpinLockIrq`]: its holder must not sleep.
    Any,
}

/// A mutex or a spinlock. Only one of the two is ever taken.
///
/// # Invariants
///
/// `data` is accessed by the holder of the lock of `context` only, or by the owner of the value.
#[pin_data]
pub(crate) struct ContextLock<T> {
    context: LockContext,
    #[pin]
    mutex: Mutex<()>,
    #[pin]
    spinlock: SpinLockIrq<()>,
    data: UnsafeCell<T>,
}

// SAFETY: The lock gives access to the data to one thread at a time, as a mutex does.
unsafe impl<T: Send> Sync for ContextLock<T> {}

impl<T> ContextLock<T> {
    /// Creates a lock. Use [`new_context_lock`].
    pub(crate) fn new(
        data: T,
        context: LockContext,
        mutex: impl PinInit<Mutex<()>>,
        spinlock: impl PinInit<SpinLockIrq<()>>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            context,
            mutex <- mutex,
            spinlock <- spinlock,
            data: UnsafeCell::new(data),
        })
    }

    /// Takes the lock.
    ///
    /// Context: process, and it sleeps; any for [`LockContext::Any`]. As for a [`SpinLockIrq`],
    /// guards must be dropped in the reverse order of their creation.
    #[inline]
    pub(crate) fn lock(&self) -> ContextGuard<'_, T> {
        let held = match self.context {
            LockContext::Process => Held::Mutex(self.mutex.lock()),
            LockContext::Any => Held::Spinlock(self.spinlock.lock()),
        };
        ContextGuard {
            lock: self,
            _held: held,
            _data: PhantomData,
        }
    }
}

/// The lock that is held, until the drop.
enum Held<'a> {
    Mutex(#[expect(dead_code, reason = "dropped only")] MutexGuard<'a, ()>),
    Spinlock(#[expect(dead_code, reason = "dropped only")] Guard<'a, (), IrqSaveBackend>),
}

/// Holder of a [`ContextLock`].
pub(crate) struct ContextGuard<'a, T> {
    lock: &'a ContextLock<T>,
    _held: Held<'a>,
    /// The guard is `Sync` only if the data are.
    _data: PhantomData<&'a mut T>,
}

impl<T> Deref for ContextGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: This guard holds the lock, and borrows itself.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T> DerefMut for ContextGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: This guard holds the lock, and borrows itself exclusively.
        unsafe { &mut *self.lock.data.get() }
    }
}

/// Creates a [`ContextLock`], whose mutex and spinlock have lockdep classes of their own.
macro_rules! new_context_lock {
    ($inner:expr, $context:expr, $name:literal) => {
        $crate::sys::lock::ContextLock::new(
            $inner,
            $context,
            ::kernel::new_mutex!((), $name),
            $crate::sys::lock::new_spinlock_irq!((), $name),
        )
    };
}
pub(crate) use new_context_lock;

#[kunit_tests(kdapl_sys_context_lock)]
mod tests {
    use super::*;
    use crate::sys::task::CallContext;
    use kernel::sync::Arc;

    fn lock(context: LockContext) -> Result<Arc<ContextLock<u32>>> {
        Arc::pin_init(new_context_lock!(7, context, "tests::lock"), GFP_KERNEL)
    }

    #[test]
    fn a_lock_for_any_context_is_a_spinlock() -> Result {
        for (context, sleeps) in [(LockContext::Process, true), (LockContext::Any, false)] {
            let lock = lock(context)?;
            let free = CallContext::current();
            {
                let mut guard = lock.lock();
                assert!(*guard == 7);
                *guard = 8;
                let sleeps = sleeps && free.may_sleep();
                assert!(CallContext::current().may_sleep() == sleeps);
            }
            assert!(CallContext::current() == free);
            assert!(*lock.lock() == 8);
        }
        Ok(())
    }
}
