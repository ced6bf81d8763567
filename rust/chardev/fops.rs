// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The character device and its file operations.
//!
//! Does not use the kernel crate's `miscdevice`: in 7.2 it leaves `.owner` unset, so that the
//! module could be unloaded while a file is open.
//!
//! C header: [`include/linux/miscdevice.h`](srctree/include/linux/miscdevice.h)

use super::{
    client::Client,
    ioctl, //
};
use crate::{
    compat,
    dat::prelude::*,
    sys::{
        fops::FopsTable,
        uring::{
            Command,
            Pending, //
        },
    },
};
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    error::from_result,
    ffi::{
        c_long,
        c_uint,
        c_ulong,
        c_void, //
    },
    ioctl::{
        _IOC_NR,
        _IOC_SIZE, //
    },
    mm::virt::VmaNew,
    sync::ArcBorrow,
    types::{
        ForeignOwnable,
        Opaque, //
    },
    uaccess::UserPtr, //
};

static FOPS: FopsTable = FopsTable(bindings::file_operations {
    owner: compat::THIS_MODULE_PTR,
    open: Some(open),
    release: Some(release),
    unlocked_ioctl: Some(unlocked_ioctl),
    mmap: Some(mmap),
    uring_cmd: Some(uring_cmd),
    // The messages have the same layout for 32-bit programs.
    #[cfg(CONFIG_COMPAT)]
    compat_ioctl: Some(bindings::compat_ptr_ioctl),
    llseek: Some(bindings::noop_llseek),
    ..pin_init::zeroed()
});

/// Registration of `/dev/kdapl`. Dropping it removes the device.
#[pin_data(PinnedDrop)]
pub(crate) struct DeviceNode {
    #[pin]
    misc: Opaque<bindings::miscdevice>,
}

// SAFETY: The device is only passed to the misc layer, which does its own locking.
unsafe impl Send for DeviceNode {}
// SAFETY: As above.
unsafe impl Sync for DeviceNode {}

impl DeviceNode {
    /// Registers the device.
    ///
    /// Any user may open it, as with the device files of the verbs. Resources that the kernel holds
    /// for a process are charged to that process.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            misc <- Opaque::try_ffi_init(|slot: *mut bindings::miscdevice| {
                let misc = bindings::miscdevice {
                    minor: bindings::MISC_DYNAMIC_MINOR as i32,
                    name: c"kdapl".as_char_ptr(),
                    fops: &raw const FOPS.0,
                    mode: 0o666,
                    ..pin_init::zeroed()
                };
                // SAFETY: `slot` is valid for writes. The device is pinned there until `drop`
                // deregisters it.
                let ret = unsafe {
                    slot.write(misc);
                    bindings::misc_register(slot)
                };
                kernel::error::to_result(ret)
            }),
        }? Error)
    }
}

#[pinned_drop]
impl PinnedDrop for DeviceNode {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` registered the device. No file is open, because an open file holds a
        // reference to the module.
        unsafe { bindings::misc_deregister(self.misc.get()) };
    }
}

/// `file_operations.open`.
///
/// # Safety
///
/// Called by the VFS only, with a file that is being opened.
unsafe extern "C" fn open(_inode: *mut bindings::inode, file: *mut bindings::file) -> i32 {
    from_result(|| {
        let client = Arc::pin_init(Client::new()?, GFP_KERNEL_ACCOUNT)?;
        // SAFETY: By the safety requirement, the file is being opened, so that nothing else
        // accesses it.
        unsafe { (*file).private_data = client.into_foreign() };
        Ok(0)
    })
}

/// `file_operations.release`.
///
/// # Safety
///
/// Called by the VFS only, once, as the last operation on a file that [`open`] opened.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> i32 {
    // SAFETY: By the safety requirement, no other operation on the file is running or follows, and
    // `open` set the pointer.
    let client: Arc<Client> = unsafe { ForeignOwnable::from_foreign((*file).private_data) };
    Client::release(client);
    0
}

/// Returns the client of a file.
///
/// # Safety
///
/// `file` was opened by [`open`] and stays open for `'a`.
unsafe fn client<'a>(file: *mut bindings::file) -> ArcBorrow<'a, Client> {
    // SAFETY: `open` set the pointer; by the safety requirement the file, and with it the client,
    // stays for `'a`.
    unsafe { <Arc<Client> as ForeignOwnable>::borrow((*file).private_data.cast::<c_void>()) }
}

/// `file_operations.unlocked_ioctl`.
///
/// # Safety
///
/// Called by the VFS only, with a file that [`open`] opened.
unsafe extern "C" fn unlocked_ioctl(
    file: *mut bindings::file,
    command: c_uint,
    argument: c_ulong,
) -> c_long {
    if !ioctl::is_request(command) {
        return ENOTTY.to_errno() as c_long;
    }
    // SAFETY: By the safety requirement, `open` opened the file. The VFS keeps it open until this
    // function returns.
    let client = unsafe { client(file) };
    let argument = UserPtr::from_addr(argument);
    match ioctl::dispatch(&client, _IOC_NR(command), argument, _IOC_SIZE(command)) {
        Ok(()) => 0,
        Err(error) => error.to_errno() as c_long,
    }
}

/// `file_operations.uring_cmd`: issues or cancels a command of io_uring.
///
/// # Safety
///
/// Called by io_uring only, with a command for a file that [`open`] opened.
unsafe extern "C" fn uring_cmd(command: *mut bindings::io_uring_cmd, flags: c_uint) -> i32 {
    let Some(raw) = NonNull::new(command) else {
        return EINVAL.to_errno();
    };
    // SAFETY: The helper only reads its argument.
    if unsafe { bindings::kdapl_helper_uring_is_cancel(flags) } {
        // SAFETY: By the safety requirement, and this is a call to cancel.
        unsafe { Pending::cancel(raw, flags) };
        return 0;
    }
    // SAFETY: By the safety requirement, the command is valid, and `open` opened its file, which it
    // keeps open.
    let client = unsafe { client(bindings::kdapl_helper_uring_file(command)) };
    // SAFETY: By the safety requirement. This function owns the command until it returns.
    let command = unsafe { Command::from_raw(raw, flags) };
    // SAFETY: This is not a call to cancel.
    let request = unsafe { command.request() };
    from_result(|| ioctl::uring::issue(&client, &command, &request))
}

/// `file_operations.mmap`: maps events of an EVD.
///
/// # Safety
///
/// Called by the VFS only, with a file that [`open`] opened, and with an area that is being set up.
unsafe extern "C" fn mmap(file: *mut bindings::file, vma: *mut bindings::vm_area_struct) -> i32 {
    // SAFETY: By the safety requirement, `open` opened the file, which stays open during the call.
    let client = unsafe { client(file) };
    // SAFETY: By the safety requirement the area is being set up, and no other thread has it.
    let (vma, offset) = unsafe { (VmaNew::from_raw(vma.cast()), (*vma).vm_pgoff) };
    from_result(|| client.map(offset, vma).map(|()| 0))
}
