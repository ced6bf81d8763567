// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How often a request is sent again before its peer is given up, and after what time.
//!
//! A reliable connection sends a request again when no acknowledgement has come for the *local ACK
//! time-out*, encoded as `t` for 4.096 us * 2^t, and gives the peer up after a *retry count* of at
//! most 7. (InfiniBand Architecture Specification, volume 1, 9.7.6.1.3 and 11.2.5.2.)
//!
//! The timer may have run for a while when the peer falls silent, since it was started for an earlier
//! request. So with a count of `n` a silent peer is given up after `n` to `n + 1` intervals. (An
//! adapter may take up to four times the interval; the specification allows it.)

/// Nanoseconds of an encoded interval of 0.
const UNIT_NS: u64 = 4_096;

/// Nanoseconds in a millisecond.
const NS_PER_MS: u64 = 1_000_000;

/// The longest interval that can be encoded. 0 is not the shortest: it means to wait for ever.
const LONGEST: u8 = 31;

/// The shortest interval, encoded, that is longer than any wait a receiver that is not ready can ask
/// for: 1.07 s, where that is 655 ms.
pub(crate) const LONGER_THAN_RNR: u8 = 18;

/// When a request is sent again, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// The local ACK time-out, encoded: 1 .. 31.
    pub(crate) timeout: u8,
    /// The retry count: at least 1.
    pub(crate) count: u8,
}

/// What path and device allow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The shortest time-out that the path allows, encoded: a request that is sent again sooner may
    /// only have been slow.
    pub(crate) shortest: u8,
    /// The highest retry count of the device.
    pub(crate) most: u8,
}

impl Retry {
    /// Gives a silent peer up after no less than `milliseconds`, and not much more: no more than
    /// twice that, or two of the shortest intervals if that is longer.
    ///
    /// Of the intervals with which that can be done it is the shortest. A packet that got lost is
    /// sent again after one of them, and so is what a peer has missed that was silent for a while.
    pub(crate) fn after(milliseconds: u32, bounds: Bounds) -> Self {
        let time = u64::from(milliseconds).saturating_mul(NS_PER_MS);
        let most = bounds.most.max(1);
        let mut timeout = bounds.shortest.clamp(1, LONGEST);
        while timeout < LONGEST && count(time, timeout) > u64::from(most) {
            timeout = timeout.saturating_add(1);
        }
        let count = u8::try_from(count(time, timeout)).map_or(most, |count| count.min(most));
        Self { timeout, count }
    }
}

/// Nanoseconds of an encoded interval.
const fn interval(timeout: u8) -> u64 {
    UNIT_NS << (timeout & LONGEST)
}

/// How many intervals it takes for the time to pass; at least one.
const fn count(time: u64, timeout: u8) -> u64 {
    let intervals = time.div_ceil(interval(timeout));
    if intervals == 0 {
        1
    } else {
        intervals
    }
}
