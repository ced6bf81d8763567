// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Creation and list of controllers.

use super::{
    Addresses,
    Controller,
    State,
    Transport, //
};
use crate::bindings;
use kernel::{
    bindings::device,
    error::to_result,
    prelude::*,
    sync::{
        atomic::Relaxed,
        global_lock, //
    }, //
};

/// Controller in the list.
pub(super) struct Listed(*mut bindings::nvme_ctrl);

// SAFETY: The NVMe core protects controllers.
unsafe impl Send for Listed {}

global_lock! {
    // SAFETY: The module initializes the lock before it registers the transport.
    pub(super) unsafe(uninit) static CONTROLLERS: Mutex<KVec<Listed>> = KVec::new();
}

/// Initializes the list.
///
/// # Safety
///
/// Called once, before all other functions.
pub(super) unsafe fn init() {
    // SAFETY: By the safety requirement.
    unsafe { CONTROLLERS.init() };
}

/// Creates a controller, and connects it.
///
/// # Safety
///
/// `opts` are valid until the controller is freed, if one is returned. `dev` is valid.
pub(super) unsafe fn create<T: Transport>(
    dev: *mut device,
    opts: *mut bindings::nvmf_ctrl_options,
) -> Result<*mut bindings::nvme_ctrl> {
    // SAFETY: By the safety requirement. The fabrics library has checked that `traddr` is there.
    let addresses = unsafe { Addresses::parse(opts) }?;
    // SAFETY: By the safety requirement.
    let options = unsafe { &*opts };
    // SAFETY: By the safety requirement.
    if !options.duplicate_connect && unsafe { exists(opts) } {
        return Err(Error::from_errno(-(bindings::EALREADY as i32)));
    }
    let queues = options.nr_io_queues + options.nr_write_queues + 1;
    let this = KBox::pin_init(Controller::<T>::new(addresses, queues as usize), GFP_KERNEL)?;
    // SAFETY: Nobody else has the controller.
    unsafe {
        let ctrl = this.raw();
        (*ctrl).opts = opts;
        (*ctrl).queue_count = queues;
        (*ctrl).sqsize = (options.queue_size - 1) as u16;
        (*ctrl).kato = options.kato;
    }
    // SAFETY: The box stays pinned until `free_ctrl` drops it.
    let this = unsafe { Pin::into_inner_unchecked(this) };
    // SAFETY: As above.
    unsafe { add(KBox::leak(this), dev) }
}

/// Makes a controller known to the NVMe core, and connects it.
///
/// # Safety
///
/// `this` was made from a box, which the caller has given up. `dev` is valid.
unsafe fn add<T: Transport>(
    this: &Controller<T>,
    dev: *mut device,
) -> Result<*mut bindings::nvme_ctrl> {
    let ctrl = this.raw();
    this.init_reset_work();
    // SAFETY: The operations are a part of the controller.
    let ret = unsafe { bindings::nvme_init_ctrl(ctrl, dev, &raw const this.ops, 0) };
    if let Err(error) = to_result(ret) {
        // SAFETY: The NVMe core does not know the controller, so it is still this function's.
        drop(unsafe { KBox::from_raw(ctrl.cast::<Controller<T>>()) });
        return Err(error);
    }
    // SAFETY: The controller was initialized.
    let outcome = to_result(unsafe { bindings::nvme_add_ctrl(ctrl) }).and_then(|()| {
        connect(this).inspect_err(|_| {
            // SAFETY: The controller was added.
            unsafe { bindings::nvme_uninit_ctrl(ctrl) }
        })
    });
    if let Err(error) = outcome {
        // SAFETY: This is the reference of nvme_init_ctrl().
        unsafe { bindings::put_device((*ctrl).device) };
        return Err(error);
    }
    Ok(ctrl)
}

/// Lists a new controller, and connects it.
fn connect<T: Transport>(this: &Controller<T>) -> Result {
    this.alloc_admin_tags()?;
    this.change_state(State::CONNECTING);
    let outcome = list(this.raw()).and_then(|()| {
        // A status of NVMe is no errno.
        T::set_up(this).map_err(|status| to_result(status.min(0)).err().unwrap_or(EIO))
    });
    match outcome {
        Ok(()) => this.is_created.store(true, Relaxed),
        Err(_) => {
            unlist(this.raw());
            this.remove_tags();
        }
    }
    outcome
}

fn list(ctrl: *mut bindings::nvme_ctrl) -> Result {
    Ok(CONTROLLERS.lock().push(Listed(ctrl), GFP_KERNEL)?)
}

/// Returns whether a controller has the addresses and names of these options.
///
/// # Safety
///
/// The options are valid.
unsafe fn exists(opts: *mut bindings::nvmf_ctrl_options) -> bool {
    let controllers = CONTROLLERS.lock();
    // SAFETY: By the safety requirement. The list has valid controllers, as `unlist` takes the lock
    // before they are freed.
    let is_same = |one: &Listed| unsafe { bindings::nvmf_ip_options_match(one.0, opts) };
    controllers.iter().any(is_same)
}

/// Takes a controller that is not to be used any more out of the list.
pub(super) fn unlist(ctrl: *mut bindings::nvme_ctrl) {
    CONTROLLERS.lock().retain(|one| one.0 != ctrl);
}

/// Deletes all controllers, and waits until they are deleted.
pub(super) fn delete_all() {
    let controllers = CONTROLLERS.lock();
    for one in controllers.iter() {
        // SAFETY: As in `exists`. The deletion is the task of a work item.
        unsafe { bindings::nvme_delete_ctrl(one.0) };
    }
    drop(controllers);
    // SAFETY: The NVMe core made the queue when it was loaded.
    unsafe { bindings::__flush_workqueue(bindings::nvme_delete_wq) };
}
