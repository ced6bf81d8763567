// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Files that tokio watches.

use crate::file::{CnoFile, EvdFile};
use std::io;
use std::os::fd::AsRawFd;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

/// A file that owns its descriptor.
///
/// # Safety
/// `as_raw_fd` returns the same descriptor each time, which stays open until the drop.
pub(crate) unsafe trait Owner: AsRawFd {}

// SAFETY: The type has an `OwnedFd`, which it gives away only when it is consumed.
unsafe impl Owner for EvdFile {}
// SAFETY: As above.
unsafe impl Owner for CnoFile {}

/// Lets tokio watch a file.
///
/// # Errors
/// The errno of `epoll_ctl(2)`.
///
/// # Panics
/// Outside of a tokio runtime with I/O.
pub(crate) fn watch<F: Owner>(file: F) -> io::Result<AsyncFd<F>> {
    // SAFETY: An `Owner` keeps its descriptor open.
    Ok(unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) }?)
}
