// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Forks an unprivileged process for each program.

use super::errand::Errands;
use super::process::Process;
use super::shared::{Answers, Shared, TEXT};
use crate::program::Program;
use anyhow::{ensure, Context as _, Result};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The user nobody.
const USER: u32 = 65534;
/// Longest time until the processes of a program are reaped. After that the kernel hangs.
const HUNG: Duration = Duration::from_secs(30);
/// Interval of the checks for a requested action.
const ERRAND_MILLISECONDS: i32 = 3;

/// Limits the programs of a process. A fork costs as much as ten programs.
const LIFE: u32 = 100;

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of its processes have ended.
    Ended,
    /// One of them cannot be killed.
    Hung,
}

/// Runs programs.
pub struct Executor {
    shared: &'static Shared,
    socket: RawFd,
    errands: Errands,
}

impl Executor {
    /// Forks the zygote, which drops root's privileges. A program is killed after `milliseconds`.
    ///
    /// # Errors
    /// If memory or processes are exhausted.
    pub fn start(milliseconds: u32) -> Result<Self> {
        let shared = Shared::map().context("cannot map shared memory")?;
        shared.milliseconds.store(milliseconds, Relaxed);
        let mut sockets = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: two descriptors are written.
        let failed = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, sockets.as_mut_ptr()) };
        ensure!(failed == 0, "cannot make sockets: {}", io::Error::last_os_error());
        // SAFETY: this process has one thread; the child uses its own code path and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()).context("cannot fork"),
            0 => serve(shared, sockets[1]),
            _ => {
                // SAFETY: the child's end, which no object here owns.
                unsafe { libc::close(sockets[1]) };
                Ok(Self { shared, socket: sockets[0], errands: Errands::new()? })
            }
        }
    }

    /// Runs a program until its end.
    ///
    /// # Errors
    /// If the zygote has ended, or the program is too long.
    pub fn run(&mut self, program: &Program) -> Result<Outcome> {
        let text = program.to_string();
        ensure!(text.len() <= TEXT, "a program of {} bytes is too long", text.len());
        self.shared.begin(&text);
        ensure!(send(self.socket), "the zygote is gone");
        let ended = self.wait_for_end()?;
        self.errands.undo()?;
        if !ended {
            return Ok(Outcome::Hung);
        }
        ensure!(receive(self.socket), "the zygote has died");
        Ok(Outcome::Ended)
    }

    /// Executes requested actions meanwhile.
    fn wait_for_end(&mut self) -> Result<bool> {
        let end = Instant::now() + HUNG;
        while Instant::now() < end {
            let mut polled = libc::pollfd { fd: self.socket, events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry, which is ours.
            if unsafe { libc::poll(&mut polled, 1, ERRAND_MILLISECONDS) } != 0 {
                return Ok(true);
            }
            self.errands.run(self.shared)?;
        }
        Ok(false)
    }

    /// Returns the outcomes of the calls of all programs so far.
    #[must_use]
    pub fn answers(&self) -> Vec<(&'static str, Answers)> {
        self.shared.answers()
    }
}

fn send(socket: RawFd) -> bool {
    // SAFETY: one byte is read.
    unsafe { libc::send(socket, [0u8].as_ptr().cast(), 1, libc::MSG_NOSIGNAL) == 1 }
}

fn receive(socket: RawFd) -> bool {
    let mut byte = [0u8];
    // SAFETY: one byte is written.
    unsafe { libc::recv(socket, byte.as_mut_ptr().cast(), 1, 0) == 1 }
}

/// Runs as the zygote: a program for each byte, until the fuzzer has ended.
fn serve(shared: &'static Shared, socket: RawFd) -> ! {
    let socket = become_nobody(socket);
    let mut runner = None;
    while receive(socket) {
        let current = runner.take().or_else(|| Runner::fork(shared));
        runner = current.and_then(Runner::run);
        send(socket);
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}

/// A process that runs one program after another, until a program ends it.
struct Runner {
    pid: libc::pid_t,
    socket: RawFd,
}

impl Runner {
    fn fork(shared: &'static Shared) -> Option<Self> {
        let mut sockets = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: two descriptors are written.
        unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, sockets.as_mut_ptr()) };
        let [ours, theirs] = sockets;
        // SAFETY: this process has one thread; the child uses its own code path and never returns.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: creates a process group that can be killed as a whole, and moves one
            // descriptor.
            unsafe {
                libc::setpgid(0, 0);
                libc::dup2(theirs, 3);
                libc::close_range(4, u32::MAX, 0);
            }
            // The last program has no answer: the end of the process is its answer.
            (1..=LIFE).all(|n| receive(3) && Process::run(shared) && n < LIFE && send(3));
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: the child's end, which no object here owns.
        unsafe { libc::close(theirs) };
        (pid > 0).then_some(Self { pid, socket: ours })
    }

    /// Runs a program. Returns the runner if it can run another one.
    fn run(self) -> Option<Self> {
        if send(self.socket) && receive(self.socket) {
            return Some(self);
        }
        self.reap();
        None
    }

    /// Waits for the process, then kills and reaps the rest of its group.
    fn reap(self) {
        let null = std::ptr::null_mut();
        // SAFETY: `pid` is a child that was not reaped, so no other process can have its number or
        // its group; the socket is this runner's.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, self.pid as u32, &mut info, libc::WEXITED | libc::WNOWAIT);
            libc::kill(-self.pid, libc::SIGKILL);
            while libc::waitpid(-1, null, 0) > 0 {}
            libc::close(self.socket);
        }
    }
}

/// Drops all privileges and all descriptors except the socket, whose number is returned.
fn become_nobody(socket: RawFd) -> RawFd {
    // SAFETY: the calls change this process alone. Failures are detected: the assertion below
    // checks the user.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::setgroups(0, std::ptr::null());
        libc::setresgid(USER, USER, USER);
        libc::setresuid(USER, USER, USER);
        // Otherwise its own files in /proc belong to root, among them fail-nth.
        libc::prctl(libc::PR_SET_DUMPABLE, 1);
        libc::dup2(socket, 3);
        libc::close_range(4, u32::MAX, 0);
        assert_eq!(libc::getuid(), USER, "the fuzzer must be started by root");
    }
    3
}
