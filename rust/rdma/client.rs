// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The module's `ib_client`, and the list of devices that it keeps.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::device::Device;
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::{
        global_lock,
        Arc, //
    },
    types::Opaque, //
};

global_lock! {
    // SAFETY: `Registration::new` initialises it before the first use.
    unsafe(uninit) static DEVICES: Mutex<KVec<Arc<Device>>> = KVec::new();
}

/// The `index`-th device for which `wanted` holds.
///
/// Context: process; sleeps.
pub(crate) fn find(index: u32, mut wanted: impl FnMut(&Device) -> bool) -> Option<Arc<Device>> {
    let devices = DEVICES.lock();
    let mut matching = devices.iter().filter(|device| wanted(device));
    matching.nth(usize::try_from(index).ok()?).cloned()
}

/// The registration with `ib_core`: from its making to its drop, devices come and go.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration {
    #[pin]
    client: Opaque<bindings::ib_client>,
}

// SAFETY: The client is only handed to `ib_core`, which has its own locks.
unsafe impl Send for Registration {}
// SAFETY: As above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers. Made once, by the module's `init`.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        // SAFETY: Called once, before anything that uses the list.
        unsafe { DEVICES.init() };
        try_pin_init!(Self {
            client <- Opaque::try_ffi_init(|slot: *mut bindings::ib_client| {
                let client = bindings::ib_client {
                    name: c"kdapl".as_char_ptr(),
                    add: Some(add),
                    remove: Some(remove),
                    ..Default::default()
                };
                // SAFETY: `slot` is valid for a write; the client stays there until `drop`.
                let ret = unsafe {
                    slot.write(client);
                    bindings::ib_register_client(slot)
                };
                kernel::error::to_result(ret)
            }),
        }? Error)
    }
}

#[pinned_drop]
impl PinnedDrop for Registration {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` registered it. Afterwards `ib_core` knows nothing of it any more.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
        // It is empty now, but statics are not dropped: this gives back its memory.
        let devices = core::mem::replace(&mut *DEVICES.lock(), KVec::new());
        drop(devices);
    }
}

/// `ib_client.add`: a device has come.
///
/// # Safety
///
/// Only `ib_core` calls it, with a device that stays registered until [`remove`] has returned.
unsafe extern "C" fn add(raw: *mut bindings::ib_device) -> i32 {
    kernel::error::from_result(|| {
        let raw = NonNull::new(raw).ok_or(EINVAL)?;
        // SAFETY: `ib_core` keeps the device until `remove` has returned, which waits in
        // `Device::remove`.
        let device = unsafe { Device::new(raw) }?;
        DEVICES.lock().push(device, GFP_KERNEL)?;
        Ok(0)
    })
}

/// `ib_client.remove`: a device goes.
///
/// # Safety
///
/// Only `ib_core` calls it, with a device that was given to [`add`].
unsafe extern "C" fn remove(raw: *mut bindings::ib_device, _data: *mut c_void) {
    let device = {
        let mut devices = DEVICES.lock();
        let position = devices.iter().position(|device| device.as_ptr() == raw);
        position.and_then(|position| devices.remove(position).ok())
    };
    if let Some(device) = device {
        Device::remove(device);
    }
}
