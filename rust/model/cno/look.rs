// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Finding out whether an EVD has anything for its CNO.
//!
//! A completion queue notifies once, and only of completions that come after it was armed. So whoever
//! says that an EVD has nothing has armed first and looked then. And it has said before that it looks
//! ([`Subject::begin`]), because what comes in between triggers:
//!
//! ```text
//!   whoever looks                          completion callback, or whoever pushes an event
//!   begin: it is looked at                 (the event is in the queue)
//!   arm                                    trigger: it has something
//!   drain; anything? trigger
//!   end: nothing, unless it has triggered
//! ```

/// What brings somebody to look at an EVD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Nobody knows how it stands. One that has triggered needs no look.
    Unclear,
    /// The consumer has found it empty: its trigger is taken back. One that was found empty before,
    /// and has not triggered since, needs no look.
    Emptied,
}

/// An EVD that is looked at, by one at a time.
pub(crate) trait Subject {
    /// What it queues.
    type Event;

    /// Says at the CNO that somebody looks. `false` if there is nothing to find out.
    fn begin(&mut self, reason: Reason) -> bool;

    /// Arms, and then drains what came before that.
    fn arm_and_drain(&mut self);

    /// Whether any event is queued.
    fn has_events(&self) -> bool;

    /// Takes the oldest event.
    fn pop(&mut self) -> Option<Self::Event>;

    /// Tells the CNO that there are events, unless somebody else is to have them.
    fn trigger(&mut self);

    /// Says at the CNO that the look is over: without a trigger since it began there is nothing.
    fn end(&mut self);
}

/// Sees that the CNO learns of what is here and of what comes, whoever has looked at it before.
pub(crate) fn look(subject: &mut impl Subject) {
    if !subject.begin(Reason::Unclear) {
        return;
    }
    subject.arm_and_drain();
    if subject.has_events() {
        subject.trigger();
    }
    subject.end();
}

/// The consumer has found nothing: from now on what comes triggers the CNO, unless it is here by now.
pub(crate) fn pop_or_settle<S: Subject>(subject: &mut S) -> Option<S::Event> {
    if !subject.begin(Reason::Emptied) {
        return None;
    }
    subject.arm_and_drain();
    let event = subject.pop();
    if event.is_some() {
        // It came in between, and maybe more than the consumer takes, without a trigger of its own.
        subject.trigger();
    }
    subject.end();
    event
}
