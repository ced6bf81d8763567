// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A thread whose state can be looked at.

use anyhow::{anyhow, ensure, Result};
use std::fs;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For how long something may be waited for that is due.
pub trait Patience {
    /// So long.
    fn patience(&self) -> Duration;
}

impl Patience for Duration {
    fn patience(&self) -> Duration {
        *self
    }
}

/// What a joined thread has to say.
pub trait Joined<T> {
    /// Its result.
    ///
    /// # Errors
    /// It panicked.
    fn or_panicked(self) -> Result<T>;
}

impl<T> Joined<T> for std::thread::Result<T> {
    fn or_panicked(self) -> Result<T> {
        // Its panic has been printed.
        self.map_err(|_| anyhow!("a thread panicked"))
    }
}

/// A running thread and its id.
pub struct Worker<T> {
    handle: JoinHandle<T>,
    /// The thread's id.
    pub tid: i32,
}

/// The calling thread's id.
#[must_use]
pub fn tid() -> i32 {
    // SAFETY: has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread.
    ///
    /// # Errors
    /// It ended before it began.
    pub fn start(work: impl FnOnce() -> T + Send + 'static) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let handle = std::thread::spawn(move || {
            // The receiver waits for it.
            let _ = sender.send(tid());
            work()
        });
        Ok(Self { handle, tid: receiver.recv()? })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It panicked.
    pub fn join(self) -> Result<T> {
        self.handle.join().or_panicked()
    }

    /// Whether it has ended.
    pub fn finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits until it sleeps in its wait, an ioctl.
    ///
    /// # Errors
    /// It came back at once, or never sleeps.
    pub fn asleep(&self, patience: &impl Patience) -> Result<()> {
        self.asleep_in(patience, libc::SYS_ioctl)
    }

    /// Waits until it sleeps in this system call.
    ///
    /// # Errors
    /// As [`asleep`](Self::asleep).
    pub fn asleep_in(&self, patience: &impl Patience, call: libc::c_long) -> Result<()> {
        let end = Instant::now() + patience.patience();
        loop {
            ensure!(!self.finished(), "the thread came back at once");
            if self.sleeps_in(call)? {
                return Ok(());
            }
            ensure!(Instant::now() <= end, "the thread does not sleep in its system call");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether it sleeps in an ioctl.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn sleeps_in_ioctl(&self) -> Result<bool> {
        self.sleeps_in(libc::SYS_ioctl)
    }

    /// Whether it sleeps in this system call.
    fn sleeps_in(&self, wanted: libc::c_long) -> Result<bool> {
        let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", self.tid))?;
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
        let call = fs::read_to_string(format!("/proc/self/task/{}/syscall", self.tid));
        // Not every kernel tells the system call; then sleeping has to do.
        let number = wanted.to_string();
        let in_call = call.map_or(true, |text| text.split(' ').next() == Some(number.as_str()));
        Ok(state == Some('S') && in_call)
    }
}
