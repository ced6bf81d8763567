// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `struct nvme_ctrl_ops`: operations of a controller for the NVMe core.

use super::{
    create,
    noio::without_io,
    Controller,
    Transport, //
};
use crate::bindings;
use kernel::prelude::*;

/// Returns the operations.
pub(super) fn ops<T: Transport>() -> bindings::nvme_ctrl_ops {
    bindings::nvme_ctrl_ops {
        name: T::NAME.as_char_ptr(),
        module: (&raw const bindings::__this_module).cast_mut(),
        flags: bindings::NVME_F_FABRICS | bindings::NVME_F_BLOCKING,
        reg_read32: Some(bindings::nvmf_reg_read32),
        reg_read64: Some(bindings::nvmf_reg_read64),
        reg_write32: Some(bindings::nvmf_reg_write32),
        subsystem_reset: Some(bindings::nvmf_subsystem_reset),
        get_address: Some(bindings::nvmf_get_address),
        get_virt_boundary: Some(bindings::kdapl_nvme_virt_boundary),
        free_ctrl: Some(free_ctrl::<T>),
        submit_async_event: Some(submit_async_event::<T>),
        delete_ctrl: Some(delete_ctrl::<T>),
        stop_ctrl: Some(stop_ctrl::<T>),
        ..pin_init::zeroed()
    }
}

/// # Safety
///
/// The NVMe core calls it once, after the last reference to a `Controller<T>`.
unsafe extern "C" fn free_ctrl<T: Transport>(ctrl: *mut bindings::nvme_ctrl) {
    create::unlist(ctrl);
    // SAFETY: By the safety requirement. `create` has made the controller from a box.
    let this = unsafe { KBox::from_raw(ctrl.cast::<Controller<T>>()) };
    if this.is_created.load(kernel::sync::atomic::Relaxed) {
        // SAFETY: A controller that was created owns its options.
        unsafe { bindings::nvmf_free_options((*ctrl).opts) };
    }
    drop(this);
}

/// # Safety
///
/// `ctrl` is that of a `Controller<T>`.
unsafe extern "C" fn submit_async_event<T: Transport>(ctrl: *mut bindings::nvme_ctrl) {
    // SAFETY: By the safety requirement.
    let this = unsafe { Controller::from_raw(ctrl) };
    without_io(|| T::submit_async_event(this));
}

/// # Safety
///
/// As of [`submit_async_event`]. It is called once, and no work of the controller follows.
unsafe extern "C" fn delete_ctrl<T: Transport>(ctrl: *mut bindings::nvme_ctrl) {
    // SAFETY: By the safety requirement.
    let this = unsafe { Controller::<T>::from_raw(ctrl) };
    T::tear_down(this);
    this.remove_tags();
}

/// # Safety
///
/// As of [`submit_async_event`].
unsafe extern "C" fn stop_ctrl<T: Transport>(ctrl: *mut bindings::nvme_ctrl) {
    // SAFETY: By the safety requirement.
    unsafe { Controller::<T>::from_raw(ctrl) }.end_work();
}
