// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protocol of a wait for events of an Event Dispatcher (EVD): arm, then poll again.
//!
//! An armed completion queue notifies once, and only for a completion that arrives after the
//! arming. No notification comes for a completion that arrives between the last poll and the
//! arming. A waiter that polls, arms and sleeps would miss it and could sleep for ever. So a waiter
//! polls again after arming, and sleeps only if it finds too few events. (`ib_req_notify_cq()` can
//! report missed completions. Not every driver does, so the report only saves a poll; correctness
//! does not depend on it.)
//!
//! The [`Doorbell`] is a flag that a notification sets and that ends the sleep. The waiter clears
//! it *before* it arms and polls. Cleared after the poll, the flag of an event that arrived in
//! between would be lost.
//!
//! ```text
//!   waiter                           completion callback, or producer of an event
//!   clear the doorbell               (the event is in the queue)
//!   arm                              ring the doorbell
//!   poll; enough? take, return       wake the waiter
//!   sleep until the doorbell rings
//! ```
//!
//! A waiter may want more than one event. It stores the number in [`Threshold`]. A producer that
//! pushes an event rings the doorbell, and wakes the waiter only if that many events are queued. A
//! completion callback must not poll, so it cannot count. It leaves such completions to a work item
//! of the EVD, which drains them into the event queue and arms again.

use super::atomic::{
    AtomicBool,
    AtomicU32, //
};

/// Result of arming the completion queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArmResult {
    /// No completion was missed as far as the driver reports, or the event queue has no room for
    /// one.
    Empty,
    /// Completions may be queued for which no notification will come.
    Missed,
}

/// Reason why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepEnd {
    /// The doorbell was rung.
    Woken,
    /// The time-out expired.
    TimedOut,
    /// A signal is pending.
    Interrupted,
    /// The EVD no longer allows waits: it is being freed, or it was made unwaitable.
    Closed,
}

/// Reason why a wait ended without enough events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitError {
    /// The time-out expired.
    TimedOut,
    /// A signal is pending.
    Interrupted,
    /// The EVD no longer allows waits: it is being freed, or it was made unwaitable.
    Closed,
}

/// Operations that the protocol needs of an event queue and its completion queues.
pub(crate) trait Waiter {
    /// Result of taking an event.
    type Output;

    /// Returns the number of events in the event queue.
    fn queued(&self) -> u32;

    /// Drains the completion queues as far as the event queue has room, and takes the oldest event
    /// if at least `threshold` are queued.
    fn take(&mut self, threshold: u32) -> Option<Self::Output>;

    /// Clears the [`Doorbell`], then arms every completion queue, then [takes](Waiter::take).
    fn arm_and_take(&mut self, threshold: u32) -> (ArmResult, Option<Self::Output>);

    /// Returns the reason to end the wait; `None` if there is none.
    fn stop(&mut self) -> Option<WaitError>;

    /// Sleeps until the [`Doorbell`] is rung. Returns at once if it is rung already.
    ///
    /// The time-out counts from the beginning of the wait, not from the beginning of this sleep.
    fn sleep(&mut self) -> SleepEnd;
}

/// Waits until at least `threshold` events are queued, and takes the oldest.
///
/// `threshold` must not exceed the capacity of the event queue. If enough events are queued when
/// the wait ends for another reason, the wait succeeds.
///
/// # Errors
///
/// The reason to stop, if too few events are queued by then.
pub(crate) fn wait_for<W: Waiter>(waiter: &mut W, threshold: u32) -> Result<W::Output, WaitError> {
    // Events that are queued already need no notification.
    if waiter.queued() >= threshold {
        // `None` if another thread has dequeued in the meantime.
        if let Some(taken) = waiter.take(threshold) {
            return Ok(taken);
        }
    }
    loop {
        let armed = match waiter.arm_and_take(threshold) {
            (_, Some(taken)) => return Ok(taken),
            (armed, None) => armed,
        };
        if armed == ArmResult::Missed {
            // Completions that produce no event can keep this loop busy for ever.
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
            SleepEnd::Woken => {}
            SleepEnd::TimedOut => return Err(WaitError::TimedOut),
            SleepEnd::Interrupted => return Err(WaitError::Interrupted),
            SleepEnd::Closed => return Err(WaitError::Closed),
        }
    }
}

/// Flag that a completion callback sets and that a sleeping waiter polls.
pub(crate) struct Doorbell(AtomicBool);

impl Doorbell {
    /// Creates a doorbell that is not rung.
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Rings the doorbell. The caller wakes the waiter afterwards. The exchange orders the wake-up,
    /// and the check whether there is a waiter, after the event.
    ///
    /// An exchange, because a store would not be enough. If two producers ring, the waiter may read
    /// the value of the second one. An exchange of the second one reads the first one's value, so
    /// that the waiter sees the events of both. After two stores it might miss the event of the
    /// first.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn ring(&self) {
        self.0.swap(true);
    }

    /// Clears the doorbell, before arming.
    ///
    /// An exchange, because a store would not be enough. If the doorbell was rung for an event, the
    /// drain that follows must find that event. And the arming must not start before the
    /// doorbell is clear.
    pub(crate) fn clear(&self) {
        self.0.swap(false);
    }

    /// Returns whether the doorbell was rung. This is the condition of the sleep.
    pub(crate) fn is_rung(&self) -> bool {
        self.0.load_acquire()
    }
}

/// Number of events that the waiter wants.
pub(crate) struct Threshold(AtomicU32);

impl Threshold {
    /// Creates a threshold of one event.
    pub(crate) fn one() -> Self {
        Self(AtomicU32::new(1))
    }

    /// Sets the threshold.
    ///
    /// The waiter calls this before its wait begins, hence before it clears the [`Doorbell`]. The
    /// exchanges that clear and ring the doorbell guarantee that the producer of an event sees the
    /// new threshold, or that the waiter sees the event.
    pub(crate) fn set(&self, threshold: u32) {
        self.0.store_release(threshold);
    }

    /// Returns whether `queued` events are enough to wake the waiter. The producer calls this after
    /// it has rung the doorbell.
    pub(crate) fn is_met_by(&self, queued: u32) -> bool {
        queued >= self.0.load_acquire()
    }

    /// Returns whether completions have to be counted before the waiter is woken.
    pub(crate) fn needs_counting(&self) -> bool {
        !self.is_met_by(1)
    }
}
