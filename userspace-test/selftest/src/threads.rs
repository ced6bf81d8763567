// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A thread whose state can be looked at.

use anyhow::{anyhow, Result};
use std::fs;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A running thread and its id.
pub struct Worker<T> {
    handle: JoinHandle<T>,
    pub tid: i32,
}

/// The calling thread's id.
pub fn tid() -> i32 {
    // SAFETY: has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

impl<T: Send + 'static> Worker<T> {
    pub fn start(work: impl FnOnce() -> T + Send + 'static) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let handle = std::thread::spawn(move || {
            // The receiver waits for it.
            let _ = sender.send(tid());
            work()
        });
        Ok(Self { handle, tid: receiver.recv()? })
    }

    pub fn join(self) -> Result<T> {
        self.handle.join().map_err(|_| anyhow!("a thread panicked"))
    }

    pub fn finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Whether it sleeps in an ioctl.
    pub fn sleeps_in_ioctl(&self) -> Result<bool> {
        let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", self.tid))?;
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
        let call = fs::read_to_string(format!("/proc/self/task/{}/syscall", self.tid));
        // Not every kernel tells the system call; then sleeping has to do.
        let number = libc::SYS_ioctl.to_string();
        let in_ioctl = call.map_or(true, |text| text.split(' ').next() == Some(number.as_str()));
        Ok(state == Some('S') && in_ioctl)
    }
}
