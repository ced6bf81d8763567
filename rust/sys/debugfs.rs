// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The module's folder in debugfs, and files in it.
//!
//! Not the kernel crate's `debugfs`: its files have no `.owner`, so that the module could be unloaded
//! while somebody has one open, and the close that follows would call into what was the module. And
//! a file of an object that a system call makes has to find the folder, which is here for all.
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

/// Bytes that may be written to a file at once.
const MAX_TEXT: usize = 32;

/// The folder, while the module is loaded; null or an error if debugfs did not make it.
static FOLDER: Atomic<*mut bindings::dentry> = Atomic::new(core::ptr::null_mut());

/// What a file shows.
pub(crate) trait Show: Send + Sync + 'static {
    /// Writes the whole text, again from its beginning if there was too little room for it.
    ///
    /// Context: process; sleeps.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// What a file takes.
pub(crate) trait Store: Show {
    /// Takes what was written, without blanks and ends of lines around it.
    ///
    /// Context: process; sleeps.
    fn store(&self, text: &str) -> Result;
}

/// Owner of the folder: made once at load before any file, dropped at unload behind all of them.
pub(crate) struct Folder(());

impl Folder {
    /// Makes the folder. What debugfs itself refuses is not told: there are just no files.
    ///
    /// Context: process; sleeps.
    pub(crate) fn new(name: &CStr) -> Self {
        FOLDER.store(create_dir(name), Release);
        Self(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let folder = FOLDER.load(Acquire);
        FOLDER.store(core::ptr::null_mut(), Release);
        // SAFETY: `new` stored it, and no file is left that it would take along.
        unsafe { remove(folder) };
    }
}

/// Makes the folder.
#[cfg(CONFIG_DEBUG_FS)]
fn create_dir(name: &CStr) -> *mut bindings::dentry {
    // SAFETY: `name` is NUL-terminated; no parent is the top of debugfs.
    unsafe { bindings::debugfs_create_dir(name.as_char_ptr(), core::ptr::null_mut()) }
}

/// There are no folders.
#[cfg(not(CONFIG_DEBUG_FS))]
fn create_dir(_: &CStr) -> *mut bindings::dentry {
    core::ptr::null_mut()
}

/// Makes a file in the folder; null if there is no folder.
///
/// # Safety
///
/// `data` is what `operations` expect, and both live until the file is removed.
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
    // SAFETY: `name` is NUL-terminated, the folder is there while there are files; the caller
    // vouches for the rest.
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

/// There are no files.
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
/// `entry` is null, an error, or an entry of debugfs that is removed by nobody else.
unsafe fn remove(entry: *mut bindings::dentry) {
    #[cfg(CONFIG_DEBUG_FS)]
    // SAFETY: The caller vouches for it.
    unsafe {
        bindings::debugfs_remove(entry)
    };
    let _ = entry;
}

/// A file for root in the folder, there until it is dropped.
///
/// # Invariants
///
/// `entry` is null, an error, or a file of ours whose `i_private` is `data`.
pub(crate) struct File<T> {
    entry: *mut bindings::dentry,
    // Dropped after the file is removed, and at the same place until then.
    _data: KBox<T>,
}

// SAFETY: An entry of debugfs may be removed by any thread, and that is all we do with it.
unsafe impl<T: Show> Send for File<T> {}
// SAFETY: Nothing can be done with a shared file.
unsafe impl<T: Show> Sync for File<T> {}

impl<T: Show> File<T> {
    /// Makes a file that can be read. What debugfs itself refuses, a name that is taken for one, is
    /// not told: the file is just not there.
    ///
    /// The drop waits for whoever reads at that moment, so nobody drops it with a lock that
    /// [`Show::show`] takes.
    ///
    /// Context: process; sleeps, and so does the drop.
    pub(crate) fn new(name: &CStr, data: T) -> Result<Self> {
        // SAFETY: The operations are for a file whose data is a `T`.
        unsafe { Self::with(name, data, &Operations::<T>::READ, 0o400) }
    }

    /// # Safety
    ///
    /// `operations` are for a file whose `i_private` points to a `T`.
    unsafe fn with(
        name: &CStr,
        data: T,
        operations: &'static bindings::file_operations,
        mode: u16,
    ) -> Result<Self> {
        let data = KBox::new(data, GFP_KERNEL_ACCOUNT)?;
        let pointer = core::ptr::from_ref::<T>(&data).cast_mut().cast::<c_void>();
        // SAFETY: The data outlives the file by the order of drops, and stays in its place; the
        // caller vouches for the rest.
        let entry = unsafe { create(name, mode, pointer, operations) };
        // INVARIANT: Just made so.
        Ok(Self { entry, _data: data })
    }
}

impl<T: Store> File<T> {
    /// Makes a file that can be read and written; else as [`File::new`].
    pub(crate) fn new_writable(name: &CStr, data: T) -> Result<Self> {
        // SAFETY: The operations are for a file whose data is a `T`.
        unsafe { Self::with(name, data, &Operations::<T>::READ_WRITE, 0o600) }
    }
}

impl<T> Drop for File<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariant it is ours. Once this has returned nobody uses the data.
        unsafe { remove(self.entry) };
    }
}

/// The operations of files with a `T`.
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

/// The text of a file, as a formatter wants it.
struct Text<'a, T>(&'a T);

impl<T: Show> fmt::Display for Text<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

/// `file_operations.open`.
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
    // SAFETY: `file` is valid, and `show` is given what it expects.
    unsafe { bindings::single_open(file, Some(show::<T>), data) }
}

/// The show function of the `seq_file`.
///
/// # Safety
///
/// Only `seq_file` calls it, for one that [`open`] made; debugfs keeps the file from being removed
/// meanwhile.
unsafe extern "C" fn show<T: Show>(seq: *mut bindings::seq_file, _: *mut c_void) -> c_int {
    // SAFETY: `open` gave a `T`, which lives at least until the file is removed.
    let data = unsafe { &*(*seq).private.cast_const().cast::<T>() };
    // SAFETY: `seq` is valid, and locked by the reader.
    let seq = unsafe { SeqFile::from_raw(seq) };
    seq_print!(seq, "{}", Text(data));
    0
}

/// `file_operations.write`.
///
/// # Safety
///
/// Only debugfs calls it, for a file that [`open`] opened, and keeps it from being removed meanwhile.
unsafe extern "C" fn write<T: Store>(
    file: *mut bindings::file,
    buffer: *const c_char,
    count: usize,
    _: *mut bindings::loff_t,
) -> isize {
    // SAFETY: `file` is valid, and `open` has made a `seq_file` of it.
    let seq = unsafe { (*file).private_data.cast::<bindings::seq_file>() };
    // SAFETY: `open` gave a `T`, which lives at least until the file is removed.
    let data = unsafe { &*(*seq).private.cast_const().cast::<T>() };
    match store(data, buffer, count) {
        Ok(()) => isize::try_from(count).unwrap_or(isize::MAX),
        Err(error) => error.to_errno() as isize,
    }
}

/// Copies the text in, and hands it on.
fn store<T: Store>(data: &T, buffer: *const c_char, count: usize) -> Result {
    let mut text = [0; MAX_TEXT];
    let text = text.get_mut(..count).ok_or(EINVAL)?;
    let user = UserPtr::from_ptr(buffer.cast_mut().cast::<c_void>());
    UserSlice::new(user, count).reader().read_slice(text)?;
    let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
    data.store(text.trim())
}
