// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Files that can be polled, and nothing else.
//!
//! C headers: [`include/linux/anon_inodes.h`](srctree/include/linux/anon_inodes.h),
//! [`include/linux/poll.h`](srctree/include/linux/poll.h)

use super::wait::WaitQueue;
use crate::compat;
use core::marker::PhantomData;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::{
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

/// Opens a file of the calling process, closed at exec, and returns its number. Context: process;
/// sleeps.
///
/// # Errors
///
/// `EMFILE`, `ENFILE`, `ENOMEM`.
pub(crate) fn open<T: Pollable>(name: &'static CStr, object: Arc<T>) -> Result<i32> {
    let object = object.into_foreign();
    // SAFETY: Name and table are static, and the table's operations are for files with such an
    // object.
    let fd = unsafe {
        bindings::anon_inode_getfd(
            name.as_char_ptr(),
            &raw const Table::<T>::FOPS.0,
            object,
            (bindings::O_RDWR | bindings::O_CLOEXEC) as i32,
        )
    };
    if fd < 0 {
        // SAFETY: There is no file that would have it.
        drop(unsafe { <Arc<T> as ForeignOwnable>::from_foreign(object) });
        return Err(Error::from_errno(fd));
    }
    Ok(fd)
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
    /// Only the VFS calls it, with a file that [`open`] opened for a `T`.
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // SAFETY: `open` set the pointer, and the file is open until this returns.
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
    /// Only the VFS calls it, once, as the last operation on a file that [`open`] opened for a `T`.
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> i32 {
        // SAFETY: `open` set the pointer, and nobody uses it any more.
        drop(unsafe { <Arc<T> as ForeignOwnable>::from_foreign((*file).private_data) });
        0
    }
}
