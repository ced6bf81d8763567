// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The process that forks for each program, without privileges.

use super::errand::Errands;
use super::process::Process;
use super::shared::{Answers, Shared, TEXT};
use crate::program::Program;
use anyhow::{ensure, Context as _, Result};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Nobody.
const USER: u32 = 65534;
/// A program whose processes cannot be reaped by then hangs in the kernel.
const HUNG: Duration = Duration::from_secs(30);
/// How often the program is asked whether it wants something.
const ERRAND_MILLISECONDS: i32 = 3;

/// Programs that a process runs at most. Making a new one costs as much as running ten.
const LIFE: u32 = 100;

/// How a program ended.
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
    /// Forks the zygote, which gives up root's privileges. A program is killed after that time.
    ///
    /// # Errors
    /// If there is no memory or no process to be had.
    pub fn start(milliseconds: u32) -> Result<Self> {
        let shared = Shared::map().context("cannot map shared memory")?;
        shared.milliseconds.store(milliseconds, Relaxed);
        let mut sockets = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: two descriptors are written.
        let failed = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, sockets.as_mut_ptr()) };
        ensure!(failed == 0, "cannot make sockets: {}", io::Error::last_os_error());
        // SAFETY: this process has one thread; the child goes its own way and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()).context("cannot fork"),
            0 => serve(shared, sockets[1]),
            _ => {
                // SAFETY: the child's end, which nothing here owns.
                unsafe { libc::close(sockets[1]) };
                Ok(Self { shared, socket: sockets[0], errands: Errands::new()? })
            }
        }
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// If the zygote is gone, or the program is too long.
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

    /// Does meanwhile what the program asks for.
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

    /// How the calls of all programs so far have ended.
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

/// The zygote's life: a program for each byte, until the fuzzer is gone.
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

/// A process that runs one program after another, until one ends it.
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
        // SAFETY: this process has one thread; the child goes its own way and never returns.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: a group of its own, so that all of it can be killed; and one descriptor.
            unsafe {
                libc::setpgid(0, 0);
                libc::dup2(theirs, 3);
                libc::close_range(4, u32::MAX, 0);
            }
            // After the last one there is no answer: its end is one.
            (1..=LIFE).all(|n| receive(3) && Process::run(shared) && n < LIFE && send(3));
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: the child's end, which nothing here owns.
        unsafe { libc::close(theirs) };
        (pid > 0).then_some(Self { pid, socket: ours })
    }

    /// Runs a program; the runner is returned if it can run another one.
    fn run(self) -> Option<Self> {
        if send(self.socket) && receive(self.socket) {
            return Some(self);
        }
        self.reap();
        None
    }

    /// Waits for the process, then kills what is left of its group and waits for that.
    fn reap(self) {
        let null = std::ptr::null_mut();
        // SAFETY: `pid` is a child that has not been waited for, so neither it nor its group can
        // be anybody else's; the socket is this runner's.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, self.pid as u32, &mut info, libc::WEXITED | libc::WNOWAIT);
            libc::kill(-self.pid, libc::SIGKILL);
            while libc::waitpid(-1, null, 0) > 0 {}
            libc::close(self.socket);
        }
    }
}

/// Gives up all privileges and all descriptors but the socket, whose number is returned.
fn become_nobody(socket: RawFd) -> RawFd {
    // SAFETY: calls that change this process alone. A failure shows: what needs no privileges is
    // asserted below.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        libc::setgroups(0, std::ptr::null());
        libc::setresgid(USER, USER, USER);
        libc::setresuid(USER, USER, USER);
        // Else its own files in /proc are root's, fail-nth among them.
        libc::prctl(libc::PR_SET_DUMPABLE, 1);
        libc::dup2(socket, 3);
        libc::close_range(4, u32::MAX, 0);
        assert_eq!(libc::getuid(), USER, "the fuzzer must be started by root");
    }
    3
}
