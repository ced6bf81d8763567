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

/// Waits for the end of a child. Returns its status.
pub fn end_of(child: libc::pid_t) -> Result<libc::c_int> {
    let mut status = 0;
    // SAFETY: there is room for the status.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    ensure!(ended == child, "waitpid: {}", Error::last_os_error());
    Ok(status)
}

/// Kills a process.
pub fn kill(process: libc::pid_t) -> Result<()> {
    // SAFETY: the call takes numbers only.
    let killed = unsafe { libc::kill(process, libc::SIGKILL) };
    ensure!(killed == 0, "kill: {}", Error::last_os_error());
    Ok(())
}
