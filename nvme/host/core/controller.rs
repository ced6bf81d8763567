// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Controllers of the NVMe core.

use super::{
    life,
    ops,
    work,
    Addresses,
    Transport, //
};
use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    bindings::{
        blk_mq_ops,
        blk_mq_tag_set,
        delayed_work,
        work_struct, //
    },
    device::Device,
    ffi::c_int,
    prelude::*,
    sync::{
        aref::AlwaysRefCounted,
        atomic::Atomic, //
    },
    types::Opaque, //
};

/// Result of a call of the NVMe core: an error is a negative errno, or a status of NVMe.
pub(crate) type Outcome<T = ()> = Result<T, c_int>;

/// Number of types of hardware queues.
const TYPES: usize = bindings::hctx_type_HCTX_MAX_TYPES as usize;

/// State of a controller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(pub(super) u32);

impl State {
    pub(crate) const LIVE: Self = Self(bindings::nvme_ctrl_state_NVME_CTRL_LIVE);
    pub(crate) const RESETTING: Self = Self(bindings::nvme_ctrl_state_NVME_CTRL_RESETTING);
    pub(crate) const CONNECTING: Self = Self(bindings::nvme_ctrl_state_NVME_CTRL_CONNECTING);
}

/// Controller with the data of its transport. It is freed with its last reference.
#[pin_data]
#[repr(C)]
pub(crate) struct Controller<T: Transport> {
    #[pin]
    pub(super) ctrl: Opaque<bindings::nvme_ctrl>,
    #[pin]
    pub(super) admin_tags: Opaque<blk_mq_tag_set>,
    #[pin]
    pub(super) io_tags: Opaque<blk_mq_tag_set>,
    #[pin]
    pub(super) recovery: Opaque<work_struct>,
    #[pin]
    pub(super) reconnect: Opaque<delayed_work>,
    pub(super) ops: bindings::nvme_ctrl_ops,
    pub(super) admin_ops: blk_mq_ops,
    pub(super) io_ops: blk_mq_ops,
    /// Number of I/O queues of each type, for the map of processors to queues.
    pub(super) io_queues: Opaque<[u32; TYPES]>,
    /// The I/O tag set exists.
    pub(super) has_io_tags: Atomic<bool>,
    /// The controller owns its options.
    pub(super) is_created: Atomic<bool>,
    transport: T,
}

// SAFETY: The NVMe core protects its fields, and the transport may be sent.
unsafe impl<T: Transport> Send for Controller<T> {}
// SAFETY: As above.
unsafe impl<T: Transport> Sync for Controller<T> {}

/// Limits that the controller has reported, or that the options have set.
pub(crate) struct Limits {
    /// Largest number of segments of a request.
    pub(crate) max_segments: u32,
}

impl<T: Transport> Controller<T> {
    /// Makes a controller that the NVMe core does not know yet.
    pub(super) fn new(addresses: Addresses, queues: usize) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            ctrl <- pin_init::init_zeroed(),
            admin_tags <- pin_init::init_zeroed(),
            io_tags <- pin_init::init_zeroed(),
            recovery <- Opaque::ffi_init(work::init_recovery::<T>),
            reconnect <- Opaque::ffi_init(work::init_reconnect::<T>),
            ops: life::ops::<T>(),
            admin_ops: ops::admin_ops::<T>(),
            io_ops: ops::io_ops::<T>(),
            io_queues: Opaque::new([0; TYPES]),
            has_io_tags: Atomic::new(false),
            is_created: Atomic::new(false),
            transport: T::new(addresses, queues)?,
        }? Error)
    }

    /// Returns the controller of a `struct nvme_ctrl`.
    ///
    /// # Safety
    ///
    /// `ctrl` is that of a `Controller<T>`, which is not freed during `'a`.
    pub(super) unsafe fn from_raw<'a>(ctrl: *mut bindings::nvme_ctrl) -> &'a Self {
        // SAFETY: It is the first field of the `repr(C)` struct.
        unsafe { &*ctrl.cast() }
    }

    pub(super) fn raw(&self) -> *mut bindings::nvme_ctrl {
        self.ctrl.get()
    }

    pub(crate) fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the device, for messages.
    pub(crate) fn device(&self) -> &Device {
        // SAFETY: It is a part of `ctrl`.
        unsafe { Device::from_raw((*self.raw()).device) }
    }

    pub(crate) fn state(&self) -> State {
        // SAFETY: The controller is valid. The state may change at any time.
        State(unsafe { (&raw const (*self.raw()).state).read_volatile() })
    }

    /// Enters a state, if the present one permits it.
    pub(crate) fn change_state(&self, state: State) -> bool {
        // SAFETY: The controller is valid.
        unsafe { bindings::nvme_change_ctrl_state(self.raw(), state.0) }
    }
}

/// Fields of `struct nvme_ctrl` and its options, which the NVMe core sets while the controller is
/// set up.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $($path:ident).+;)+) => {
        impl<T: Transport> Controller<T> {
            $(
                $(#[$doc])*
                pub(crate) fn $name(&self) -> $type {
                    // SAFETY: The controller is valid, and so are its options.
                    unsafe { (*self.raw()).$($path).+ as $type }
                }
            )+
        }
    };
}

fields! {
    /// Returns the number of queues.
    queue_count: usize = queue_count;
    /// Returns the last index of an I/O submission queue.
    sqsize: u16 = sqsize;
    /// Returns the largest number of outstanding commands.
    maxcmd: u16 = maxcmd;
    /// Returns the offset of in-capsule data, in units of 16 bytes.
    icdoff: u16 = icdoff;
    /// Returns the size of a command capsule, in units of 16 bytes.
    ioccsz: u32 = ioccsz;
    /// Returns the identifier of the controller.
    cntlid: u16 = cntlid;
    /// Returns the supported SGLs.
    sgls: u32 = sgls;
    /// Returns the number of attempts to connect again.
    nr_reconnects: i32 = nr_reconnects;
}

impl<T: Transport> Controller<T> {
    fn opts(&self) -> &bindings::nvmf_ctrl_options {
        // SAFETY: The options are valid until the controller is freed.
        unsafe { &*(*self.raw()).opts }
    }

    /// Returns the depth that the administrator has asked for.
    pub(crate) fn queue_size(&self) -> usize {
        self.opts().queue_size
    }

    /// Returns the time between attempts to connect, in seconds.
    pub(crate) fn reconnect_delay(&self) -> u32 {
        self.opts().reconnect_delay
    }

    /// Returns the largest number of attempts, or -1.
    pub(crate) fn max_reconnects(&self) -> i32 {
        self.opts().max_reconnects
    }

    /// Sets the last index of an I/O submission queue.
    pub(crate) fn set_sqsize(&self, sqsize: u16) {
        // SAFETY: The controller is valid, and being set up by this thread.
        unsafe { (*self.raw()).sqsize = sqsize };
    }

    /// Sets the limits of a request.
    pub(crate) fn set_limits(&self, limits: &Limits) {
        // SAFETY: As above.
        unsafe {
            (*self.raw()).max_segments = limits.max_segments;
            (*self.raw()).max_hw_sectors =
                limits.max_segments << (bindings::NVME_CTRL_PAGE_SHIFT - 9);
        }
    }

    /// Counts an attempt to connect.
    pub(crate) fn count_reconnect(&self) {
        // SAFETY: The controller is valid, and being set up by this thread.
        unsafe { (*self.raw()).nr_reconnects += 1 };
    }

    /// Adds the attempts to the counter in sysfs, and resets the count.
    pub(crate) fn forget_reconnects(&self) {
        // SAFETY: As above.
        unsafe { bindings::kdapl_nvme_reconnected(self.raw()) };
    }
}

// SAFETY: A controller is freed by `free_ctrl`, after the last reference to its device.
unsafe impl<T: Transport> AlwaysRefCounted for Controller<T> {
    fn inc_ref(&self) {
        // SAFETY: The reference proves that the count is not zero.
        unsafe { bindings::get_device((*self.raw()).device) };
    }

    unsafe fn dec_ref(this: NonNull<Self>) {
        // SAFETY: By the safety requirement.
        unsafe { bindings::put_device((*this.as_ref().raw()).device) };
    }
}
