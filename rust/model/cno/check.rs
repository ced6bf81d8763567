// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Check whether an Event Dispatcher (EVD) has events for its Consumer Notification Object (CNO).
//!
//! An armed completion queue notifies once, and only for a completion that arrives after the
//! arming. So a thread arms the completion queues before it checks them, and only then may it
//! report the EVD as empty. It announces the check to the CNO before that ([`CheckedEvd::begin`]),
//! so that an event that arrives during the check triggers:
//!
//! ```text
//!   checking thread                        completion callback, or producer of an event
//!   begin: state is Checking               (the event is in the queue)
//!   arm                                    trigger: state is Triggered
//!   drain; events? trigger
//!   end: state is Idle, unless Triggered
//! ```

/// Reason for a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckReason {
    /// The state of the EVD is not known. An EVD that has triggered needs no check.
    Unchecked,
    /// The consumer has found the EVD empty, so its trigger is withdrawn. An EVD that was found
    /// empty before, and has not triggered since, needs no check.
    FoundEmpty,
}

/// An EVD that is checked. One thread checks at a time.
pub(crate) trait CheckedEvd {
    /// Event that the EVD queues.
    type Event;

    /// Announces the check to the CNO. Returns `false` if no check is needed.
    fn begin(&mut self, reason: CheckReason) -> bool;

    /// Arms the completion queues, then drains the completions that arrived before the arming.
    fn arm_and_drain(&mut self);

    /// Returns whether any event is queued.
    fn has_events(&self) -> bool;

    /// Takes the oldest event.
    fn pop(&mut self) -> Option<Self::Event>;

    /// Triggers the CNO, unless a waiter on the EVD itself takes the events.
    fn trigger(&mut self);

    /// Ends the check. The EVD is idle unless it has triggered since the check began.
    fn end(&mut self);
}

/// Triggers the CNO if the EVD has events. Otherwise the next event triggers it.
pub(crate) fn check(evd: &mut impl CheckedEvd) {
    if !evd.begin(CheckReason::Unchecked) {
        return;
    }
    evd.arm_and_drain();
    if evd.has_events() {
        evd.trigger();
    }
    evd.end();
}

/// Checks an EVD that the consumer has found empty. Returns an event that arrived in the meantime.
/// If there is none, the next event triggers the CNO.
pub(crate) fn check_and_pop<S: CheckedEvd>(evd: &mut S) -> Option<S::Event> {
    if !evd.begin(CheckReason::FoundEmpty) {
        return None;
    }
    evd.arm_and_drain();
    let event = evd.pop();
    if event.is_some() {
        // The event arrived before the arming and did not trigger. More events than this one may
        // have done so.
        evd.trigger();
    }
    evd.end();
    event
}
