// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waiting, with microsecond time-outs: [alone](lone), or with [others](queue).
//!
//! The kernel crate's `CondVar` counts in jiffies and sleeps with a lock in hand; this one counts
//! in nanoseconds, and its condition is a closure over atomics, so that a waker needs no lock.

mod alarm;
mod deadline;
mod lone;
mod queue;

pub(crate) use self::{
    deadline::{
        now,
        Deadline, //
    },
    lone::{
        LoneWaiter,
        Place, //
    },
    queue::{
        new_wait_queue,
        WaitQueue, //
    },
};

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The condition holds.
    Ready,
    /// The deadline has passed.
    TimedOut,
    /// A signal is pending.
    Interrupted,
}
