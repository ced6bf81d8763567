// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! High-resolution timers that end the sleeps of a thread, as tracepoints record them.

use crate::trace::Told;

/// Function of the timers that wake a sleeping thread.
const WAKES_THREAD: &str = "hrtimer_wakeup";

/// A timer that has expired. Times are of `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Time at which it was set, rounded to a microsecond.
    pub set: u64,
    /// Time to which it was set.
    pub expiry: u64,
    /// Time at which it expired.
    pub expired: u64,
}

/// Returns the timers that thread `tid` set to wake itself and that have expired, in order.
#[must_use]
pub fn of_thread(told: &[Told], tid: i32) -> Vec<Timer> {
    let starts = told.iter().enumerate().filter(|(_, line)| {
        line.event == "hrtimer_start" && line.task == tid && line.get("function") == WAKES_THREAD
    });
    starts.filter_map(|(at, line)| expired(line, &told[at + 1..])).collect()
}

/// Returns the timer that `start` sets, if it expires in the `rest` before it is set again.
fn expired(start: &Told, rest: &[Told]) -> Option<Timer> {
    let name = start.get("hrtimer");
    let next = rest.iter().find(|line| line.get("hrtimer") == name)?;
    Some(Timer {
        set: start.time,
        expiry: start.get("softexpires").parse().ok()?,
        // Only the expiry has this field.
        expired: next.get("now").parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{of_thread, Timer};
    use crate::trace::Told;

    const LINES: [(i32, &str); 6] = [
        (7, "hrtimer_start: hrtimer=a function=hrtimer_wakeup expires=59 softexpires=50 mode=ABS"),
        (8, "hrtimer_start: hrtimer=b function=hrtimer_wakeup expires=50 softexpires=50 mode=ABS"),
        (7, "hrtimer_start: hrtimer=c function=tick_nohz_handler expires=5 softexpires=5 mode=ABS"),
        (0, "hrtimer_expire_entry: hrtimer=c function=tick_nohz_handler now=6"),
        (0, "hrtimer_expire_entry: hrtimer=a function=hrtimer_wakeup now=61"),
        // Woken before the expiry.
        (7, "hrtimer_start: hrtimer=a function=hrtimer_wakeup expires=90 softexpires=90 mode=ABS"),
    ];

    #[test]
    fn only_expired_timers_of_the_thread_are_found() {
        let told = LINES.map(|(task, line)| {
            let mut told = Told::parse(line).unwrap();
            (told.task, told.time) = (task, 20);
            told
        });
        assert_eq!(of_thread(&told, 7), [Timer { set: 20, expiry: 50, expired: 61 }]);
    }
}
