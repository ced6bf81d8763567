// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The module's debugfs folder and its files.
//!
//! The kernel crate's `debugfs` does not serve. Its files have no `.owner`, so the module could be
//! unloaded while a process has one open, and closing the file would then call code that is gone. A
//! file for an object that a system call creates must also be able to find the folder. The folder
//! is therefore a static.
//!
//! C header: [`include/linux/debugfs.h`](srctree/include/linux/debugfs.h)

use crate::compat;
use core::marker::PhantomData;
use kdapl_bindings as bindings;
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    fmt,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::atomic::{
        Acquire,
        Atomic,
        Release, //
    },
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};

/// Largest number of bytes in one write to a file.
const MAX_TEXT: usize = 32;

/// The folder, while the module is loaded. Null, or an error pointer, if debugfs did not create it.
static FOLDER: Atomic<*mut bindings::dentry> = Atomic::new(core::ptr::null_mut());

/// Source of a file's text.
pub(crate) trait Show: Send + Sync + 'static {
    /// Writes the whole text. It is called again, for a larger buffer, if the text did not fit.
    ///
    /// Context: process; sleeps.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Receiver of the text that is written to a file.
pub(crate) trait Store: Show {
    /// Takes the written text, without leading and trailing white space.
    ///
    /// Context: process; sleeps.
    fn store(&self, text: &str) -> Result;
}

/// Owner of the folder. The module creates it at load, before any file, and drops it at unload,
/// after every file.
pub(crate) struct Folder(());

impl Folder {
    /// Creates the folder. A failure of debugfs is not reported: the files are missing then.
    ///
    /// Context: process; sleeps.
    pub(crate) fn new(name: &CStr) -> Self {
        let folder = create_dir(name);
        FOLDER.store(folder, Release);
        if !folder.is_null() {
            // SAFETY: `debugfs` returned the pointer. The knobs are removed with the folder, before
            // the module.
            unsafe { bindings::kdapl_helper_create_fault_knobs(folder) };
        }
        Self(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let folder = FOLDER.load(Acquire);
        FOLDER.store(core::ptr::null_mut(), Release);
        // SAFETY: `new` stored the pointer. Every file of this module has been removed before. The
        // knobs of fault injection, which are removed with the folder, are files of the kernel.
        unsafe { remove(folder) };
        // SAFETY: The knobs were removed.
        unsafe { bindings::kdapl_helper_forget_fault_knobs() };
    }
}

/// Creates the folder.
#[cfg(CONFIG_DEBUG_FS)]
fn create_dir(name: &CStr) -> *mut bindings::dentry {
    // SAFETY: `name` is NUL-terminated. A null parent means the root of debugfs.
    unsafe { bindings::debugfs_create_dir(name.as_char_ptr(), core::ptr::null_mut()) }
}

/// Creates nothing: the kernel has no debugfs.
#[cfg(not(CONFIG_DEBUG_FS))]
fn create_dir(_: &CStr) -> *mut bindings::dentry {
    core::ptr::null_mut()
}

/// Creates a file in the folder. Returns null if there is no folder.
///
/// # Safety
///
/// `data` is of the type that `operations` expect, and both live until the file is removed.
#[cfg(CONFIG_DEBUG_FS)]
unsafe fn create(
    name: &CStr,
    mode: u16,
    data: *mut c_void,
    operations: &'static bindings::file_operations,
) -> *mut bindings::dentry {
    let folder = FOLDER.load(Acquire);
    if folder.is_null() {
        return folder;
    }
    // SAFETY: `name` is NUL-terminated. The folder outlives its files. The caller guarantees the
    // validity of `data` and `operations`.
    unsafe {
        bindings::debugfs_create_file_full(
            name.as_char_ptr(),
            mode,
            folder,
            data,
            core::ptr::null(),
            operations,
        )
    }
}

/// Creates nothing: the kernel has no debugfs.
///
/// # Safety
///
/// None.
#[cfg(not(CONFIG_DEBUG_FS))]
unsafe fn create(
    _: &CStr,
    _: u16,
    _: *mut c_void,
    _: &'static bindings::file_operations,
) -> *mut bindings::dentry {
    FOLDER.load(Acquire)
}

/// Removes a file or folder.
///
/// # Safety
///
/// `entry` is null, an error pointer, or a debugfs entry that only this call removes.
unsafe fn remove(entry: *mut bindings::dentry) {
    #[cfg(CONFIG_DEBUG_FS)]
    // SAFETY: The caller guarantees that the entry may be removed.
    unsafe {
        bindings::debugfs_remove(entry)
    };
    let _ = entry;
}

/// A file in the folder that only root can open. It is removed on drop.
///
/// # Invariants
///
/// `entry` is null, an error pointer, or a file owned by this value whose `i_private` is `_data`.
pub(crate) struct File<T> {
    entry: *mut bindings::dentry,
    // Dropped after the file is removed, and not moved before.
    _data: KBox<T>,
}

// SAFETY: A debugfs entry may be removed by any thread. No other operation uses it.
unsafe impl<T: Show> Send for File<T> {}
// SAFETY: A shared reference to a file offers no operation.
unsafe impl<T: Show> Sync for File<T> {}

impl<T: Show> File<T> {
    /// Creates a read-only file. A failure of debugfs, such as a duplicate name, is not reported:
    /// the file is missing then.
    ///
    /// The drop waits for readers of the file. It must not be called with a lock held that
    /// [`Show::show`] takes.
    ///
    /// Context: process; sleeps, and so does the drop.
    pub(crate) fn new(name: &CStr, data: T) -> Result<Self> {
        // SAFETY: The operations are those of a file whose data is a `T`.
        unsafe { Self::with(name, data, &Operations::<T>::READ, 0o400) }
    }

    /// Creates a file with these operations and this access mode.
    ///
    /// # Safety
    ///
    /// `operations` are those of a file whose `i_private` points to a `T`.
    unsafe fn with(
        name: &CStr,
        data: T,
        operations: &'static bindings::file_operations,
        mode: u16,
    ) -> Result<Self> {
        let data = KBox::new(data, GFP_KERNEL_ACCOUNT)?;
        let pointer = core::ptr::from_ref::<T>(&data).cast_mut().cast::<c_void>();
        // SAFETY: The data is boxed, so it does not move, and it is dropped after the file is
        // removed. The caller guarantees that `operations` expect a `T`.
        let entry = unsafe { create(name, mode, pointer, operations) };
        // INVARIANT: The file was just created with this data.
        Ok(Self { entry, _data: data })
    }
}

impl<T: Store> File<T> {
    /// Creates a file that can be read and written. Otherwise the same as [`File::new`].
    pub(crate) fn new_writable(name: &CStr, data: T) -> Result<Self> {
        // SAFETY: The operations are those of a file whose data is a `T`.
        unsafe { Self::with(name, data, &Operations::<T>::READ_WRITE, 0o600) }
    }
}

impl<T> Drop for File<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns the entry. No reader or writer uses the
        // data once this has returned.
        unsafe { remove(self.entry) };
    }
}

/// File operations for data of type `T`.
struct Operations<T>(PhantomData<T>);

impl<T: Show> Operations<T> {
    const READ: bindings::file_operations = bindings::file_operations {
        owner: compat::THIS_MODULE_PTR,
        open: Some(open::<T>),
        read: Some(bindings::seq_read),
        llseek: Some(bindings::seq_lseek),
        release: Some(bindings::single_release),
        ..pin_init::zeroed()
    };
}

impl<T: Store> Operations<T> {
    const READ_WRITE: bindings::file_operations = bindings::file_operations {
        write: Some(write::<T>),
        ..Operations::<T>::READ
    };
}

/// The text of a file as a [`fmt::Display`].
struct Text<'a, T>(&'a T);

impl<T: Show> fmt::Display for Text<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

/// Implements `file_operations.open`.
///
/// # Safety
///
/// Only debugfs calls it, for a file whose `i_private` points to a `T`.
unsafe extern "C" fn open<T: Show>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> c_int {
    // SAFETY: debugfs passes a valid inode.
    let data = unsafe { (*inode).i_private };
    // SAFETY: `file` is valid, and `data` is the pointer to a `T` that `show` expects.
    unsafe { bindings::single_open(file, Some(show::<T>), data) }
}

/// Implements the show function of the `seq_file`.
///
/// # Safety
///
/// Only `seq_file` calls it, for a file that [`open`] opened. debugfs does not remove the file
/// during the call.
unsafe extern "C" fn show<T: Show>(seq: *mut bindings::seq_file, _: *mut c_void) -> c_int {
    // SAFETY: `open` passed a pointer to a `T`, which lives at least until the file is removed.
    let data = unsafe { &*(*seq).private.cast_const().cast::<T>() };
    // SAFETY: `seq` is valid, and the reader holds its lock.
    let seq = unsafe { SeqFile::from_raw(seq) };
    seq_print!(seq, "{}", Text(data));
    0
}

/// Implements `file_operations.write`.
///
/// # Safety
///
/// Only debugfs calls it, for a file that [`open`] opened. debugfs does not remove the file during
/// the call.
unsafe extern "C" fn write<T: Store>(
    file: *mut bindings::file,
    buffer: *const c_char,
    count: usize,
    _: *mut bindings::loff_t,
) -> isize {
    // SAFETY: `file` is valid, and `open` set its private data to a `seq_file`.
    let seq = unsafe { (*file).private_data.cast::<bindings::seq_file>() };
    // SAFETY: `open` passed a pointer to a `T`, which lives at least until the file is removed.
    let data = unsafe { &*(*seq).private.cast_const().cast::<T>() };
    match store(data, buffer, count) {
        Ok(()) => isize::try_from(count).unwrap_or(isize::MAX),
        Err(error) => error.to_errno() as isize,
    }
}

/// Copies the text in from user space and passes it to [`Store::store`].
fn store<T: Store>(data: &T, buffer: *const c_char, count: usize) -> Result {
    let mut text = [0; MAX_TEXT];
    let text = text.get_mut(..count).ok_or(EINVAL)?;
    let user = UserPtr::from_ptr(buffer.cast_mut().cast::<c_void>());
    UserSlice::new(user, count).reader().read_slice(text)?;
    let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
    data.store(text.trim())
}
