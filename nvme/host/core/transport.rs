// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Operations of a transport, and its registration with NVMe over Fabrics.

use super::{
    create,
    Addresses,
    Controller,
    Outcome,
    Request, //
};
use crate::bindings;
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

/// Request that was not submitted.
pub(crate) enum Refused {
    /// Memory is exhausted, or the queue is full. The block layer tries again.
    Busy(Request),
    /// The connection has ended, which the transport has reported by
    /// [`Controller::start_recovery`]. The block layer tries again until the queue is stopped, or
    /// the NVMe core as below if nobody stops it.
    Ended(Request),
    /// The connection has failed. The NVMe core tries again, on another path if there is one.
    Path(Request),
}

/// Data and functions of a transport, one value for each controller. Queue 0 is the admin queue.
pub(crate) trait Transport: Sized + Send + Sync + 'static {
    /// Name of the option `transport`.
    const NAME: &'static CStr;

    /// Makes the data of a controller with this number of queues, all stopped.
    fn new(addresses: Addresses, queues: usize) -> Result<Self>;

    /// Connects all queues, with an I/O tag set if there is none. After an error none is connected.
    /// Context: process; sleeps.
    fn set_up(ctrl: &Controller<Self>) -> Outcome;

    /// Stops all queues before the controller is deleted. Context: process; sleeps.
    fn tear_down(ctrl: &Controller<Self>);

    /// Ends the connection of a queue. When it has returned, the device accesses no memory of its
    /// requests, and the transport has dropped each [`Request`]. Returns at once if another thread
    /// ends the connection already. Context: process; sleeps.
    fn stop(&self, queue: usize);

    /// Returns whether the controller has accepted the queue.
    fn is_live(&self, queue: usize) -> bool;

    /// Sends a command. Context: that of `queue_rq` with BLK_MQ_F_BLOCKING; sleeps.
    fn submit(&self, queue: usize, request: Request) -> Result<(), Refused>;

    /// Sends the command that waits for asynchronous events. Context: process; sleeps.
    fn submit_async_event(ctrl: &Controller<Self>);

    /// Stops all queues after an error, and arranges the next attempt to connect. Context: process;
    /// sleeps.
    fn recover(ctrl: &Controller<Self>);

    /// Connects again. Context: process; sleeps.
    fn reconnect(ctrl: &Controller<Self>);

    /// Resets the controller, as its administrator has asked for. Context: process; sleeps.
    fn reset(ctrl: &Controller<Self>);
}

/// Registration of a transport. Its drop deletes all controllers.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration {
    #[pin]
    ops: Opaque<bindings::nvmf_transport_ops>,
}

// SAFETY: The fabrics library protects its entry.
unsafe impl Send for Registration {}
// SAFETY: As above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers a transport. The value is to be a part of the module's struct, since
    /// `struct nvmf_transport_ops` lies in the memory of the module.
    pub(crate) fn new<T: Transport>(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        let ops = move |slot: *mut bindings::nvmf_transport_ops| {
            // SAFETY: This is the only registration of the module, which it makes once.
            unsafe { create::init() };
            let ops = bindings::nvmf_transport_ops {
                module: module.as_ptr(),
                name: T::NAME.as_char_ptr(),
                required_opts: bindings::NVMF_OPT_TRADDR as i32,
                allowed_opts: ALLOWED as i32,
                create_ctrl: Some(create_ctrl::<T>),
                ..pin_init::zeroed()
            };
            // SAFETY: `slot` is valid for writes.
            unsafe { slot.write(ops) };
            // SAFETY: The value stays there until its drop, which unregisters it.
            to_result(unsafe { bindings::nvmf_register_transport(slot) })
        };
        try_pin_init!(Self {
            ops <- Opaque::try_ffi_init(ops),
        })
    }
}

/// Options that a controller may have.
const ALLOWED: u32 = bindings::NVMF_OPT_TRSVCID
    | bindings::NVMF_OPT_RECONNECT_DELAY
    | bindings::NVMF_OPT_HOST_TRADDR
    | bindings::NVMF_OPT_CTRL_LOSS_TMO
    | bindings::NVMF_OPT_NR_WRITE_QUEUES;

#[pinned_drop]
impl PinnedDrop for Registration {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The value was registered when it was made.
        unsafe { bindings::nvmf_unregister_transport(self.ops.get()) };
        create::delete_all();
    }
}

/// Creates a controller.
///
/// # Safety
///
/// `opts` are valid until the controller is freed, if one is returned. `dev` is valid.
unsafe extern "C" fn create_ctrl<T: Transport>(
    dev: *mut bindings::device,
    opts: *mut bindings::nvmf_ctrl_options,
) -> *mut bindings::nvme_ctrl {
    // SAFETY: By the safety requirement.
    match unsafe { create::create::<T>(dev, opts) } {
        Ok(ctrl) => ctrl,
        Err(error) => error.to_ptr(),
    }
}
