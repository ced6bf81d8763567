// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! When to look again how much is left of a long time-out, by a timer of the kernel's wheel that many share.
//!
//! The wheel keeps its timers in buckets, the coarser the farther: of 8^n ticks where less than 63 times that
//! is left, so of no more than an eighth of the delay, nearly. A timer rings with its bucket, at the first
//! multiple of that size behind the time that it was set to. Who comes later and finds it set to a time that
//! is early enough would so be woken too late: with what was set an hour ago, by minutes. Set to a tick before
//! a multiple of a larger power of two, a timer rings at the very next tick, in whatever bucket it lies.

/// Milliseconds that are worth a timer of the wheel: less is left to one of high resolution.
const FAR_MS: u64 = 256;

const NANOSECONDS_OF_A_MILLISECOND: u64 = 1_000_000;

/// After how many milliseconds to look again, if so many nanoseconds are left; `None` if that is soon.
///
/// Three quarters of them: ticks are counted from the last one, and the wheel's come late.
pub(crate) fn look_after(nanoseconds: i64) -> Option<u32> {
    let left = u64::try_from(nanoseconds).ok()? / NANOSECONDS_OF_A_MILLISECOND;
    if left < FAR_MS {
        return None;
    }
    let most = (left / 4).saturating_mul(3);
    Some(u32::try_from(most).unwrap_or(u32::MAX))
}

/// What to set the timer to, in ticks, so that it rings within `delay` ticks from `now`: in the second half of them.
pub(crate) const fn expiry(now: u64, delay: u32) -> u64 {
    // Not smaller than the bucket, and at most half the delay.
    let grain = match (delay / 4).checked_next_power_of_two() {
        Some(grain) => grain as u64,
        None => 1,
    };
    let time = now.wrapping_add(delay as u64);
    (time & !grain.wrapping_sub(1)).wrapping_sub(1)
}
