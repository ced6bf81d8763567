// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Anonymous files of records, with `poll`.
//!
//! A read returns whole records, and a write takes whole records. Neither has a position.
//!
//! C headers: [`include/linux/anon_inodes.h`](srctree/include/linux/anon_inodes.h),
//! [`include/linux/poll.h`](srctree/include/linux/poll.h),
//! [`include/linux/uio.h`](srctree/include/linux/uio.h)

mod transfer;

pub(crate) use self::transfer::{
    RecordDest,
    RecordSource, //
};

use super::{
    fops::FopsTable,
    wait::WaitQueue, //
};
use crate::compat;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    fs::{
        file::FileDescriptorReservation,
        File,
        Kiocb, //
    },
    iov::{
        IovIterDest,
        IovIterSource, //
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
    /// A read returns a record at once (`EPOLLIN`).
    pub(crate) readable: bool,
    /// A write takes a record at once (`EPOLLOUT`).
    pub(crate) writable: bool,
    /// No more records will ever come (`EPOLLHUP`).
    pub(crate) over: bool,
}

impl Readiness {
    /// The state of a file whose object is gone.
    pub(crate) const OVER: Self = Self {
        readable: false,
        writable: false,
        over: true,
    };

    fn mask(&self) -> bindings::__poll_t {
        let states = [
            (self.readable, bindings::POLLIN | bindings::POLLRDNORM),
            (self.writable, bindings::POLLOUT | bindings::POLLWRNORM),
            (self.over, bindings::POLLHUP),
        ];
        let reported = states.into_iter().filter(|(holds, _)| *holds);
        reported.fold(0, |mask, (_, bits)| mask | bits)
    }
}

/// Whether a read or a write may sleep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// It sleeps until it can transfer a record.
    May,
    /// It fails with `EAGAIN` instead: `O_NONBLOCK`, `RWF_NOWAIT`.
    MayNot,
}

/// Object that a file makes available.
pub(crate) trait RecordFile: Send + Sync + 'static {
    /// Returns the queue on which poll waits. A writer wakes it after it has changed the readiness.
    fn sleepers(&self) -> &WaitQueue;

    /// Returns the current state. Context: process; may sleep.
    fn readiness(&self) -> Readiness;

    /// Returns the size of a record that is read, in bytes. It is not 0.
    fn record_size(&self) -> usize;

    /// Puts records into `to`, which has room for one. A record is taken only after it was put.
    /// Returns without a record at the end of the file.
    ///
    /// Context: process; may sleep.
    ///
    /// # Errors
    ///
    /// `EAGAIN` instead of a sleep, `ERESTARTSYS` after a signal, `EFAULT`, and the object's own.
    /// An error has no effect if records were put.
    fn read(&self, to: &mut RecordDest<'_, '_>, blocking: Blocking) -> Result;

    /// Takes records from `from`, which are words. Called only if the file was opened for writing.
    ///
    /// Context: process; may sleep.
    ///
    /// # Errors
    ///
    /// As for [`RecordFile::read`].
    fn write(&self, _from: &mut RecordSource<'_, '_>, _blocking: Blocking) -> Result {
        Err(EBADF)
    }
}

/// Operations that a file allows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// `O_RDONLY`.
    Read,
    /// `O_RDWR`.
    ReadWrite,
}

impl OpenMode {
    fn flags(self) -> u32 {
        match self {
            Self::Read => bindings::O_RDONLY,
            Self::ReadWrite => bindings::O_RDWR,
        }
    }
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
    pub(crate) fn new<T: RecordFile>(
        name: &'static CStr,
        object: Arc<T>,
        access: OpenMode,
    ) -> Result<Self> {
        let number = FileDescriptorReservation::get_unused_fd_flags(bindings::O_CLOEXEC)?;
        let object = object.into_foreign();
        // SAFETY: The name and the table are static, and the table's operations expect an `Arc<T>`
        // as private data, which `object` is.
        let file = unsafe {
            bindings::anon_inode_getfile(
                name.as_char_ptr(),
                &raw const Table::<T>::FOPS.0,
                object,
                access.flags() as i32,
            )
        };
        let file: *mut bindings::file = kernel::error::from_err_ptr(file).inspect_err(|_| {
            // SAFETY: `object` comes from `into_foreign`, and no file was created that would own
            // it.
            drop(unsafe { <Arc<T> as ForeignOwnable>::from_foreign(object) });
        })?;
        // SAFETY: The file is valid, and nothing else accesses it yet.
        unsafe { bindings::kdapl_helper_make_stream(file) };
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

/// File operations for objects of type `T`.
struct Table<T>(PhantomData<T>);

impl<T: RecordFile> Table<T> {
    const FOPS: &'static FopsTable = &FopsTable(bindings::file_operations {
        owner: compat::THIS_MODULE_PTR,
        read_iter: Some(Self::read_iter),
        write_iter: Some(Self::write_iter),
        poll: Some(Self::poll),
        release: Some(Self::release),
        // Without `llseek`, `lseek` and `pread` fail with `ESPIPE`.
        ..pin_init::zeroed()
    });

    /// Returns whether an operation may sleep.
    ///
    /// # Safety
    ///
    /// `iocb` is valid.
    unsafe fn blocking(iocb: *mut bindings::kiocb) -> Blocking {
        // SAFETY: By the safety requirement.
        match unsafe { bindings::kdapl_helper_iocb_may_wait(iocb) } {
            true => Blocking::May,
            false => Blocking::MayNot,
        }
    }

    /// Implements `file_operations.read_iter`.
    ///
    /// # Safety
    ///
    /// Only the VFS (virtual file system) calls it, with a file that [`PendingFile::new`] opened
    /// for a `T`.
    unsafe extern "C" fn read_iter(
        iocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: The VFS passes a valid request, whose file has an `Arc<T>` as private data.
        let (request, blocking) =
            unsafe { (Kiocb::<Arc<T>>::from_raw(iocb), Self::blocking(iocb)) };
        // SAFETY: The VFS passes a destination that is valid during the call, and that nothing
        // else accesses.
        let iter = unsafe { IovIterDest::from_raw(iter) };
        let object = request.file();
        RecordDest::transfer(iter, object.record_size(), |to| object.read(to, blocking))
    }

    /// Implements `file_operations.write_iter`.
    ///
    /// # Safety
    ///
    /// As for [`Table::read_iter`].
    unsafe extern "C" fn write_iter(
        iocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // SAFETY: As in `read_iter`.
        let (request, blocking) =
            unsafe { (Kiocb::<Arc<T>>::from_raw(iocb), Self::blocking(iocb)) };
        // SAFETY: The VFS passes a source that is valid during the call, and that nothing else
        // accesses.
        let iter = unsafe { IovIterSource::from_raw(iter) };
        RecordSource::transfer(iter, |from| request.file().write(from, blocking))
    }

    /// Implements `file_operations.poll`.
    ///
    /// # Safety
    ///
    /// As for [`Table::read_iter`].
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
