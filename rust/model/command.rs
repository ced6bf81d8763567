// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of an asynchronous command: the owner of the command, and the notes for it.
//!
//! Several parties act on a pending command at the same time: producers of events wake it in any
//! context, a timer lets it expire, io_uring or the consumer cancels it. One of them at a time
//! *owns* the command, and only the owner runs and completes it. The others leave a note, and the
//! owner looks for notes before it parks the command.
//!
//! ```text
//!            wake: the waker becomes the owner, and schedules a run
//!            cancel: the canceller becomes the owner, and completes the command
//!          +----------------------------------------------------------------+
//!          |                                                                v
//!       parked <------------------ park: no note since `begin` ---------- owned -- finish --> done
//! ```
//!
//! A wake-up that finds the command owned sets the note WOKEN. The owner clears it before it looks
//! for events, and cannot park while it is set. So an event that is queued before its wake-up is
//! found by the look that follows the note, or by the next one.

use super::atomic::AtomicU32;

/// A party owns the command.
const OWNED: u32 = 1 << 0;
/// The owner has to look for events once more before it parks the command.
const WOKEN: u32 = 1 << 1;
/// The command is to end with `ECANCELED`, unless it can succeed.
const CANCELLED: u32 = 1 << 2;
/// The time-out of the command has passed.
const EXPIRED: u32 = 1 << 3;
/// The command is completed. No state follows.
const DONE: u32 = 1 << 4;

/// Task of a waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeResult {
    /// The command was parked. The caller owns it now, and has to schedule a run.
    Schedule,
    /// The owner of the command looks for events once more.
    Noted,
    /// The command was woken already, or is completed. It does not need this wake-up.
    Ignored,
}

/// Task of a canceller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelResult {
    /// The command was parked. The caller owns it now, and has to complete it.
    Complete,
    /// The owner of the command completes it.
    Noted,
    /// The command is completed.
    Done,
}

/// Notes that the owner has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The command is to end with `ECANCELED`, unless it can succeed.
    pub(crate) cancelled: bool,
    /// The time-out of the command has passed.
    pub(crate) expired: bool,
}

/// State of an asynchronous command.
pub(crate) struct CommandState(AtomicU32);

impl CommandState {
    /// Creates the state of a command that its creator owns.
    pub(crate) fn owned() -> Self {
        Self(AtomicU32::new(OWNED))
    }

    /// Replaces the state by the first value of `next`, unless that is `None`. Returns the second
    /// value.
    fn change<T>(&self, mut next: impl FnMut(u32) -> (Option<u32>, T)) -> T {
        let mut state = self.0.load();
        loop {
            let (new, result) = next(state);
            let Some(new) = new else { return result };
            match self.0.exchange_if(state, new) {
                Ok(()) => return result,
                Err(other) => state = other,
            }
        }
    }

    /// Wakes the command: its condition may have become true.
    ///
    /// Context: any, including hard IRQ. The caller has made the condition true before.
    pub(crate) fn wake(&self) -> WakeResult {
        self.wake_with(0)
    }

    /// Wakes the command because its time-out has passed.
    ///
    /// Context: as for [`CommandState::wake`].
    pub(crate) fn expire(&self) -> WakeResult {
        self.wake_with(EXPIRED)
    }

    fn wake_with(&self, note: u32) -> WakeResult {
        self.change(|state| {
            let new = state | OWNED | WOKEN | note;
            if state & DONE != 0 {
                (None, WakeResult::Ignored)
            } else if state & OWNED == 0 {
                (Some(new), WakeResult::Schedule)
            } else if state & WOKEN == 0 {
                (Some(new), WakeResult::Noted)
            } else {
                // The exchange orders the caller's condition before the owner's next look, even if
                // it does not change the state.
                (Some(new), WakeResult::Ignored)
            }
        })
    }

    /// Cancels the command.
    pub(crate) fn cancel(&self) -> CancelResult {
        self.change(|state| {
            if state & DONE != 0 {
                (None, CancelResult::Done)
            } else if state & OWNED == 0 {
                (Some(state | OWNED | CANCELLED), CancelResult::Complete)
            } else {
                (Some(state | WOKEN | CANCELLED), CancelResult::Noted)
            }
        })
    }

    /// Begins a look for events, and returns the notes. The caller owns the command.
    pub(crate) fn begin(&self) -> Notes {
        self.change(|state| {
            let notes = Notes {
                cancelled: state & CANCELLED != 0,
                expired: state & EXPIRED != 0,
            };
            (Some(state & !WOKEN), notes)
        })
    }

    /// Parks the command, unless there is a note since [`CommandState::begin`]. Returns whether the
    /// command is parked. If so, the caller does not own it any more.
    pub(crate) fn park(&self) -> bool {
        self.change(|state| {
            if state & WOKEN == 0 {
                (Some(state & !OWNED), true)
            } else {
                (None, false)
            }
        })
    }

    /// Marks the command as completed. The caller owns it.
    pub(crate) fn finish(&self) {
        self.0.swap(DONE);
    }
}
