// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waits with time-outs in nanoseconds: for [one waiter](lone), or for [many](queue). Waits without
//! a task: [listeners](listener).
//!
//! The kernel crate's `CondVar` counts time in jiffies and releases a lock while it sleeps. Here
//! the condition is a closure over atomics, so that a waker needs no lock.

mod alarm;
mod deadline;
mod listener;
mod lone;
mod queue;

pub(crate) use self::{
    deadline::{
        now,
        Deadline, //
    },
    listener::{
        HasHead,
        Listener,
        Wake, //
    },
    lone::{
        HasLoneWaiter,
        LoneWaiter,
        OwnedPlace,
        Place, //
    },
    queue::{
        new_wait_queue,
        Head,
        WaitQueue, //
    },
};

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
