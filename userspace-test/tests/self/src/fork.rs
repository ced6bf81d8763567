// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Forked children, which inherit the files and the memory of the test.

use anyhow::{ensure, Result};
use std::io::Error;

/// Forks. The child calls `work`, and ends without cleaning up: with status 0, or with status 1
/// after an error, which it prints. Returns its process id.
pub fn fork(work: impl FnOnce() -> Result<()>) -> Result<libc::pid_t> {
    // SAFETY: the child uses its own copy of the memory, and ends with `_exit`.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error().into()),
        0 => {
            let outcome = work();
            if let Err(error) = &outcome {
                eprintln!("child: {error:#}");
            }
            // SAFETY: it ends the process.
            unsafe { libc::_exit(i32::from(outcome.is_err())) }
        }
        child => Ok(child),
    }
}

/// Waits for a change of a child's state, with these flags of `waitpid(2)`. Returns its status.
fn change_of(child: libc::pid_t, flags: libc::c_int) -> Result<libc::c_int> {
    let mut status = 0;
    // SAFETY: there is room for the status.
    let changed = unsafe { libc::waitpid(child, &mut status, flags) };
    ensure!(changed == child, "waitpid: {}", Error::last_os_error());
    Ok(status)
}

/// Waits for the end of a child. Returns its status.
pub fn end_of(child: libc::pid_t) -> Result<libc::c_int> {
    change_of(child, 0)
}

/// Signals a process.
fn signal(process: libc::pid_t, signal: libc::c_int) -> Result<()> {
    // SAFETY: the call takes numbers only.
    let done = unsafe { libc::kill(process, signal) };
    ensure!(done == 0, "kill: {}", Error::last_os_error());
    Ok(())
}

/// Kills a process.
pub fn kill(process: libc::pid_t) -> Result<()> {
    signal(process, libc::SIGKILL)
}

/// A child, which is killed when a test fails.
pub struct Child {
    pub pid: libc::pid_t,
    /// Status of a child that has ended, whose number may be that of another process.
    status: Option<libc::c_int>,
}

impl Child {
    /// [Forks](fork).
    pub fn start(work: impl FnOnce() -> Result<()>) -> Result<Self> {
        Ok(Self { pid: fork(work)?, status: None })
    }

    /// Signals the child, unless it has ended.
    pub fn signal(&self, number: libc::c_int) -> Result<()> {
        match self.status {
            None => signal(self.pid, number),
            Some(_) => Ok(()),
        }
    }

    /// Waits until the child has stopped, or has ended. Returns whether it has stopped.
    pub fn stops(&mut self) -> Result<bool> {
        let status = change_of(self.pid, libc::WUNTRACED)?;
        let stopped = libc::WIFSTOPPED(status);
        self.status = (!stopped).then_some(status);
        Ok(stopped)
    }

    /// Waits for the end of the child. Returns its status.
    pub fn end(&mut self) -> Result<libc::c_int> {
        if self.status.is_none() {
            self.status = Some(end_of(self.pid)?);
        }
        Ok(self.status.unwrap_or_default())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.signal(libc::SIGKILL);
        let _ = self.end();
    }
}
