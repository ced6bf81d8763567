// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Recovery of our host that begins while the NVMe core still starts the controller.

use super::fake::{serve, Command, Queue, Reaction, CONTENT, FABRICS, RECEIVES, SET_FEATURES};
use crate::context::Context;
use crate::expect::same;
use crate::nvme::{Disk, Pair, PortSettings, Target, NQN};
use crate::tests::kernel::Loaded;
use crate::tests::tests;
use anyhow::{Context as _, Result};
use libkdapl::{Close, Ep};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Mutex;

tests! { #![Nvme]
    amid_start, 120, "An I/O queue that ends while the NVMe core starts the controller is recovered, and its requests are let through once";
}

/// Feature that configures asynchronous events. The NVMe core sets it when it starts a controller.
const ASYNC_EVENTS: u8 = 0x0b;

const LENGTH: usize = 4096;

/// Controller that ends its I/O queue amid the second start.
struct Controller {
    /// Delays the block layer when it quiesces the queues of a tag set.
    slow: Loaded,
    /// Endpoint of the I/O queue.
    io: Mutex<Option<Ep>>,
    starts: AtomicUsize,
}

impl Controller {
    fn end_io(&self) -> Result<()> {
        let ep = self.io.lock().expect("no panic").take().context("there is no I/O queue")?;
        Ok(ep.disconnect(Close::Abrupt)?)
    }

    /// Ends the I/O queue before the answer to the command of a start, and waits until the host
    /// quiesces its queues.
    fn treat(&self, context: &Context, queue: &Queue, command: &Command) -> Result<Reaction> {
        let feature = command.number(40) as u8;
        match (queue.number, command.opcode()) {
            (1, FABRICS) => *self.io.lock().expect("no panic") = Some(queue.end.ep.clone()),
            (0, SET_FEATURES) if feature == ASYNC_EVENTS => {
                if self.starts.fetch_add(1, SeqCst) == 1 {
                    let before = self.slow.parameter("calls")?;
                    self.end_io()?;
                    context.until("the host quiesces its queues", || {
                        Ok(self.slow.parameter("calls")? > before)
                    })?;
                }
            }
            _ => {}
        }
        Ok(Reaction::Usual)
    }
}

fn amid_start(context: &Context) -> Result<()> {
    let target = Target::of(context, Pair::of_our_host()[0], PortSettings::default())?;
    let controller = Controller {
        slow: Loaded::new("kdapl_slow_quiesce", "delay_ms=200")?,
        io: Mutex::new(None),
        starts: AtomicUsize::new(0),
    };
    let hook = |context: &Context, queue: &Queue, command: &Command| {
        controller.treat(context, queue, command)
    };
    serve(context, RECEIVES, &hook, |port| {
        let options = "nr_io_queues=1,reconnect_delay=1,ctrl_loss_tmo=120";
        let options = format!("traddr={},trsvcid={port},nqn={NQN},{options}", target.address);
        let host = target.connect_by(&options)?;
        let disk = Disk::open(&host.disk_path(context.patience())?)?;
        controller.end_io()?;
        context.until("the third start", || Ok(controller.starts.load(SeqCst) >= 3))?;
        same("byte", disk.read(0, LENGTH)?[0], CONTENT)
    })?;
    controller.slow.unload()
}
