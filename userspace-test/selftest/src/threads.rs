// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A thread whose state can be looked at.

use crate::context::Context;
use anyhow::{anyhow, ensure, Result};
use std::fs;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// What a joined thread has to say.
pub trait Joined<T> {
    /// Its result; an error if it panicked.
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
        self.handle.join().or_panicked()
    }

    pub fn finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits until it sleeps in its wait, an ioctl.
    pub fn asleep(&self, context: &Context) -> Result<()> {
        self.asleep_in(context, libc::SYS_ioctl)
    }

    /// Waits until it sleeps in this system call.
    pub fn asleep_in(&self, context: &Context, call: libc::c_long) -> Result<()> {
        context.until("the thread sleeps in its system call", || {
            ensure!(!self.finished(), "it came back at once");
            self.sleeps_in(call)
        })
    }

    /// Whether it sleeps in an ioctl.
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
