// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Expiry of the shared timer for long time-outs.
//!
//! Sleepers with a long time-out share one timer of the kernel's timer wheel. When it expires, each
//! of them checks how much time is left.
//!
//! The wheel keeps its timers in buckets whose granularity grows with the delay. A bucket has a
//! granularity of 8^n ticks if the timer expires in less than 63 * 8^n ticks, so the granularity is
//! about an eighth of the delay at most. A timer expires with its bucket, at the first multiple of
//! the granularity after the time that it was set to.
//!
//! A later sleeper does not change the timer if that is set to a time that is early enough.
//! But the timer may expire late: minutes late, if it was set an hour before. To avoid that, the
//! timer is set to one tick before a multiple of a power of two that is at least the granularity.
//! It then expires one tick after the time that it was set to, in any bucket.

/// Shortest time in milliseconds for which the wheel is used. A shorter rest needs a
/// high-resolution timer.
const MIN_WHEEL_MS: u64 = 256;

const NANOSECONDS_OF_A_MILLISECOND: u64 = 1_000_000;

/// Returns the delay in milliseconds after which a sleeper with this much time left should check
/// again; `None` if too little is left for the wheel.
///
/// The delay is three quarters of the time left: the delay counts from the last tick, and a timer
/// of the wheel expires late.
pub(crate) fn recheck_delay_ms(nanoseconds: i64) -> Option<u32> {
    let left = u64::try_from(nanoseconds).ok()? / NANOSECONDS_OF_A_MILLISECOND;
    if left < MIN_WHEEL_MS {
        return None;
    }
    let most = (left / 4).saturating_mul(3);
    Some(u32::try_from(most).unwrap_or(u32::MAX))
}

/// Returns the time in ticks to set the timer to, so that it expires within `delay` ticks from
/// `now`. The time is in the second half of the delay.
pub(crate) const fn expiry(now: u64, delay: u32) -> u64 {
    // At least the granularity of the bucket, and at most half the delay.
    let grain = match (delay / 4).checked_next_power_of_two() {
        Some(grain) => grain as u64,
        None => 1,
    };
    let time = now.wrapping_add(delay as u64);
    (time & !grain.wrapping_sub(1)).wrapping_sub(1)
}
