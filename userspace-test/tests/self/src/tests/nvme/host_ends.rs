// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ends of ports, devices, controllers and modules under load of our host.

use super::each;
use super::load::{broken, undisturbed};
use crate::context::Context;
use crate::expect::same;
use crate::machine::{no_objects_left, DeviceGuard};
use crate::nvme::{Controller, Disk, Pair, PortSettings, Target, NQN};
use crate::tests::tests;
use anyhow::{ensure, Context as _, Result};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

tests! { #![Nvme]
    port_returns, 300, "A port that goes and comes back under load of our host causes no error";
    other_path, 300, "A port that stays away under load of our host, beside another path, causes no error";
    port_stays_away, 300, "Load of our host on a port that stays away ends with errors, and nothing hangs";
    reset_under_load, 300, "Resets under load of our host cause no error";
    deleted_under_load, 300, "A controller of our host that is deleted under load ends it";
    unload, 300, "Our host's module is unloaded under load, and loaded again";
    two_paths, 600, "Two paths of our host under load: one goes, then the rest goes in each order, and nothing hangs";
    target_unload, 300, "The target's module is unloaded and loaded under load of our host, which causes no error";
}

// These remove the device.
tests! { REMOVAL:
    #[Nvme]
    device_returns, 300, "A device that goes and comes back under load of our host causes no error";
    #[Nvme]
    device_stays_away, 300, "Load of our host on a device that stays away ends with errors, and nothing hangs";
    #[Nvme]
    deleted_without_device, 300, "A controller of our host whose device is removed during its deletion is deleted";
}

/// Options of a host that connects again.
const PATIENT: &str = ",ctrl_loss_tmo=120,reconnect_delay=1,keep_alive_tmo=5,nr_io_queues=2";

/// Options of a host that gives up after three seconds.
const IMPATIENT: &str = ",ctrl_loss_tmo=3,reconnect_delay=1,keep_alive_tmo=5,nr_io_queues=2";

fn connect(context: &Context, target: &Target, options: &str) -> Result<(Controller, Disk)> {
    let controller = target.connect(options)?;
    let disk = controller.disk(context)?;
    Ok((controller, disk))
}

/// Waits until a controller is gone.
fn gone(context: &Context, controller: &Controller) -> Result<()> {
    let start = Instant::now();
    while controller.exists() {
        ensure!(start.elapsed() < 6 * context.patience(), "the controller stays");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn port_returns(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        let (controller, disk) = connect(context, target, PATIENT)?;
        undisturbed(context, &disk, &target.disk()?, |load| {
            for _ in 0..context.count(5) {
                target.stop_listening();
                controller.wait_for("connecting", 6 * context.patience())?;
                target.listen()?;
                controller.wait_for("live", 6 * context.patience())?;
                load.progress(context)?;
            }
            Ok(())
        })
    })
}

fn other_path(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        let (controller, disk) = connect(context, target, IMPATIENT)?;
        let service = context.port() as u16;
        target.listen_at(2, service)?;
        let other = format!("traddr={},trsvcid={service},nqn={NQN}{PATIENT}", target.address);
        let other = target.connect_by(&other)?;
        undisturbed(context, &disk, &target.disk()?, |load| {
            target.stop_listening();
            gone(context, &controller)?;
            load.progress(context)?;
            same("state of the other path", other.attribute("state")?.as_str(), "live")
        })
    })
}

fn port_stays_away(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        let (controller, disk) = connect(context, target, IMPATIENT)?;
        broken(context, &disk, |_| {
            target.stop_listening();
            gone(context, &controller)
        })
    })
}

fn reset_under_load(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        let (controller, disk) = connect(context, target, PATIENT)?;
        undisturbed(context, &disk, &target.disk()?, |load| {
            for _ in 0..context.count(10) {
                controller.reset()?;
                controller.wait_for("live", 6 * context.patience())?;
                load.progress(context)?;
            }
            Ok(())
        })
    })
}

fn deleted_under_load(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        for _ in 0..context.count(10) {
            let (controller, disk) = connect(context, target, PATIENT)?;
            broken(context, &disk, |_| controller.delete())?;
        }
        Ok(())
    })
}

fn unload(context: &Context) -> Result<()> {
    for &pair in Pair::of_our_host() {
        let mut target = Target::of(context, pair, PortSettings::default())?;
        for _ in 0..context.count(3) {
            let (controller, disk) = connect(context, &target, PATIENT)?;
            broken(context, &disk, |_| {
                target.unload_host();
                Ok(())
            })?;
            ensure!(!controller.exists(), "the controller has no module");
            target.load_host()?;
        }
    }
    Ok(())
}

/// What ends the last path, after the first has lost its port.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// The path that works, then the one that connects again.
    Live,
    /// The other way round.
    Connecting,
    HostModule,
    /// Ports and module of the target, then the host's module.
    TargetModule,
}

const LAST: [Last; 4] = [Last::Live, Last::Connecting, Last::HostModule, Last::TargetModule];

/// Waits until commands complete on each path.
fn all_work(context: &Context, paths: &[&Controller]) -> Result<()> {
    let now = || paths.iter().map(|path| path.commands()).collect::<Result<Vec<_>>>();
    let before = now()?;
    context.until("all paths have commands", || {
        Ok(now()?.iter().zip(&before).all(|(now, before)| *now > before + 10))
    })
}

fn two_paths(context: &Context) -> Result<()> {
    for &pair in Pair::of_our_host() {
        for last in LAST {
            let target = Target::of(context, pair, PortSettings::default())?;
            lose_paths(context, target, last).with_context(|| format!("{pair:?}, {last:?}"))?;
            no_objects_left(context.settings.scale)?;
        }
    }
    Ok(())
}

fn lose_paths(context: &Context, mut target: Target, last: Last) -> Result<()> {
    let (first, disk) = connect(context, &target, PATIENT)?;
    let service = context.port() as u16;
    target.listen_at(2, service)?;
    let other = format!("traddr={},trsvcid={service},nqn={NQN}{PATIENT}", target.address);
    let other = target.connect_by(&other)?;
    Controller::use_all_paths()?;
    broken(context, &disk, |load| {
        all_work(context, &[&first, &other])?;
        target.stop_listening();
        first.wait_for("connecting", 6 * context.patience())?;
        load.progress(context)?;
        match last {
            Last::Live => other.delete().and_then(|()| first.delete())?,
            Last::Connecting => first.delete().and_then(|()| other.delete())?,
            Last::HostModule => target.unload_host(),
            Last::TargetModule => {
                Target::stop_listening_at(2);
                target.unload();
                target.unload_host();
            }
        }
        gone(context, &first)?;
        gone(context, &other)
    })
}

fn target_unload(context: &Context) -> Result<()> {
    for &pair in Pair::of_our_host() {
        let mut target = Target::of(context, pair, PortSettings::default())?;
        let (controller, disk) = connect(context, &target, PATIENT)?;
        let behind = target.disk()?;
        undisturbed(context, &disk, &behind, |load| {
            for _ in 0..context.count(5) {
                target.stop_listening();
                target.unload();
                target.load()?;
                target.listen()?;
                controller.wait_for("live", 6 * context.patience())?;
                load.progress(context)?;
            }
            Ok(())
        })
        .with_context(|| format!("with {pair:?}"))?;
    }
    Ok(())
}

fn device_returns(context: &Context) -> Result<()> {
    for &pair in Pair::of_our_host() {
        let target = Target::of(context, pair, PortSettings::default())?;
        let (controller, disk) = connect(context, &target, PATIENT)?;
        let device = DeviceGuard::new(context)?;
        undisturbed(context, &disk, &target.disk()?, |load| {
            for _ in 0..3 {
                device.delete()?;
                device.add()?;
                // The stock target does not listen on a device that returns.
                target.stop_listening();
                target.listen()?;
                load.progress(context)?;
                controller.wait_for("live", 6 * context.patience())?;
            }
            Ok(())
        })
        .with_context(|| format!("with {pair:?}"))?;
    }
    Ok(())
}

fn device_stays_away(context: &Context) -> Result<()> {
    for &pair in Pair::of_our_host() {
        let target = Target::of(context, pair, PortSettings::default())?;
        let (controller, disk) = connect(context, &target, IMPATIENT)?;
        let device = DeviceGuard::new(context)?;
        broken(context, &disk, |_| {
            device.delete()?;
            gone(context, &controller)
        })
        .with_context(|| format!("with {pair:?}"))?;
    }
    Ok(())
}

/// Time within which a command of a disk must be answered, in seconds.
const IO_TIMEOUT: &str = "/sys/module/nvme_core/parameters/io_timeout";

/// The deletion waits for a command whose device is removed. What it sends afterwards is refused.
fn deleted_without_device(context: &Context) -> Result<()> {
    for &pair in Pair::of_our_host() {
        // The delay of each block of the scan for partitions, too, so it is not scaled.
        let delay = Some(Duration::from_millis(1500));
        let target = Target::of(context, pair, PortSettings { delay, ..Default::default() })?;
        let before = fs::read_to_string(IO_TIMEOUT)?;
        fs::write(IO_TIMEOUT, "6")?;
        let connected = target.connect(PATIENT);
        fs::write(IO_TIMEOUT, before.trim())?;
        let controller = connected?;
        let path = controller.disk_path(6 * context.patience())?;
        let disk = Disk::open(&path)?;
        let device = DeviceGuard::new(context)?;
        thread::scope(|scope| {
            let write = scope.spawn(|| disk.try_write(0, &[1; 4096]));
            context.until("the disk writes", || target.writes())?;
            scope.spawn(|| controller.delete());
            context.until("the deletion begins", || {
                Ok(controller.attribute("state")?.starts_with("deleting"))
            })?;
            device.delete()?;
            gone(context, &controller)?;
            let written = write.join().expect("the thread does not panic");
            ensure!(written.is_err(), "the write was carried out");
            Ok::<_, anyhow::Error>(())
        })
        .with_context(|| format!("with {pair:?}"))?;
    }
    Ok(())
}
