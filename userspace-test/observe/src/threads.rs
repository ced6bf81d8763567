// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Threads whose state can be observed.

use anyhow::{anyhow, ensure, Result};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, io};

/// Maximum time to wait for an expected state.
pub trait Patience {
    /// Returns the maximum time.
    fn patience(&self) -> Duration;
}

impl Patience for Duration {
    fn patience(&self) -> Duration {
        *self
    }
}

/// Result of a joined thread.
pub trait Joined<T> {
    /// Returns the thread's result.
    ///
    /// # Errors
    /// The thread panicked.
    fn or_panicked(self) -> Result<T>;
}

impl<T> Joined<T> for std::thread::Result<T> {
    fn or_panicked(self) -> Result<T> {
        // The panic message has been printed.
        self.map_err(|_| anyhow!("a thread panicked"))
    }
}

/// A running thread and its id.
pub struct Worker<T> {
    handle: JoinHandle<T>,
    /// Id of the thread.
    pub tid: i32,
}

/// Returns the id of the calling thread.
#[must_use]
pub fn tid() -> i32 {
    // SAFETY: The call has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Returns whether a thread of a process sleeps.
///
/// # Errors
/// The kernel does not show the state of the thread.
pub fn sleeps(process: i32, thread: i32) -> Result<bool> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"))?;
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    Ok(state == Some('S'))
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread.
    ///
    /// # Errors
    /// The thread ended before it reported its id.
    pub fn start(work: impl FnOnce() -> T + Send + 'static) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let handle = std::thread::spawn(move || {
            // Cannot fail: the receiver waits for the message.
            let _ = sender.send(tid());
            work()
        });
        Ok(Self { handle, tid: receiver.recv()? })
    }

    /// Waits for the end of the thread.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn join(self) -> Result<T> {
        self.handle.join().or_panicked()
    }

    /// Returns whether the thread has ended.
    pub fn finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits until the thread sleeps in an ioctl.
    ///
    /// # Errors
    /// The thread ended, or did not sleep in time.
    pub fn asleep(&self, patience: &impl Patience) -> Result<()> {
        self.asleep_in(patience, libc::SYS_ioctl)
    }

    /// Waits until the thread sleeps in a system call.
    ///
    /// # Errors
    /// Those of [`asleep`](Self::asleep).
    pub fn asleep_in(&self, patience: &impl Patience, call: libc::c_long) -> Result<()> {
        let end = Instant::now() + patience.patience();
        loop {
            ensure!(!self.finished(), "the thread ended instead of sleeping");
            if self.sleeps_in(call)? {
                return Ok(());
            }
            ensure!(Instant::now() <= end, "the thread does not sleep in its system call");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns whether the thread sleeps in an ioctl.
    ///
    /// # Errors
    /// The kernel does not show the state of the thread.
    pub fn sleeps_in_ioctl(&self) -> Result<bool> {
        self.sleeps_in(libc::SYS_ioctl)
    }

    /// Returns whether the thread sleeps in a system call.
    fn sleeps_in(&self, wanted: libc::c_long) -> Result<bool> {
        let call = fs::read_to_string(format!("/proc/self/task/{}/syscall", self.tid));
        // Some kernels do not show the system call. Then any sleep counts.
        let number = wanted.to_string();
        let in_call = call.map_or(true, |text| text.split(' ').next() == Some(number.as_str()));
        Ok(in_call && sleeps(std::process::id() as i32, self.tid)?)
    }
}

/// Gives the calling thread the lowest real-time priority until it is dropped. A thread that wakes
/// then runs at once, also where the kernel lets an ordinary one go on until the next tick.
///
/// Threads that it starts meanwhile inherit the priority. Needs CAP_SYS_NICE.
pub struct RealTime(());

impl RealTime {
    /// Sets the priority.
    pub fn begin() -> io::Result<Self> {
        set_policy(libc::SCHED_FIFO, 1).map(|()| Self(()))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        let _ = set_policy(libc::SCHED_OTHER, 0);
    }
}

/// Sets the scheduling policy of the calling thread.
fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 means the calling thread; the kernel reads `parameter` during the call only.
    match unsafe { libc::sched_setscheduler(0, policy, &parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
