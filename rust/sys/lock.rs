// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Locks: a spinlock that disables interrupts while it is held, and a lock that is this one or a
//! mutex.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

mod context_lock;

pub(crate) use context_lock::{
    new_context_lock,
    ContextGuard,
    ContextLock,
    LockContext, //
};

use kdapl_bindings as bindings;
use kernel::{
    ffi::{
        c_char,
        c_ulong, //
    },
    sync::lock::{
        Backend,
        Guard,
        Lock, //
    },
};

/// A spinlock for data that interrupt handlers access as well.
///
/// A guard restores the interrupt state that it found. Guards must therefore be dropped in the
/// reverse order of their creation: use nested blocks, and never two guards in one scope.
pub(crate) type SpinLockIrq<T> = Lock<T, IrqSaveBackend>;

/// Guard of a [`SpinLockIrq`].
pub(crate) type SpinLockIrqGuard<'a, T> = Guard<'a, T, IrqSaveBackend>;

/// [`Backend`] of [`SpinLockIrq`]: `spin_lock_irqsave()` and `spin_unlock_irqrestore()`.
pub(crate) struct IrqSaveBackend;

// SAFETY: `lock` returns with the spinlock held by this context and interrupts disabled. `unlock`
// releases it. In between the spinlock excludes every other context.
unsafe impl Backend for IrqSaveBackend {
    type State = bindings::spinlock_t;
    /// The interrupt state before the lock was taken.
    type GuardState = c_ulong;

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller guarantees that `ptr` is valid, and that `name` and `key` live as long
        // as the lock.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller guarantees that `ptr` is an initialised lock.
        unsafe { bindings::kdapl_helper_spin_lock_irqsave(ptr) }
    }

    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: The caller guarantees that `ptr` is an initialised lock. `flags` is a local
        // variable.
        unsafe { bindings::kdapl_helper_spin_trylock_irqsave(ptr, &raw mut flags) }.then_some(flags)
    }

    unsafe fn unlock(ptr: *mut Self::State, flags: &Self::GuardState) {
        // SAFETY: The caller guarantees that it holds the lock, and that `flags` is the state that
        // taking it returned.
        unsafe { bindings::kdapl_helper_spin_unlock_irqrestore(ptr, *flags) }
    }

    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // Without lockdep the function checks nothing, but it would be called for each guard.
        if cfg!(CONFIG_LOCKDEP) {
            // SAFETY: The caller guarantees that `ptr` is an initialised lock.
            unsafe { bindings::spin_assert_is_held(ptr) }
        }
    }
}

/// Creates a [`SpinLockIrq`] with its own lockdep class.
macro_rules! new_spinlock_irq {
    ($inner:expr, $name:literal) => {
        $crate::sys::lock::SpinLockIrq::new(
            $inner,
            ::kernel::c_str!($name),
            ::kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_spinlock_irq;
