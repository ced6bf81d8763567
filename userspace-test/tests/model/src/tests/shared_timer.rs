// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the expiry of the shared timer, with the rounding of the kernel's timer wheel.

use crate::rust::model::shared_timer::{
    expiry,
    recheck_delay_ms, //
};
use proptest::prelude::*;

/// Returns the time at which a timer expires that is set to `expires` at `clock`, as
/// `calc_wheel_index()` in the kernel's `timer.c` computes it.
fn rings(clock: u64, expires: u64) -> u64 {
    const LEVELS: u32 = 9;
    let delta = expires.wrapping_sub(clock);
    // In the past: the timer expires at once.
    if (delta as i64) < 0 {
        return clock;
    }
    let level = (0..LEVELS - 1)
        .find(|level| delta < 63 << (3 * level))
        .unwrap_or(LEVELS - 1);
    let shift = 3 * level;
    ((expires >> shift) + 1) << shift
}

/// Delays in ticks, up to more than an hour at 1000 ticks per second.
fn delays() -> impl Strategy<Value = u32> {
    prop_oneof![19_u32..300, 19_u32..5_000_000]
}

#[test]
fn short_delays_do_not_use_the_shared_timer() {
    assert_eq!(recheck_delay_ms(-1), None);
    assert_eq!(recheck_delay_ms(i64::MIN), None);
    assert_eq!(recheck_delay_ms(0), None);
    assert_eq!(recheck_delay_ms(255_999_999), None);
    assert_eq!(recheck_delay_ms(256_000_000), Some(192));
    assert_eq!(recheck_delay_ms(1_000_000_000), Some(750));
    assert_eq!(recheck_delay_ms(4_294_967_295_000), Some(3_221_223));
    assert_eq!(recheck_delay_ms(i64::MAX), Some(u32::MAX));
}

#[test]
fn the_timer_is_set_one_tick_before_a_multiple_of_a_power_of_two() {
    assert_eq!(expiry(0, 11_250), 8_191);
    assert_eq!(expiry(1_000, 48), 1_039);
    assert_eq!(expiry(1_000, 4), 1_003);
    assert_eq!(expiry(1_000, 1), 1_000);
    assert_eq!(expiry(1_000, 0), 999);
    assert_eq!(expiry(0, u32::MAX), 0xbfff_ffff);
}

proptest! {
    #[test]
    fn the_sleeper_that_sets_the_timer_is_woken_in_the_second_half(now in 0_u64..1 << 40, delay in delays()) {
        let ring = rings(now, expiry(now, delay));
        prop_assert!(ring <= now + u64::from(delay), "{ring}");
        prop_assert!(ring > now + u64::from(delay / 2), "{ring}");
    }

    /// A later sleeper compares with the time that the timer was set to, not with the time at which
    /// its bucket expires.
    #[test]
    fn a_sleeper_that_finds_the_timer_early_enough_is_woken_in_time(
        now in 0_u64..1 << 40,
        longer in delays(),
        later in 0_u32..5_000_000,
        delay in delays(),
    ) {
        let set = expiry(now, longer);
        let ring = rings(now, set);
        let later = now + u64::from(later % longer);
        let wanted = expiry(later, delay);
        if ring > later && set <= wanted {
            prop_assert!(ring <= later + u64::from(delay), "{set} {ring} {later} {wanted}");
        }
    }
}
