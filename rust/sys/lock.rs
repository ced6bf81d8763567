// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A spinlock that disables interrupts while it is held.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use kdapl_bindings as bindings;
use kernel::{
    ffi::{
        c_char,
        c_ulong, //
    },
    sync::lock::{
        Backend,
        Lock, //
    },
};

/// A lock for data that is touched from interrupt context as well.
///
/// Guards restore the interrupt state that they found, so they are dropped in the reverse order of
/// their making: nested blocks, never two in one scope.
pub(crate) type SpinLockIrq<T> = Lock<T, IrqSaveBackend>;

/// [`Backend`] of [`SpinLockIrq`]: `spin_lock_irqsave()` and its partner.
pub(crate) struct IrqSaveBackend;

// SAFETY: `lock` returns with the spinlock held by this context and interrupts off, `unlock` is its
// counterpart, and a spinlock excludes everybody else in between.
unsafe impl Backend for IrqSaveBackend {
    type State = bindings::spinlock_t;
    /// The interrupt state from before the lock was taken.
    type GuardState = c_ulong;

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller vouches for `ptr`, and that `name` and `key` live as long as the lock.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller vouches that `ptr` is an initialised lock.
        unsafe { bindings::kdapl_helper_spin_lock_irqsave(ptr) }
    }

    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: The caller vouches that `ptr` is an initialised lock; `flags` is ours.
        unsafe { bindings::kdapl_helper_spin_trylock_irqsave(ptr, &raw mut flags) }.then_some(flags)
    }

    unsafe fn unlock(ptr: *mut Self::State, flags: &Self::GuardState) {
        // SAFETY: The caller vouches that it holds the lock, and got `flags` when it took it.
        unsafe { bindings::kdapl_helper_spin_unlock_irqrestore(ptr, *flags) }
    }

    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: The caller vouches that `ptr` is an initialised lock.
        unsafe { bindings::spin_assert_is_held(ptr) }
    }
}

/// Makes a [`SpinLockIrq`] with a lockdep class of its own.
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
