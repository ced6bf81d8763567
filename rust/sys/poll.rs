// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Anonymous files whose only operation is poll.
//!
//! C headers: [`include/linux/anon_inodes.h`](srctree/include/linux/anon_inodes.h),
//! [`include/linux/poll.h`](srctree/include/linux/poll.h)

use super::wait::WaitQueue;
use crate::compat;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    fs::{
        file::FileDescriptorReservation,
        File, //
    },
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        ArcBorrow, //
    },
    types::ForeignOwnable, //
};

/// State that poll reports.
pub(crate) struct Readiness {
    /// Data is available (`EPOLLIN`).
    pub(crate) readable: bool,
    /// No more data will ever come (`EPOLLHUP`).
    pub(crate) over: bool,
}

impl Readiness {
    fn mask(&self) -> bindings::__poll_t {
        let readable = bindings::POLLIN | bindings::POLLRDNORM;
        let over = bindings::POLLHUP;
        (if self.readable { readable } else { 0 }) | (if self.over { over } else { 0 })
    }
}

/// An object that a file makes available to poll.
pub(crate) trait Pollable: Send + Sync + 'static {
    /// Returns the queue on which poll waits. A writer wakes it after it has changed the readiness.
    fn sleepers(&self) -> &WaitQueue;

    /// Returns the current state. Context: process; may sleep.
    fn readiness(&self) -> Readiness;
}

/// An open file with a reserved file descriptor of the calling process, not yet installed.
///
/// Dropping it closes the file and releases the descriptor. No process has seen either.
pub(crate) struct PendingFile {
    number: FileDescriptorReservation,
    file: ARef<File>,
}

impl PendingFile {
    /// Opens a file for the calling process, with close-on-exec. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub(crate) fn new<T: Pollable>(name: &'static CStr, object: Arc<T>) -> Result<Self> {
        let number = FileDescriptorReservation::get_unused_fd_flags(bindings::O_CLOEXEC)?;
        let object = object.into_foreign();
        // SAFETY: The name and the table are static, and the table's operations expect an `Arc<T>`
        // as private data, which `object` is.
        let file = unsafe {
            bindings::anon_inode_getfile(
                name.as_char_ptr(),
                &raw const Table::<T>::FOPS.0,
                object,
                bindings::O_RDWR as i32,
            )
        };
        let file: *mut bindings::file = kernel::error::from_err_ptr(file).inspect_err(|_| {
            // SAFETY: `object` comes from `into_foreign`, and no file was created that would own
            // it.
            drop(unsafe { <Arc<T> as ForeignOwnable>::from_foreign(object) });
        })?;
        let file = NonNull::new(file.cast()).ok_or(ENOMEM)?;
        // SAFETY: A `File` is a `struct file`, and the call returned a reference that this value
        // now owns.
        let file = unsafe { ARef::from_raw(file) };
        Ok(Self { number, file })
    }

    /// Returns the file descriptor that the file will have.
    pub(crate) fn number(&self) -> u32 {
        self.number.reserved_fd()
    }

    /// Installs the descriptor: from now on the process can use the file.
    pub(crate) fn install(self) {
        self.number.fd_install(self.file);
    }
}

/// A `file_operations` that may be stored in a static.
struct FopsTable(bindings::file_operations);

// SAFETY: The table is never written. It points only to code and to the module.
unsafe impl Sync for FopsTable {}

/// File operations for objects of type `T`.
struct Table<T>(PhantomData<T>);

impl<T: Pollable> Table<T> {
    const FOPS: &'static FopsTable = &FopsTable(bindings::file_operations {
        owner: compat::THIS_MODULE_PTR,
        poll: Some(Self::poll),
        release: Some(Self::release),
        llseek: Some(bindings::noop_llseek),
        ..pin_init::zeroed()
    });

    /// Implements `file_operations.poll`.
    ///
    /// # Safety
    ///
    /// Only the VFS (virtual file system) calls it, with a file that [`PendingFile::new`] opened
    /// for a `T`.
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // SAFETY: `PendingFile::new` set the private data, and the file stays open until this
        // returns.
        let object: ArcBorrow<'_, T> =
            unsafe { <Arc<T> as ForeignOwnable>::borrow((*file).private_data) };
        // SAFETY: The VFS passes a valid file and table. The queue is part of the object. The file
        // owns the object until release, which runs only after the last poller has left the queue.
        unsafe { bindings::kdapl_helper_poll_wait(file, object.sleepers().as_ptr(), table) };
        // The order matters: a change after this check wakes the poller, which is already queued.
        object.readiness().mask()
    }

    /// Implements `file_operations.release`.
    ///
    /// # Safety
    ///
    /// Only the VFS calls it, once, as the last operation on a file that [`PendingFile::new`]
    /// opened for a `T`.
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> i32 {
        // SAFETY: `PendingFile::new` set the private data, and no operation uses it after this one.
        drop(unsafe { <Arc<T> as ForeignOwnable>::from_foreign((*file).private_data) });
        0
    }
}
