// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waiting for events: arm, then poll again.
//!
//! A completion queue notifies once, and only of completions that come after it was armed. Between
//! the last poll and the arming one may have slipped in, of which no notification will ever come:
//! a waiter that polls, arms and sleeps sleeps for ever. So it polls again after arming, and
//! sleeps only if that finds too little. (`ib_req_notify_cq` can report such completions as missed;
//! not every provider does, so it is a short cut here and not what correctness rests on.)
//!
//! The other half is the [`Doorbell`], what a notification rings and the sleep looks at. It is
//! cleared *before* the second poll: cleared later, it would swallow what came in between.
//!
//! ```text
//!   waiter                           completion callback, or whoever pushes an event
//!   clear the bell                   (the event is in the queue)
//!   arm                              ring the bell
//!   look; enough? take, return       wake
//!   sleep until the bell is rung
//! ```
//!
//! Who waits for many events says so in [`Wanted`], and is not woken before there are that many:
//! whoever pushes one rings the bell and wakes only if that makes enough. A completion callback
//! cannot count, so it leaves completions that are to be counted to the pump, which drains them
//! into the event queue and arms again.

use super::atomic::{
    AtomicBool,
    AtomicU32, //
};

/// What arming a completion queue said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    /// Nothing is known to have been missed, or nothing that there is room for.
    Quiet,
    /// There may be completions that no notification will come for.
    Missed,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The bell was rung.
    Woken,
    /// The time is up.
    TimedOut,
    /// A signal arrived.
    Interrupted,
    /// What is waited on is going away.
    Closed,
}

/// Why a wait ended without enough events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The time is up.
    TimedOut,
    /// A signal arrived.
    Interrupted,
    /// What is waited on is going away.
    Closed,
}

/// What a wait works with.
pub(crate) trait Waiter {
    /// What it takes.
    type Taken;

    /// How many events the event queue holds.
    fn queued(&self) -> u32;

    /// Looks at what the completion queues hold, as far as the event queue has room, and takes the oldest
    /// event, if there are at least `threshold`.
    fn take(&mut self, threshold: u32) -> Option<Self::Taken>;

    /// Clears the [`Doorbell`], then asks every completion queue for a notification, and then
    /// [takes](Waiter::take).
    fn arm_and_take(&mut self, threshold: u32) -> (Arm, Option<Self::Taken>);

    /// Returns the reason to end the wait, if there is one already.
    fn stop(&mut self) -> Option<Stop>;

    /// Sleeps until the [`Doorbell`] is rung, without delay if it is rung already.
    ///
    /// Time-outs count from the beginning of the wait, not of this sleep.
    fn sleep(&mut self) -> Wake;
}

/// Waits until there are at least `threshold` events, and takes the oldest.
///
/// `threshold` must not exceed what the event queue can hold. Events win over everything else: if
/// there are enough of them when the wait is over for another reason, the wait succeeds.
///
/// # Errors
///
/// There are too few events, and the reason to stop.
#[inline]
pub(crate) fn wait_for<W: Waiter>(waiter: &mut W, threshold: u32) -> Result<W::Taken, Stop> {
    // What is queued already needs no notification.
    if waiter.queued() >= threshold {
        // None: another thread has dequeued in the meantime.
        if let Some(taken) = waiter.take(threshold) {
            return Ok(taken);
        }
    }
    loop {
        let armed = match waiter.arm_and_take(threshold) {
            (_, Some(taken)) => return Ok(taken),
            (armed, None) => armed,
        };
        if armed == Arm::Missed {
            // Completions without events may go on like this for ever.
            match waiter.stop() {
                None => continue,
                Some(stop) => return waiter.take(threshold).ok_or(stop),
            }
        }
        let wake = waiter.sleep();
        if let Some(taken) = waiter.take(threshold) {
            return Ok(taken);
        }
        match wake {
            Wake::Woken => {}
            Wake::TimedOut => return Err(Stop::TimedOut),
            Wake::Interrupted => return Err(Stop::Interrupted),
            Wake::Closed => return Err(Stop::Closed),
        }
    }
}

/// What a completion callback rings and a sleeper looks at.
pub(crate) struct Doorbell(AtomicBool);

impl Doorbell {
    /// A bell that nobody has rung.
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Rings the bell. The caller wakes the sleeper afterwards; the exchange orders the wake-up,
    /// and a look at whether there is a sleeper at all, behind the event.
    ///
    /// An exchange and not a store: of two who ring, the second hands on what the first has
    /// published. With stores whoever clears the second ring may miss the first one's event.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn ring(&self) {
        self.0.swap(true);
    }

    /// Clears the bell, before arming.
    ///
    /// An exchange and not a store: whoever clears the ring of an event must see the event in the
    /// drain that follows, and the arming must not begin before the bell is clear.
    pub(crate) fn clear(&self) {
        self.0.swap(false);
    }

    /// Whether the bell was rung: the condition of the sleep.
    pub(crate) fn is_rung(&self) -> bool {
        self.0.load_acquire()
    }
}

/// How many events the sleeper waits for.
pub(crate) struct Wanted(AtomicU32);

impl Wanted {
    /// Any event is wanted.
    pub(crate) fn any() -> Self {
        Self(AtomicU32::new(1))
    }

    /// Wants `threshold` events from now on.
    ///
    /// The waiter says so before its wait begins, so before it clears the [`Doorbell`]: the
    /// exchanges of clearing and ringing are what makes either the pusher see this, or the waiter
    /// see what was pushed.
    pub(crate) fn set(&self, threshold: u32) {
        self.0.store_release(threshold);
    }

    /// Whether `queued` events are enough to wake the sleeper. Asked after ringing.
    pub(crate) fn is_reached_by(&self, queued: u32) -> bool {
        queued >= self.0.load_acquire()
    }

    /// Whether completions have to be counted before anybody is woken.
    pub(crate) fn counts(&self) -> bool {
        !self.is_reached_by(1)
    }
}
