// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ends of ports, devices, hosts and modules, most of them while a host writes.

use crate::context::Context;
use crate::expect::{failed_with, fails_saying, same};
use crate::machine::{self, DeviceGuard};
use crate::nvme::{Controller, Disk, Target};
use crate::tests::kernel::Loaded;
use crate::tests::tests;
use anyhow::{ensure, Context as _, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

tests! { #![Nvme]
    port_returns, 300, "A port that goes and comes back under a host's writes causes no error";
    port_stays_away, 300, "Writes to a port that stays away end with errors, and nothing hangs";
    reset_under_writes, 300, "Resets under writes cause no error";
    deleted_under_writes, 300, "A controller that is deleted under writes ends them";
    host_module_gone, 120, "The host's module is unloaded under writes, and loaded again";
    target_module_gone, 300, "The target's module is unloaded and loaded under writes, which cause no error";
    module_in_use, 120, "The target's module stays while a port uses it, and kdapl.ko while that is loaded";
    replaces_the_stock_target, 120, "The stock target takes the place of ours, and ours of the stock one";
    namespace_gone, 120, "A namespace that is disabled under writes ends them with errors";
}

// These remove the device.
tests! { REMOVAL:
    #[Nvme]
    device_returns, 300, "A port whose device goes under writes and comes back listens again";
}

/// How a host connects that has to connect again.
pub const PATIENT: &str = ",ctrl_loss_tmo=120,reconnect_delay=1,keep_alive_tmo=5";

/// Writer of blocks, each with its number, and then reader of them.
pub struct Writer<'a> {
    stop: &'a AtomicBool,
    written: &'a AtomicUsize,
    thread: ScopedJoinHandle<'a, std::io::Result<usize>>,
}

const BLOCK: usize = 8192;
const BLOCKS: usize = 1000;

fn write_all(disk: &Disk, stop: &AtomicBool, written: &AtomicUsize) -> std::io::Result<usize> {
    let mut number = 0;
    while !stop.load(SeqCst) {
        let bytes = [number as u8; BLOCK];
        disk.try_write(number % BLOCKS * BLOCK, &bytes)?;
        number += 1;
        written.store(number, SeqCst);
    }
    Ok(number)
}

impl Writer<'_> {
    /// Waits until some more blocks were written.
    pub fn progress(&self, context: &Context) -> Result<()> {
        let before = self.written.load(SeqCst);
        let start = Instant::now();
        while self.written.load(SeqCst) < before + 10 {
            ensure!(!self.thread.is_finished(), "the writer has ended");
            ensure!(start.elapsed() < 6 * context.patience(), "no block is written");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn finish(self) -> Result<std::io::Result<usize>> {
        self.stop.store(true, SeqCst);
        self.thread.join().map_err(|_| anyhow::anyhow!("the writer has panicked"))
    }
}

/// Disturbs a thread that writes. Returns its outcome.
fn under_writes(
    context: &Context,
    disk: &Disk,
    disturb: impl FnOnce(&Writer<'_>) -> Result<()>,
) -> Result<std::io::Result<usize>> {
    let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let thread = scope.spawn(|| write_all(disk, &stop, &written));
        let writer = Writer { stop: &stop, written: &written, thread };
        let disturbed = writer.progress(context).and_then(|()| disturb(&writer));
        let outcome = writer.finish()?;
        disturbed.with_context(|| format!("the writer: {outcome:?}"))?;
        Ok(outcome)
    })
}

/// Disturbs a thread that writes, and compares the blocks with the target's own disk.
pub fn unnoticed(
    context: &Context,
    target: &Target,
    disk: &Disk,
    disturb: impl FnOnce(&Writer<'_>) -> Result<()>,
) -> Result<()> {
    let written = under_writes(context, disk, disturb)??;
    let behind = target.disk()?;
    for number in written.saturating_sub(BLOCKS)..written {
        let bytes = behind.read(number % BLOCKS * BLOCK, BLOCK)?;
        ensure!(bytes == [number as u8; BLOCK], "block {number} of {written} is wrong");
    }
    Ok(())
}

fn patient(context: &Context, target: &Target) -> Result<(Controller, Disk)> {
    let controller = target.connect(PATIENT)?;
    let disk = controller.disk(context)?;
    Ok((controller, disk))
}

fn port_returns(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    let (controller, disk) = patient(context, &target)?;
    unnoticed(context, &target, &disk, |writer| {
        for _ in 0..context.count(20) {
            target.stop_listening();
            controller.wait_for("connecting", context.patience())?;
            target.listen()?;
            controller.wait_for("live", 6 * context.patience())?;
            writer.progress(context)?;
        }
        Ok(())
    })
}

/// Checks that a write has failed because its disk was removed. One that begins after the removal
/// finds that the disk has no capacity.
fn fails_without_disk(what: &str, outcome: std::io::Result<usize>) -> Result<()> {
    match outcome {
        Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => Ok(()),
        other => failed_with(what, other, libc::EIO),
    }
}

fn port_stays_away(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    let controller = target.connect(",ctrl_loss_tmo=3,reconnect_delay=1,keep_alive_tmo=5")?;
    let disk = controller.disk(context)?;
    let outcome = under_writes(context, &disk, |writer| {
        target.stop_listening();
        let start = Instant::now();
        while !writer.thread.is_finished() {
            ensure!(start.elapsed() < 12 * context.patience(), "the writes hang");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    })?;
    fails_without_disk("a write without a port", outcome)
}

fn reset_under_writes(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    let (controller, disk) = patient(context, &target)?;
    unnoticed(context, &target, &disk, |writer| {
        for _ in 0..context.count(30) {
            controller.reset()?;
            controller.wait_for("live", 6 * context.patience())?;
            writer.progress(context)?;
        }
        Ok(())
    })
}

fn deleted_under_writes(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    for _ in 0..context.count(30) {
        let controller = target.connect("")?;
        let disk = controller.disk(context)?;
        let outcome = under_writes(context, &disk, |_| controller.delete())?;
        fails_without_disk("a write to a deleted controller", outcome)?;
    }
    Ok(())
}

fn host_module_gone(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    for _ in 0..3 {
        let controller = target.connect("")?;
        let disk = controller.disk(context)?;
        let outcome = under_writes(context, &disk, |_| machine::command("rmmod nvme-rdma"));
        machine::command("modprobe nvme-rdma")?;
        fails_without_disk("a write without a host", outcome?)?;
    }
    Ok(())
}

fn target_module_gone(context: &Context) -> Result<()> {
    let mut target = Target::new(context)?;
    let (controller, disk) = patient(context, &target)?;
    let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let thread = scope.spawn(|| write_all(&disk, &stop, &written));
        let writer = Writer { stop: &stop, written: &written, thread };
        let mut disturb = || -> Result<()> {
            for _ in 0..context.count(20) {
                writer.progress(context)?;
                target.stop_listening();
                target.unload();
                target.load()?;
                target.listen()?;
                controller.wait_for("live", 6 * context.patience())?;
            }
            writer.progress(context)
        };
        let disturbed = disturb();
        let outcome = writer.finish()?;
        disturbed.with_context(|| format!("the writer: {outcome:?}"))?;
        outcome?;
        Ok(())
    })
}

fn module_in_use(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    // kdapl_nvmet.ko serves a port, and uses kdapl.ko.
    for module in ["kdapl_nvmet", "kdapl"] {
        fails_saying("in use", machine::command(&format!("rmmod {module}")))?;
    }
    let controller = target.connect("")?;
    same("state", controller.attribute("state")?.as_str(), "live")
}

fn replaces_the_stock_target(context: &Context) -> Result<()> {
    let mut target = Target::new(context)?;
    target.stop_listening();
    // The kernel has one transport of this type.
    fails_saying("Invalid argument", machine::command("modprobe nvmet-rdma"))?;
    target.unload();
    machine::command("modprobe nvmet-rdma")?;
    let stock = stock(context, &target);
    target.stop_listening();
    machine::command("rmmod nvmet-rdma")?;
    stock?;
    target.load()?;
    target.listen()?;
    let controller = target.connect("")?;
    same("state", controller.attribute("state")?.as_str(), "live")
}

/// Uses the stock target, beside which ours is refused.
fn stock(context: &Context, target: &Target) -> Result<()> {
    target.listen()?;
    fails_saying("Invalid parameters", Loaded::new("kdapl_nvmet", ""))?;
    let controller = target.connect("")?;
    controller.disk(context)?.write(0, &[1; 4096])
}

fn namespace_gone(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    let controller = target.connect("")?;
    let disk = controller.disk(context)?;
    let outcome = under_writes(context, &disk, |writer| {
        target.enable(false)?;
        let start = Instant::now();
        while !writer.thread.is_finished() {
            ensure!(start.elapsed() < 6 * context.patience(), "the writes hang");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    })?;
    fails_without_disk("a write without a namespace", outcome)?;
    target.enable(true)?;
    drop(disk);
    // The host looks for the namespace when it is told.
    let start = Instant::now();
    while let Err(error) = controller.disk(context).and_then(|disk| disk.write(0, &[1; 4096])) {
        ensure!(start.elapsed() < 6 * context.patience(), "{error:?}");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn device_returns(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    let device = DeviceGuard::new(context)?;
    for _ in 0..context.count(20) {
        let controller = connected(context, &target)?;
        let disk = controller.disk(context)?;
        let outcome = under_writes(context, &disk, |_| device.delete())?;
        // The stock host deletes its controllers on the device.
        fails_without_disk("a write without a device", outcome)?;
        device.add()?;
    }
    connected(context, &target)?.disk(context)?.write(0, &[1; 4096])
}

/// Connects as soon as the port listens.
fn connected(context: &Context, target: &Target) -> Result<Controller> {
    let start = Instant::now();
    loop {
        match target.connect("") {
            Err(error) if start.elapsed() > 6 * context.patience() => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(50)),
            connected => return connected,
        }
    }
}
