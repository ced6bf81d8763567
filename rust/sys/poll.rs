// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Files that can be polled, and nothing else.
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

/// What poll finds.
pub(crate) struct Readiness {
    /// There is something to take.
    pub(crate) readable: bool,
    /// There will never be anything more.
    pub(crate) over: bool,
}

impl Readiness {
    fn mask(&self) -> bindings::__poll_t {
        let readable = bindings::POLLIN | bindings::POLLRDNORM;
        let over = bindings::POLLHUP;
        (if self.readable { readable } else { 0 }) | (if self.over { over } else { 0 })
    }
}

/// What lies behind a file that can be polled.
pub(crate) trait Pollable: Send + Sync + 'static {
    /// Where to wait: whoever makes it readable wakes this queue afterwards.
    fn sleepers(&self) -> &WaitQueue;

    /// How it is now. Context: process; may sleep.
    fn readiness(&self) -> Readiness;
}

/// A file that is open, and the number that the calling process will know it by, not yet in use.
///
/// A drop closes the file and gives the number back: no process has seen either.
pub(crate) struct Opening {
    number: FileDescriptorReservation,
    file: ARef<File>,
}

impl Opening {
    /// Opens a file for the calling process, closed at exec. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub(crate) fn new<T: Pollable>(name: &'static CStr, object: Arc<T>) -> Result<Self> {
        let number = FileDescriptorReservation::get_unused_fd_flags(bindings::O_CLOEXEC)?;
        let object = object.into_foreign();
        // SAFETY: Name and table are static, and the table's operations are for files with such an
        // object.
        let file = unsafe {
            bindings::anon_inode_getfile(
                name.as_char_ptr(),
                &raw const Table::<T>::FOPS.0,
                object,
                bindings::O_RDWR as i32,
            )
        };
        let file: *mut bindings::file = kernel::error::from_err_ptr(file).inspect_err(|_| {
            // SAFETY: There is no file that would have it.
            drop(unsafe { <Arc<T> as ForeignOwnable>::from_foreign(object) });
        })?;
        let file = NonNull::new(file.cast()).ok_or(ENOMEM)?;
        // SAFETY: A `File` is a `struct file`; the reference that was returned is ours to keep.
        let file = unsafe { ARef::from_raw(file) };
        Ok(Self { number, file })
    }

    /// The number that the file will have.
    pub(crate) fn number(&self) -> u32 {
        self.number.reserved_fd()
    }

    /// Puts the file in place: the process may use it from now on.
    pub(crate) fn install(self) {
        self.number.fd_install(self.file);
    }
}

/// A `file_operations` in a static.
struct FopsTable(bindings::file_operations);

// SAFETY: The table is never written to, and what it points to is code and the module itself.
unsafe impl Sync for FopsTable {}

/// The file operations for objects of a type.
struct Table<T>(PhantomData<T>);

impl<T: Pollable> Table<T> {
    const FOPS: &'static FopsTable = &FopsTable(bindings::file_operations {
        owner: compat::THIS_MODULE_PTR,
        poll: Some(Self::poll),
        release: Some(Self::release),
        llseek: Some(bindings::noop_llseek),
        ..pin_init::zeroed()
    });

    /// `file_operations.poll`.
    ///
    /// # Safety
    ///
    /// Only the VFS calls it, with a file that [`Opening::new`] opened for a `T`.
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // SAFETY: `Opening::new` set the pointer, and the file is open until this returns.
        let object: ArcBorrow<'_, T> =
            unsafe { <Arc<T> as ForeignOwnable>::borrow((*file).private_data) };
        // SAFETY: File and table are the VFS's. The queue lives as long as the object, and so at
        // least as long as the file: until nobody polls it any more.
        unsafe { bindings::kdapl_helper_poll_wait(file, object.sleepers().as_ptr(), table) };
        // In this order: what comes from now on wakes.
        object.readiness().mask()
    }

    /// `file_operations.release`.
    ///
    /// # Safety
    ///
    /// Only the VFS calls it, once, as the last operation on a file that [`Opening::new`] opened
    /// for a `T`.
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> i32 {
        // SAFETY: `Opening::new` set the pointer, and nobody uses it any more.
        drop(unsafe { <Arc<T> as ForeignOwnable>::from_foreign((*file).private_data) });
        0
    }
}
