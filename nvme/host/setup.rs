// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Set-up, recovery and end of a controller.

use crate::{
    bindings,
    connect::Size,
    core::{
        Addresses,
        Controller,
        Limits,
        Outcome,
        Refused,
        Request,
        State,
        Transport, //
    },
    device::Device,
    queue::Queue,
    wire::{
        ADMIN_DEPTH,
        COMMAND_SIZE,
        MAX_DEPTH, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// Largest number of bytes of data in a capsule. They are copied.
const MAX_IN_CAPSULE: usize = 4096;

/// Data of a controller.
pub(crate) struct Host {
    addresses: Addresses,
    queues: KVec<Arc<Queue>>,
    /// Adapter of the present connections. Its lock excludes nvme_start_ctrl() and close_io() from
    /// each other: the first unquiesces the I/O queues, the second needs them quiesced.
    device: Pin<KBox<Mutex<Option<Arc<Device>>>>>,
}

/// Converts an error for the NVMe core.
fn errno(error: Error) -> i32 {
    error.to_errno()
}

impl Host {
    fn admin(&self) -> Result<&Arc<Queue>, i32> {
        self.queues.first().ok_or(errno(EINVAL))
    }

    /// Returns the I/O queues that the controller has agreed to.
    fn io<'a>(&'a self, ctrl: &Controller<Self>) -> impl Iterator<Item = &'a Arc<Queue>> {
        self.queues.iter().take(ctrl.queue_count()).skip(1)
    }
}

impl Transport for Host {
    const NAME: &'static CStr = c"kdapl";

    fn new(addresses: Addresses, count: usize) -> Result<Self> {
        let mut queues = KVec::with_capacity(count, GFP_KERNEL)?;
        for number in 0..u16::try_from(count)? {
            queues.push(Queue::new(number)?, GFP_KERNEL)?;
        }
        let device = new_mutex!(None, "nvme_kdapl::Host::device");
        Ok(Self {
            addresses,
            queues,
            device: KBox::pin_init(device, GFP_KERNEL)?,
        })
    }

    fn set_up(ctrl: &Controller<Self>) -> Outcome {
        let outcome = open_admin(ctrl)
            .and_then(|()| agree(ctrl))
            .and_then(|()| open_io(ctrl))
            .and_then(|()| go_live(ctrl));
        outcome.inspect_err(|_| {
            let device = close_io(ctrl);
            ctrl.stop_keep_alive();
            close_admin(ctrl);
            drop(device);
        })
    }

    fn tear_down(ctrl: &Controller<Self>) {
        shut_down(ctrl, true);
    }

    fn stop(&self, queue: usize) {
        if let Some(queue) = self.queues.get(queue) {
            queue.stop();
        }
    }

    fn is_live(&self, queue: usize) -> bool {
        self.queues.get(queue).is_some_and(|queue| queue.is_live())
    }

    fn submit(&self, queue: usize, request: Request) -> Result<(), Refused> {
        match self.queues.get(queue) {
            Some(queue) => queue.submit(request),
            None => Err(Refused::Path(request)),
        }
    }

    fn submit_async_event(ctrl: &Controller<Self>) {
        let submitted = ctrl
            .transport()
            .admin()
            .map(|queue| queue.submit_async_event());
        if let Ok(Err(error)) = submitted {
            dev_err!(
                ctrl.device(),
                "the command for asynchronous events is delayed: {error:?}\n"
            );
        }
    }

    fn recover(ctrl: &Controller<Self>) {
        ctrl.stop_keep_alive();
        // First, because nvme_start_ctrl() may wait for a command of the admin queue.
        close_admin(ctrl);
        drop(close_io(ctrl));
        // Again, because nvme_start_ctrl() may have started them meanwhile.
        ctrl.stop_keep_alive();
        ctrl.end_async_event();
        ctrl.stop_authentication();
        // The state does not change if the controller is being deleted.
        if ctrl.change_state(State::CONNECTING) {
            ctrl.reconnect_or_remove(0);
        }
    }

    fn reconnect(ctrl: &Controller<Self>) {
        ctrl.count_reconnect();
        let (number, most) = (ctrl.nr_reconnects(), ctrl.max_reconnects());
        match Self::set_up(ctrl) {
            Ok(()) => {
                dev_info!(
                    ctrl.device(),
                    "Successfully reconnected ({number} attempts)\n"
                );
                ctrl.forget_reconnects();
            }
            Err(status) => {
                dev_info!(ctrl.device(), "Failed reconnect attempt {number}/{most}\n");
                ctrl.reconnect_or_remove(status);
            }
        }
    }

    fn reset(ctrl: &Controller<Self>) {
        ctrl.stop();
        shut_down(ctrl, false);
        if !ctrl.change_state(State::CONNECTING) {
            return;
        }
        if let Err(status) = Self::set_up(ctrl) {
            ctrl.count_reconnect();
            ctrl.reconnect_or_remove(status);
        }
    }
}

/// Opens the adapter, connects the admin queue, and identifies the controller.
fn open_admin(ctrl: &Controller<Host>) -> Outcome {
    let host = ctrl.transport();
    let device = Device::open(&host.addresses).map_err(errno)?;
    *host.device.lock() = Some(device.clone());
    let size = Size {
        depth: ADMIN_DEPTH,
        tags: ADMIN_DEPTH,
        capsule: COMMAND_SIZE,
    };
    let queue = host.admin()?;
    queue
        .connect(ctrl, &device, &host.addresses, size)
        .map_err(errno)?;
    ctrl.connect_queue(0)?;
    queue.go_live();
    ctrl.enable()?;
    ctrl.set_limits(&Limits {
        max_segments: device.data_pages(),
    });
    ctrl.finish_init()
}

/// Checks the features of the controller, and reduces the depth of the queues to its own.
fn agree(ctrl: &Controller<Host>) -> Outcome {
    if ctrl.icdoff() != 0 {
        dev_err!(ctrl.device(), "icdoff is not supported\n");
        return Err(-(bindings::EOPNOTSUPP as i32));
    }
    if ctrl.sgls() & bindings::NVME_CTRL_SGLS_KSDBDS == 0 {
        dev_err!(
            ctrl.device(),
            "the controller does not support keyed SGLs\n"
        );
        return Err(-(bindings::EOPNOTSUPP as i32));
    }
    let asked = ctrl.queue_size();
    let depth = ctrl
        .sqsize()
        .saturating_add(1)
        .min(MAX_DEPTH)
        .min(ctrl.maxcmd());
    if usize::from(depth) < asked {
        dev_warn!(ctrl.device(), "queue_size {asked} is reduced to {depth}\n");
    }
    ctrl.set_sqsize(depth.saturating_sub(1));
    Ok(())
}

/// Returns the size of I/O queues. A tag set that exists keeps its depth, also if the controller
/// now has smaller queues.
fn io_size(ctrl: &Controller<Host>) -> Size {
    let in_capsule = match ctrl.sgls() & bindings::NVME_CTRL_SGLS_SAOS {
        0 => 0,
        _ => (ctrl.ioccsz() as usize * 16).saturating_sub(COMMAND_SIZE),
    };
    Size {
        depth: ctrl.sqsize() + 1,
        tags: ctrl.sqsize().max(ctrl.tag_depth()) + 1,
        capsule: COMMAND_SIZE + in_capsule.min(MAX_IN_CAPSULE),
    }
}

/// Connects the I/O queues, if the controller has any.
fn open_io(ctrl: &Controller<Host>) -> Outcome {
    if ctrl.queue_count() <= 1 {
        return Ok(());
    }
    ctrl.set_queue_count()?;
    let (host, size) = (ctrl.transport(), io_size(ctrl));
    let device = host.device.lock().clone().ok_or(errno(ENODEV))?;
    for queue in host.io(ctrl) {
        queue
            .connect(ctrl, &device, &host.addresses, size)
            .map_err(errno)?;
    }
    let is_new = ctrl.alloc_io_tags()?;
    // Only queues that the tag set has can carry a command.
    let tagged = ctrl.tagged_queues();
    host.io(ctrl)
        .take(tagged)
        .try_for_each(|queue| start(ctrl, queue))?;
    if is_new {
        return Ok(());
    }
    ctrl.update_queues()?;
    host.io(ctrl)
        .skip(tagged)
        .try_for_each(|queue| start(ctrl, queue))
}

/// Connects an I/O queue to the controller.
fn start(ctrl: &Controller<Host>, queue: &Queue) -> Outcome {
    ctrl.connect_queue(queue.number.into())?;
    queue.go_live();
    Ok(())
}

/// Returns whether a connection has ended.
fn has_ended(ctrl: &Controller<Host>) -> bool {
    let host = ctrl.transport();
    let mut queues = host.queues.iter().take(ctrl.queue_count());
    queues.any(|queue| queue.has_ended())
}

fn go_live(ctrl: &Controller<Host>) -> Outcome {
    if has_ended(ctrl) {
        return Err(-(bindings::ECONNRESET as i32));
    }
    let device = ctrl.transport().device.lock();
    // The state does not change if the controller is being deleted.
    if !ctrl.change_state(State::LIVE) {
        return Err(errno(EINVAL));
    }
    ctrl.start();
    drop(device);
    // The end of a connection starts the recovery of a live controller only.
    if has_ended(ctrl) {
        ctrl.start_recovery();
    }
    Ok(())
}

/// Ends the connections of the I/O queues, and cancels their requests. New ones wait, or fail, as
/// the state of the controller says. Returns the adapter, to be closed after all connections.
fn close_io(ctrl: &Controller<Host>) -> Option<Arc<Device>> {
    let host = ctrl.transport();
    // Before the lock: nvme_start_ctrl() waits for passthrough commands, also of other controllers.
    // Those of a queue that has stopped fail at once.
    for queue in host.queues.iter().skip(1) {
        queue.stop();
    }
    let mut device = host.device.lock();
    ctrl.quiesce_io();
    ctrl.cancel_io();
    ctrl.unquiesce_io();
    device.take()
}

/// As [`close_io`], of the admin queue.
fn close_admin(ctrl: &Controller<Host>) {
    ctrl.quiesce_admin();
    ctrl.sync_admin();
    ctrl.transport().stop(0);
    ctrl.cancel_admin();
    ctrl.end_async_event();
    ctrl.unquiesce_admin();
}

/// Disconnects a controller that may still respond. If the thread that creates the controller still
/// starts it, and its admin queue has ended, this waits until the command of the start times out.
fn shut_down(ctrl: &Controller<Host>, shutdown: bool) {
    let device = close_io(ctrl);
    ctrl.quiesce_admin();
    ctrl.disable(shutdown);
    close_admin(ctrl);
    drop(device);
}
