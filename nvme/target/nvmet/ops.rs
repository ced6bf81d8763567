// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The transport's functions, as the NVMe core calls them.

use super::{
    command::{
        Answered,
        Command, //
    },
    submission::Controller,
    PortRef,
    Queues,
    Settings,
    SubmissionQueue, //
};
use crate::{
    bindings,
    port::Port,
    queue::Queue,
    wire, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::{
        ForeignOwnable,
        Opaque, //
    },
    workqueue, //
};

/// Largest transfer: 2^8 pages of 4 KiB.
const MAX_TRANSFER_SHIFT: u8 = 8;

/// Number of bytes of the largest transfer.
pub(crate) const MAX_TRANSFER: u32 = 4096 << MAX_TRANSFER_SHIFT;

/// Table of functions.
struct Ops(bindings::nvmet_fabrics_ops);

// SAFETY: The table is constant.
unsafe impl Sync for Ops {}

static OPS: Ops = Ops(bindings::nvmet_fabrics_ops {
    owner: (&raw const kernel::bindings::__this_module).cast_mut(),
    type_: bindings::NVMF_TRTYPE_RDMA,
    msdbd: 1,
    flags: bindings::NVMF_KEYED_SGLS,
    queue_response: Some(queue_response),
    add_port: Some(add_port),
    remove_port: Some(remove_port),
    delete_ctrl: Some(delete_ctrl),
    disc_traddr: None,
    host_traddr: None,
    install_queue: None,
    discovery_chg: None,
    get_mdts: Some(get_mdts),
    get_max_queue_size: Some(get_max_queue_size),
    create_sq: None,
    delete_sq: None,
    create_cq: None,
    delete_cq: None,
    set_feature: None,
    get_feature: None,
});

/// Returns the table of functions.
pub(super) fn ops() -> *const bindings::nvmet_fabrics_ops {
    &raw const OPS.0
}

/// Queues the response of a command.
///
/// # Safety
///
/// `req` is in a command that [`super::Idle::start`] has given to the core.
unsafe extern "C" fn queue_response(req: *mut bindings::nvmet_req) {
    // SAFETY: The core answers a command while its queue lives.
    let queue = unsafe { queue_of((*req).sq) };
    // SAFETY: By the safety requirement.
    queue.answer(Answered(unsafe { Command::from_req(req) }));
}

/// Returns the queue of a submission queue.
///
/// # Safety
///
/// `sq` belongs to a [`Queue`] that lives.
unsafe fn queue_of<'a>(sq: *mut bindings::nvmet_sq) -> ArcBorrow<'a, Queue> {
    let sq = Opaque::cast_from(sq);
    // SAFETY: By the safety requirement.
    let submission = unsafe { kernel::container_of!(sq, SubmissionQueue, sq) };
    // SAFETY: As above.
    let queue = unsafe { kernel::container_of!(submission, Queue, submission) };
    // SAFETY: Queues are allocated in an `Arc`.
    unsafe { ArcBorrow::from_raw(queue) }
}

/// Starts to listen for a port.
///
/// # Safety
///
/// `port` is valid, and the core changes it in no other thread.
unsafe extern "C" fn add_port(port: *mut bindings::nvmet_port) -> i32 {
    // SAFETY: By the safety requirement.
    let settings = unsafe { Settings::of(port) };
    let opened = settings.and_then(|settings| Port::open(PortRef::new(port), settings));
    kernel::error::from_result(|| {
        // SAFETY: By the safety requirement.
        unsafe { (*port).priv_ = opened?.into_foreign().cast() };
        Ok(0)
    })
}

/// Stops to listen, and disconnects the queues of the port.
///
/// # Safety
///
/// `add_port` has succeeded for `port`, and this is the only call for it since.
unsafe extern "C" fn remove_port(port: *mut bindings::nvmet_port) {
    // SAFETY: By the safety requirement.
    let port = unsafe { Arc::<Port>::from_foreign((*port).priv_.cast()) };
    port.close();
}

/// Disconnects the queues of a controller.
///
/// # Safety
///
/// None: `ctrl` is only compared.
unsafe extern "C" fn delete_ctrl(ctrl: *mut bindings::nvmet_ctrl) {
    let controller = Some(Controller::new(ctrl));
    Queues::release(|queue| queue.submission.controller() == controller);
}

/// Returns the largest transfer, as a power of two of 4 KiB.
///
/// # Safety
///
/// None.
unsafe extern "C" fn get_mdts(_ctrl: *const bindings::nvmet_ctrl) -> u8 {
    MAX_TRANSFER_SHIFT
}

/// Returns the largest depth of a queue.
///
/// # Safety
///
/// None.
unsafe extern "C" fn get_max_queue_size(_ctrl: *const bindings::nvmet_ctrl) -> u16 {
    wire::MAX_DEPTH
}

/// Returns the work queue of the core. It is flushed before a port is freed.
pub(crate) fn workqueue() -> &'static workqueue::Queue {
    // SAFETY: `nvmet.ko`, which this module uses, keeps its work queue.
    unsafe { workqueue::Queue::from_raw(bindings::nvmet_wq.cast()) }
}

/// Registration of the transport. Ports have references to the module, so there are none at the
/// drop, but queues may still be in their release.
pub(crate) struct Registration(());

impl Registration {
    /// Registers the transport.
    ///
    /// # Errors
    ///
    /// EBUSY if another transport of the type is registered: `nvmet-rdma`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: The core calls no function before it is registered.
        unsafe { Queues::init() };
        // SAFETY: The table is constant, and valid until the drop.
        to_result(unsafe { bindings::nvmet_register_transport(ops()) })?;
        Ok(Self(()))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: It was registered. The work queue is that of `nvmet.ko`.
        unsafe {
            bindings::nvmet_unregister_transport(ops());
            // Queues are released on it, and the last of a port closes the adapter. A release waits
            // for the core, which queues the last responses meanwhile: the second call waits for
            // those.
            bindings::__flush_workqueue(bindings::nvmet_wq);
            bindings::__flush_workqueue(bindings::nvmet_wq);
        }
    }
}
