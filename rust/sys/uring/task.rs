// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work of commands.

use super::Command;
use crate::sys::wait::{
    Deadline,
    Wake, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Result of a run.
pub(crate) enum RunResult {
    /// The command is complete, with this result.
    Done(Result<i32>),
    /// The next wake-up runs the task again.
    Wait,
    /// The task is to run again, after other work.
    Yield,
}

/// Work of a command that may have to wait. Its drop ends the wait, and leaves no state.
pub(crate) trait Task: Send {
    /// Lets events call `waker`. Called once, if the first run has ended with [`RunResult::Wait`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result;

    /// Runs until the command is complete, has to wait, or yields. `expired` means that the
    /// time-out has passed: a command that would wait is complete then.
    ///
    /// Context: the process that has submitted the command; sleeps for short times only.
    fn run(&mut self, command: &Command<'_>, expired: bool) -> RunResult;

    /// Returns the time-out.
    fn deadline(&self) -> Deadline;

    /// Ends a command that cannot wait, because of this error. Returns its result.
    ///
    /// Context: as for [`Task::run`].
    fn refuse(&mut self, error: Error) -> Result<i32>;
}
