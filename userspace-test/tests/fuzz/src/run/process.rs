// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One of the two processes of a program, and its lanes.

use super::shared::Shared;
use super::{calls, memory, ring};
use crate::program::{Program, FILES, FORKED, LANES};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};

/// Shared by the lanes of a process.
pub struct Process {
    /// 0 or 1.
    pub number: usize,
    pub shared: &'static Shared,
    program: &'static Program,
    files: [AtomicI32; FILES as usize],
    /// A socket pair with the other process.
    sockets: [RawFd; 2],
    started: [AtomicBool; LANES as usize],
    running: Mutex<u32>,
    idle: Condvar,
}

impl Process {
    /// Runs the first process of the shared program in this process. Returns whether it can run
    /// another program.
    pub fn run(shared: &'static Shared) -> bool {
        // The text was parsed before. If it is invalid, the program is empty.
        let program = Box::leak(Box::new(shared.text().parse().unwrap_or_default()));
        memory::map();
        let mut sockets = [-1; 2];
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: two descriptors are written.
        unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, sockets.as_mut_ptr()) };
        let process = Self::new(0, shared, program, [-1; FILES as usize], sockets);
        process.lanes(0);
        (0..FILES).for_each(|file| process.close(file));
        // SAFETY: closes the program's descriptors. Lower ones belong to the runner.
        unsafe { libc::close_range(4, u32::MAX, 0) };
        !process.started[usize::from(FORKED)].load(Relaxed)
    }

    fn new(
        number: usize,
        shared: &'static Shared,
        program: &'static Program,
        files: [RawFd; FILES as usize],
        sockets: [RawFd; 2],
    ) -> &'static Self {
        // SAFETY: has no preconditions.
        shared.pids[number].store(unsafe { libc::getpid() }, Relaxed);
        let milliseconds = i64::from(shared.milliseconds.load(Relaxed));
        let (tv_sec, tv_usec) = (milliseconds / 1000, milliseconds % 1000 * 1000);
        let timer = libc::itimerval {
            it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
            it_value: libc::timeval { tv_sec, tv_usec },
        };
        // SAFETY: the kernel reads the timer. Its signal ends the process.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
        Box::leak(Box::new(Self {
            number,
            shared,
            program,
            files: files.map(AtomicI32::new),
            sockets,
            started: Default::default(),
            running: Mutex::new(0),
            idle: Condvar::new(),
        }))
    }

    /// Runs the first lane of this process, then the lanes that were not started.
    fn lanes(&'static self, first: u8) {
        self.started[usize::from(first)].store(true, Relaxed);
        self.lane(first);
        (first + 1..LANES).for_each(|lane| self.start(lane));
        if self.number == 0 {
            self.fork();
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running != 0 {
            running = self.idle.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        self.wait_for_other();
    }

    /// Waits, since the other process may use objects of this one.
    fn wait_for_other(&self) {
        if self.number == 0 && self.started[usize::from(FORKED)].load(Relaxed) {
            // SAFETY: waits for a child. The timer ends it if the child's does not.
            unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
        }
    }

    fn lane(&'static self, lane: u8) {
        for step in self.program.steps.iter().filter(|step| step.lane == lane) {
            calls::make(self, step);
        }
        ring::close();
    }

    fn has(&self, lane: u8) -> bool {
        self.program.steps.iter().any(|step| step.lane == lane)
    }

    /// Starts the thread of a lane of this process, once.
    pub fn start(&'static self, lane: u8) {
        let here = lane < LANES && usize::from(lane >= FORKED) == self.number;
        if !here || !self.has(lane) || self.started[usize::from(lane)].swap(true, Relaxed) {
            return;
        }
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        let body = move || {
            self.lane(lane);
            *self.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            self.idle.notify_all();
        };
        if std::thread::Builder::new().stack_size(128 * 1024).spawn(body).is_err() {
            *self.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        }
    }

    /// Starts the other process, once, if it has steps.
    pub fn fork(&'static self) {
        let wanted = self.number == 0 && (FORKED..LANES).any(|lane| self.has(lane));
        if !wanted || self.started[usize::from(FORKED)].swap(true, Relaxed) {
            return;
        }
        // SAFETY: the child uses its own objects, and ends by `_exit()`.
        if unsafe { libc::fork() } == 0 {
            ring::close();
            let files = [0, 1, 2, 3].map(|file| self.file(file));
            let [a, b] = self.sockets;
            Self::new(1, self.shared, self.program, files, [b, a]).lanes(FORKED);
            // SAFETY: ends the process; the kernel closes its descriptors.
            unsafe { libc::_exit(0) };
        }
    }

    /// Returns the descriptor of a file; -1 if it is not open.
    pub fn file(&self, file: u8) -> RawFd {
        self.files[usize::from(file % FILES)].load(Relaxed)
    }

    fn set_file(&self, file: u8, fd: RawFd) {
        let old = self.files[usize::from(file % FILES)].swap(fd, Relaxed);
        if old >= 0 {
            // SAFETY: no Rust object owns it.
            unsafe { libc::close(old) };
        }
    }

    /// Opens the device.
    pub fn open(&self, file: u8) {
        // SAFETY: the path ends with a zero.
        let fd = unsafe { libc::open(c"/dev/kdapl".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        self.set_file(file, fd);
    }

    /// Closes the device.
    pub fn close(&self, file: u8) {
        self.set_file(file, -1);
    }

    /// Sends a file to the other process.
    pub fn send(&self, file: u8) {
        with_message(|message| {
            // SAFETY: the message has room for one descriptor.
            unsafe {
                let control = libc::CMSG_FIRSTHDR(message);
                (*control).cmsg_level = libc::SOL_SOCKET;
                (*control).cmsg_type = libc::SCM_RIGHTS;
                (*control).cmsg_len = libc::CMSG_LEN(4) as usize;
                libc::CMSG_DATA(control).cast::<RawFd>().write_unaligned(self.file(file));
                libc::sendmsg(self.sockets[0], message, libc::MSG_NOSIGNAL);
            }
        });
    }

    /// Receives a file from the other process.
    pub fn take(&self, file: u8) {
        with_message(|message| {
            // SAFETY: the control message is read only if it exists.
            unsafe {
                let flags = libc::MSG_CMSG_CLOEXEC;
                if libc::recvmsg(self.sockets[0], message, flags) < 0 {
                    return;
                }
                let control = libc::CMSG_FIRSTHDR(message);
                if !control.is_null() && (*control).cmsg_type == libc::SCM_RIGHTS {
                    let fd = libc::CMSG_DATA(control).cast::<RawFd>().read_unaligned();
                    self.set_file(file, fd);
                }
            }
        });
    }
}

/// Calls `act` with a message of one byte and room for a descriptor.
fn with_message(act: impl FnOnce(&mut libc::msghdr)) {
    let (mut byte, mut room) = ([0u8], [0u64; 4]);
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: zeros are a valid header.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = room.as_mut_ptr().cast();
    // SAFETY: computes a number.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as usize;
    act(&mut message);
}
