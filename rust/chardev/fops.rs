// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The character device and its file operations.
//!
//! Not the kernel crate's `miscdevice`: 7.2's sets no `.owner`, so that the module could be unloaded
//! under an open file.
//!
//! C header: [`include/linux/miscdevice.h`](srctree/include/linux/miscdevice.h)

use super::{
    client::Client,
    ioctl, //
};
use crate::{
    compat,
    dat::Until,
    model::ep::Close, //
};
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
        _IOC_SIZE,
        _IOC_TYPE, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::{
        ForeignOwnable,
        Opaque, //
    },
    uaccess::UserPtr, //
};

/// A `file_operations` in a static.
struct FopsTable(bindings::file_operations);

// SAFETY: The table is never written to, and what it points to is code and the module itself.
unsafe impl Sync for FopsTable {}

static FOPS: FopsTable = FopsTable(bindings::file_operations {
    owner: compat::THIS_MODULE_PTR,
    open: Some(open),
    release: Some(release),
    unlocked_ioctl: Some(unlocked_ioctl),
    // The messages have the same layout for 32-bit programs.
    #[cfg(CONFIG_COMPAT)]
    compat_ioctl: Some(bindings::compat_ptr_ioctl),
    llseek: Some(bindings::noop_llseek),
    ..pin_init::zeroed()
});

/// The registration: from its making to its drop there is a `/dev/kdapl`.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration {
    #[pin]
    misc: Opaque<bindings::miscdevice>,
}

// SAFETY: The device is only handed to the misc layer, which has its own locks.
unsafe impl Send for Registration {}
// SAFETY: As above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers. Anybody may open the device: what a process can make the kernel hold is charged to
    /// it, as with the verbs' own device.
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
                // SAFETY: `slot` is valid for a write; the device stays there until `drop`.
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
impl PinnedDrop for Registration {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` registered it; no file is open, for each holds the module.
        unsafe { bindings::misc_deregister(self.misc.get()) };
    }
}

/// `file_operations.open`.
///
/// # Safety
///
/// Only the VFS calls it, with a file that is being opened.
unsafe extern "C" fn open(_inode: *mut bindings::inode, file: *mut bindings::file) -> i32 {
    from_result(|| {
        let client = Arc::pin_init(Client::new(), GFP_KERNEL_ACCOUNT)?;
        // SAFETY: The VFS calls with a file that nobody else has yet.
        unsafe { (*file).private_data = client.into_foreign() };
        Ok(0)
    })
}

/// `file_operations.release`.
///
/// # Safety
///
/// Only the VFS calls it, once, as the last operation on a file that [`open`] opened.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> i32 {
    // SAFETY: The VFS calls once, after every other operation on the file; `open` set the pointer.
    let client: Arc<Client> = unsafe { ForeignOwnable::from_foreign((*file).private_data) };
    // An error: no adapter is open.
    let _ = client.close(Close::Abrupt, Until::Done);
    0
}

/// The client of a file.
///
/// # Safety
///
/// `file` is an open file of ours, for as long as `'a`.
unsafe fn client<'a>(file: *mut bindings::file) -> ArcBorrow<'a, Client> {
    // SAFETY: The caller vouches for the file; `open` set the pointer.
    unsafe { <Arc<Client> as ForeignOwnable>::borrow((*file).private_data.cast::<c_void>()) }
}

/// `file_operations.unlocked_ioctl`.
///
/// # Safety
///
/// Only the VFS calls it, with an open file of ours.
unsafe extern "C" fn unlocked_ioctl(
    file: *mut bindings::file,
    command: c_uint,
    argument: c_ulong,
) -> c_long {
    if _IOC_TYPE(command) != bindings::KDAPL_IOC_MAGIC {
        return ENOTTY.to_errno() as c_long;
    }
    // SAFETY: The VFS calls with an open file of ours, which stays so until this returns.
    let client = unsafe { client(file) };
    let argument = UserPtr::from_addr(argument);
    match ioctl::dispatch(&client, _IOC_NR(command), argument, _IOC_SIZE(command)) {
        Ok(()) => 0,
        Err(error) => error.to_errno() as c_long,
    }
}
