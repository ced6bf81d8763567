// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Retransmission interval and retry count of a queue pair.
//!
//! A reliable connection sends a request again if no acknowledgement has arrived within the *local
//! ACK time-out*. The time-out is encoded as `t` for 4.096 us * 2^t. After at most 7 retries (the
//! *retry count*) the connection fails. (InfiniBand Architecture Specification, volume 1, 9.7.6.1.3
//! and 11.2.5.2.)
//!
//! The timer may be running for an earlier request when the peer stops responding. So with a retry
//! count of `n` the connection fails after `n` to `n + 1` intervals. (The specification allows an
//! adapter to use up to four times the interval.)

/// Nanoseconds of an interval that is encoded as 0.
const UNIT_NS: u64 = 4_096;

/// Nanoseconds in a millisecond.
const NS_PER_MS: u64 = 1_000_000;

/// Longest interval that can be encoded. An encoded 0 is not the shortest interval: it disables the
/// timer.
const LONGEST: u8 = 31;

/// Shortest encoded interval that is longer than any delay that a receiver can request with an RNR
/// NAK: 1.07 s; the longest delay is 655 ms.
pub(crate) const LONGER_THAN_RNR: u8 = 18;

/// Retransmission interval and retry count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// The local ACK time-out, encoded: 1 .. 31.
    pub(crate) timeout: u8,
    /// The retry count: at least 1.
    pub(crate) count: u8,
}

/// Limits of the path and of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryLimits {
    /// Shortest time-out for the path, encoded. With a shorter one, a request that is merely slow
    /// would be sent again.
    pub(crate) min_timeout: u8,
    /// Largest retry count that the device uses up.
    pub(crate) max_retries: u8,
    /// The device never uses up a retry count of [`ENDLESS`].
    pub(crate) may_be_endless: bool,
}

/// Largest retry count.
pub(crate) const ENDLESS: u8 = 7;

/// Longest time-out for a silent peer in milliseconds. Also the time-out of a connection without a
/// peer time-out, if the device has no endless retries.
pub(crate) const LONGEST_MS: u32 = 3_600_000;

impl Retry {
    /// Chooses the values for a connection without a peer time-out: endless retries if the device
    /// has them, else a time-out of [`LONGEST_MS`].
    ///
    /// The interval of endless retries is the shortest one: it is the delay until a lost packet is
    /// sent again.
    pub(crate) fn for_any_time(limits: RetryLimits) -> Self {
        if limits.may_be_endless {
            Self {
                timeout: limits.min_timeout.clamp(1, LONGEST),
                count: ENDLESS,
            }
        } else {
            Self::for_peer_timeout(LONGEST_MS, limits)
        }
    }

    /// Chooses the values with which a connection to a silent peer fails after at least
    /// `milliseconds`, and before two intervals more have passed.
    ///
    /// Of all possible intervals the shortest is chosen. One interval is the delay until a lost
    /// packet, or one that the peer missed while it was silent, is sent again. With four retries or
    /// more it is at most half of the time, unless it is the shortest interval of the path. The
    /// connection then fails before twice the time.
    pub(crate) fn for_peer_timeout(milliseconds: u32, limits: RetryLimits) -> Self {
        let time = u64::from(milliseconds).saturating_mul(NS_PER_MS);
        let most = limits.max_retries.max(1);
        let mut timeout = limits.min_timeout.clamp(1, LONGEST);
        while timeout < LONGEST && count(time, timeout) > u64::from(most) {
            timeout = timeout.saturating_add(1);
        }
        let count = u8::try_from(count(time, timeout)).map_or(most, |count| count.min(most));
        Self { timeout, count }
    }
}

/// Returns the nanoseconds of an encoded interval.
const fn interval(timeout: u8) -> u64 {
    UNIT_NS << (timeout & LONGEST)
}

/// Returns the number of intervals until the time has passed; at least one.
const fn count(time: u64, timeout: u8) -> u64 {
    let intervals = time.div_ceil(interval(timeout));
    if intervals == 0 {
        1
    } else {
        intervals
    }
}
