// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Files of records: events of an EVD, triggers of a CNO.

use crate::sys::{kdapl_event, kdapl_trigger};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A record of a file.
///
/// # Safety
/// Every bit pattern is a valid value.
pub(crate) unsafe trait Record: Copy + Default {}

// SAFETY: It is generated from the header as a `repr(C)` struct of integers.
unsafe impl Record for kdapl_event {}
// SAFETY: As above.
unsafe impl Record for kdapl_trigger {}

/// Returns the result of a system call that returns -1 for an error.
fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Reads records into `room`. Returns their number; 0 is the end of the file.
///
/// # Errors
/// The errno of `read(2)`.
pub(crate) fn read<T: Record>(file: &OwnedFd, room: &mut [T]) -> io::Result<usize> {
    let (memory, size) = (room.as_mut_ptr().cast(), size_of_val(room));
    // SAFETY: `room` is valid for writes of its size, and any bytes are valid records.
    let bytes = checked(unsafe { libc::read(file.as_raw_fd(), memory, size) })?;
    Ok(bytes / size_of::<T>())
}

/// Writes words. Returns the number of accepted words.
///
/// # Errors
/// The errno of `write(2)`.
pub(crate) fn write(file: &OwnedFd, words: &[u64]) -> io::Result<usize> {
    let (memory, size) = (words.as_ptr().cast(), size_of_val(words));
    // SAFETY: `words` is valid for reads of its size.
    let bytes = checked(unsafe { libc::write(file.as_raw_fd(), memory, size) })?;
    Ok(bytes / size_of::<u64>())
}

/// Makes reads and writes of the open file fail with `EAGAIN` instead of sleeping, or sleep again.
/// This concerns all descriptors of it.
///
/// # Errors
/// The errno of `fcntl(2)`.
pub(crate) fn set_nonblocking(file: BorrowedFd<'_>, nonblocking: bool) -> io::Result<()> {
    // SAFETY: The call takes no memory.
    let old = checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) } as isize)? as i32;
    let flags = if nonblocking { old | libc::O_NONBLOCK } else { old & !libc::O_NONBLOCK };
    // SAFETY: As above.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) } as isize).map(drop)
}
