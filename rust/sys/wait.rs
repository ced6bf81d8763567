// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waits with time-outs in nanoseconds: for [one waiter](lone), or for [many](queue). Waits without
//! a task: [entries with a function](entry).
//!
//! The kernel crate's `CondVar` counts time in jiffies and releases a lock while it sleeps. Here
//! the condition is a closure over atomics, so that a waker needs no lock.

mod alarm;
mod deadline;
mod entry;
mod lone;
mod queue;

pub(crate) use self::{
    deadline::{
        now,
        Deadline, //
    },
    entry::{
        HasHead,
        WaitEntry,
        Wake, //
    },
    lone::{
        HasLoneWaiter,
        LoneWaiter,
        OwnedWaiterReservation,
        WaiterReservation, //
    },
    queue::{
        new_wait_queue,
        Head,
        WaitQueue, //
    },
};

use crate::model::wait::SleepEnd;

/// Result of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SleepResult {
    /// The condition holds.
    Ready,
    /// The deadline has passed.
    TimedOut,
    /// A signal is pending.
    Interrupted,
}

impl From<SleepResult> for SleepEnd {
    fn from(result: SleepResult) -> Self {
        match result {
            SleepResult::Ready => Self::Woken,
            SleepResult::TimedOut => Self::TimedOut,
            SleepResult::Interrupted => Self::Interrupted,
        }
    }
}
