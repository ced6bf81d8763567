// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The module's `ib_client`, and its list of devices.
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
    // SAFETY: `IbClient::new` initialises it before the first use.
    unsafe(uninit) static DEVICES: Mutex<KVec<Arc<Device>>> = KVec::new();
}

/// Returns the `index`-th device that matches `wanted`.
///
/// Context: process; sleeps.
pub(crate) fn find(index: u32, mut wanted: impl FnMut(&Device) -> bool) -> Option<Arc<Device>> {
    let devices = DEVICES.lock();
    let mut matching = devices.iter().filter(|device| wanted(device));
    matching.nth(usize::try_from(index).ok()?).cloned()
}

/// The registration with `ib_core`. While it exists, `ib_core` reports devices that are added or
/// removed.
#[pin_data(PinnedDrop)]
pub(crate) struct IbClient {
    #[pin]
    client: Opaque<bindings::ib_client>,
}

// SAFETY: Only `ib_core` accesses the client, with its own locks.
unsafe impl Send for IbClient {}
// SAFETY: As above.
unsafe impl Sync for IbClient {}

impl IbClient {
    /// Registers the client. The module's `init` calls it once.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        // SAFETY: It is called once, before any use of the list.
        unsafe { DEVICES.init() };
        try_pin_init!(Self {
            client <- Opaque::try_ffi_init(|slot: *mut bindings::ib_client| {
                let client = bindings::ib_client {
                    name: c"kdapl".as_char_ptr(),
                    add: Some(add),
                    remove: Some(remove),
                    ..Default::default()
                };
                // SAFETY: `slot` is valid for a write. The client is pinned, so it stays there
                // until the drop unregisters it.
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
impl PinnedDrop for IbClient {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: `new` registered the client. `ib_core` does not access it afterwards.
        unsafe { bindings::ib_unregister_client(self.client.get()) };
        // The list is empty by now. Statics are not dropped, so its memory is freed here.
        let devices = core::mem::replace(&mut *DEVICES.lock(), KVec::new());
        drop(devices);
    }
}

/// Implements `ib_client.add`: a device was added.
///
/// # Safety
///
/// Only `ib_core` calls it, with a device that stays registered until [`remove`] has returned.
unsafe extern "C" fn add(raw: *mut bindings::ib_device) -> i32 {
    kernel::error::from_result(|| {
        let raw = NonNull::new(raw).ok_or(EINVAL)?;
        // SAFETY: `ib_core` keeps the device until `remove` has returned, and `remove` calls
        // `Device::remove`, which waits.
        let device = unsafe { Device::new(raw) }?;
        DEVICES.lock().push(device, GFP_KERNEL)?;
        Ok(0)
    })
}

/// Implements `ib_client.remove`: a device is being removed.
///
/// # Safety
///
/// Only `ib_core` calls it, with a device that it has passed to [`add`].
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
