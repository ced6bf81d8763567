// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Eventfds, as agents of CNOs.

use anyhow::{ensure, Result};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};

/// An eventfd that does not block.
pub struct EventFd(File);

impl EventFd {
    pub fn new() -> Result<Self> {
        // SAFETY: the call takes no memory, and nothing else uses the new descriptor.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        ensure!(fd >= 0, "no eventfd: {}", std::io::Error::last_os_error());
        // SAFETY: as above.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Returns the number of signals since the last call.
    pub fn signals(&self) -> Result<u64> {
        let mut count = [0; 8];
        match (&self.0).read(&mut count) {
            Ok(_) => Ok(u64::from_ne_bytes(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}
