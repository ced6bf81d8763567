// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `struct blk_mq_ops` of the tag sets.

use super::{
    noio::without_io,
    request::{
        self,
        Pdu,
        Request, //
    },
    Controller,
    Refused,
    State,
    Transport, //
};
use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    bindings::{
        blk_eh_timer_return,
        blk_eh_timer_return_BLK_EH_DONE as EH_DONE,
        blk_eh_timer_return_BLK_EH_RESET_TIMER as EH_RESET_TIMER,
        blk_mq_hw_ctx,
        blk_mq_ops,
        blk_mq_queue_data,
        blk_mq_tag_set,
        blk_status_t, //
    },
    ffi::{
        c_int,
        c_uint, //
    },
    prelude::*, //
};

/// Returns the operations of the admin queue.
pub(super) fn admin_ops<T: Transport>() -> blk_mq_ops {
    blk_mq_ops {
        queue_rq: Some(queue_rq::<T, true>),
        complete: Some(complete),
        init_request: Some(init_request),
        timeout: Some(timeout::<T, true>),
        ..pin_init::zeroed()
    }
}

/// Returns the operations of I/O queues.
pub(super) fn io_ops<T: Transport>() -> blk_mq_ops {
    blk_mq_ops {
        queue_rq: Some(queue_rq::<T, false>),
        complete: Some(complete),
        init_request: Some(init_request),
        timeout: Some(timeout::<T, false>),
        map_queues: Some(map_queues::<T>),
        ..pin_init::zeroed()
    }
}

/// Returns the queue of a request or a hardware context.
///
/// # Safety
///
/// `hctx` is valid.
unsafe fn queue_of<const ADMIN: bool>(hctx: *mut blk_mq_hw_ctx) -> usize {
    if ADMIN {
        return 0;
    }
    // SAFETY: By the safety requirement.
    let number = unsafe { (*hctx).queue_num } as usize;
    number + 1
}

/// Returns the controller of a request.
///
/// # Safety
///
/// `rq` is a request of a tag set of a `Controller<T>`.
unsafe fn controller_of<'a, T: Transport>(rq: *mut bindings::request) -> &'a Controller<T> {
    // SAFETY: By the safety requirement the data begin with a `struct nvme_request`, whose
    // controller `init_request` has set.
    unsafe {
        let request = bindings::blk_mq_rq_to_pdu(rq).cast::<bindings::nvme_request>();
        Controller::from_raw((*request).ctrl)
    }
}

/// # Safety
///
/// The block layer calls it with a request of the tag set.
unsafe extern "C" fn queue_rq<T: Transport, const ADMIN: bool>(
    hctx: *mut blk_mq_hw_ctx,
    bd: *const blk_mq_queue_data,
) -> blk_status_t {
    // SAFETY: By the safety requirement.
    let (rq, queue) = unsafe { ((*bd).rq, queue_of::<ADMIN>(hctx)) };
    // SAFETY: As above.
    let ctrl = unsafe { controller_of::<T>(rq) };
    let is_live = ctrl.transport().is_live(queue);
    // SAFETY: As above.
    if !unsafe { bindings::kdapl_nvme_check_ready(ctrl.raw(), rq, is_live) } {
        // SAFETY: As above.
        return unsafe { bindings::nvme_fail_nonready_command(ctrl.raw(), rq) };
    }
    // SAFETY: The data of the request's queue are its namespace, or NULL.
    let status = unsafe { bindings::nvme_setup_cmd((*(*hctx).queue).queuedata.cast(), rq) };
    let (0, Some(rq)) = (status, NonNull::new(rq)) else {
        return status;
    };
    // SAFETY: The block layer has passed the request, and its command was set up.
    let request = unsafe { Request::start(rq) };
    match without_io(|| ctrl.transport().submit(queue, request)) {
        Ok(()) => {}
        Err(Refused::Busy(request)) => return request.retry_later(),
        Err(Refused::Ended(request)) if is_being_stopped(ctrl, &request) => {
            return request.retry_later()
        }
        Err(Refused::Ended(request) | Refused::Path(request)) => request.fail_path(),
    }
    bindings::KDAPL_NVME_OK as blk_status_t
}

/// Returns whether the recovery or a reset is about to stop the queue of a request, whose
/// connection has ended. Neither waits for the request, which has no time-out if it is tried again.
fn is_being_stopped<T: Transport>(ctrl: &Controller<T>, request: &Request) -> bool {
    let is_expected = matches!(ctrl.state(), State::LIVE | State::RESETTING);
    is_expected && !request.is_passthrough()
}

/// # Safety
///
/// The block layer calls it with a request that was completed.
unsafe extern "C" fn complete(rq: *mut bindings::request) {
    // SAFETY: The block layer is a user of a request until it is completed.
    unsafe { request::put(rq) };
}

/// # Safety
///
/// The block layer calls it with a new request of the tag set.
unsafe extern "C" fn init_request(
    set: *mut blk_mq_tag_set,
    rq: *mut bindings::request,
    _hctx_idx: c_uint,
    _numa_node: c_int,
) -> c_int {
    // SAFETY: By the safety requirement. `driver_data` of our tag sets is the controller.
    unsafe { Pdu::init(rq, (*set).driver_data.cast()) };
    0
}

/// # Safety
///
/// The block layer calls it with a request that was started.
unsafe extern "C" fn timeout<T: Transport, const ADMIN: bool>(
    rq: *mut bindings::request,
) -> blk_eh_timer_return {
    // SAFETY: By the safety requirement.
    let ctrl = unsafe { controller_of::<T>(rq) };
    // SAFETY: As above.
    let queue = unsafe { queue_of::<ADMIN>((*rq).mq_hctx) };
    dev_warn!(ctrl.device(), "a command of queue {queue} has timed out\n");
    if ctrl.state() == State::LIVE {
        // The recovery cancels all requests.
        ctrl.start_recovery();
        return EH_RESET_TIMER;
    }
    // The queue may be one that is being set up or torn down, by a thread that waits for this
    // request.
    ctrl.transport().stop(queue);
    // SAFETY: By the safety requirement.
    if unsafe { request::revoke(rq) } {
        // SAFETY: As above.
        unsafe { bindings::kdapl_nvme_timed_out(rq) };
    }
    EH_DONE
}

/// # Safety
///
/// The block layer calls it with the I/O tag set.
unsafe extern "C" fn map_queues<T: Transport>(set: *mut blk_mq_tag_set) {
    // SAFETY: By the safety requirement. `driver_data` is the controller.
    let ctrl = unsafe { Controller::<T>::from_raw((*set).driver_data.cast()) };
    // SAFETY: The numbers were set before the tag set was allocated.
    unsafe { bindings::nvmf_map_queues(set, ctrl.raw(), ctrl.io_queues.get().cast()) };
}
