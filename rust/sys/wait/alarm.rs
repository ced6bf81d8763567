// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Far deadlines, for next to nothing.
//!
//! Nearly every sleep ends long before its deadline, so that the price of a time-out is that of setting and
//! deleting its timer. Here neither is done: a wait queue has one timer of the kernel's wheel, which wakes
//! all who sleep there to look how much time they have left. Whoever goes to sleep sets it only if it would
//! ring later than that, or not at all, and nobody deletes it.
//!
//! C header: [`include/linux/timer.h`](srctree/include/linux/timer.h)

use super::WaitQueue;
use crate::model::wheel;
use kdapl_bindings as bindings;
use kernel::{
    container_of,
    ffi::c_ulong,
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

/// A time, in jiffies.
#[derive(Clone, Copy)]
pub(super) struct Jiffies(c_ulong);

impl Jiffies {
    /// When to look again, who has so many nanoseconds left from now; `None` if that is soon.
    pub(super) fn before(nanoseconds: i64) -> Option<Self> {
        let delay = msecs_to_jiffies(wheel::look_after(nanoseconds)?);
        // SAFETY: Reading the count of ticks has no precondition.
        let now = unsafe { bindings::kdapl_helper_jiffies() } as u64;
        let expiry = wheel::expiry(now, u32::try_from(delay).unwrap_or(u32::MAX));
        Some(Self(expiry as c_ulong))
    }
}

/// The timer of a [`WaitQueue`], in which it lies.
#[pin_data(PinnedDrop)]
pub(super) struct Alarm {
    #[pin]
    timer: Opaque<bindings::timer_list>,
}

impl Alarm {
    /// One that is not set. It must be the `alarm` of a [`WaitQueue`].
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            timer <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for a write, and its pinned content stays there until the drop,
                // behind which the timer does not run.
                unsafe { bindings::kdapl_helper_timer_setup(slot, Some(ring)) }
            }),
        })
    }

    /// Wakes whoever sleeps in the queue by this time; may do so before. The kernel compares with the time that
    /// the timer was set to, which is that at which it rings: see [`wheel`].
    pub(super) fn set_by(&self, time: Jiffies) {
        // SAFETY: The timer is initialised.
        unsafe { bindings::timer_reduce(self.timer.get(), time.0) };
    }
}

#[pinned_drop]
impl PinnedDrop for Alarm {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The timer is initialised, and nobody sets it any more. What it calls takes the lock of its
        // wait queue only, which nobody holds who drops it.
        unsafe { bindings::timer_shutdown_sync(self.timer.get()) };
    }
}

/// The timer's function. Context: soft IRQ.
///
/// # Safety
///
/// `timer` is that of an [`Alarm`], which is that of a [`WaitQueue`].
unsafe extern "C" fn ring(timer: *mut bindings::timer_list) {
    let timer = Opaque::cast_from(timer.cast_const());
    // SAFETY: By the caller it lies in an alarm, and that in a wait queue.
    let queue = unsafe {
        let alarm = container_of!(timer, Alarm, timer);
        &*container_of!(alarm, WaitQueue, alarm)
    };
    queue.wake_all();
}
