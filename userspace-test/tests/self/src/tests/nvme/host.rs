// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections of our host to the stock target and to ours.

use super::io::run;
use super::{connect, each};
use crate::context::Context;
use crate::expect::{failed_with, same};
use crate::machine::{self, KernelLog};
use crate::nvme::{Controller, Disk, Pair, PortSettings, Target, NQN};
use crate::tests::tests;
use anyhow::{ensure, Context as _, Result};
use std::thread;
use std::time::Duration;

tests! { #![Nvme]
    connects, 120, "Our host connects to the stock target and to ours, and disconnects";
    default_address, 120, "Our host finds its adapter by route or by host_traddr, and the controller at port 4420";
    queues, 120, "Our host has several queues of any depth, and no more than the target";
    smaller_queues, 120, "Our host uses a controller whose queues are smaller after a reconnect";
    refused, 120, "Our host reports why it is not connected, and nothing is left of the attempt";
    reset, 120, "Our host resets a controller, whose disk stays";
    many_times, 300, "Our host connects and disconnects many times, and nothing is left";
    events, 120, "Our host notices a namespace that the target enables or disables";
    nvme_cli, 120, "nvme-cli discovers, connects, lists, resets and disconnects with our host";
    beside_the_stock_host, 120, "Our host and the stock host use one target at a time";
}

fn connects(context: &Context) -> Result<()> {
    connect::connect_and_disconnect(context, Pair::of_our_host(), "kdapl")
}

fn default_address(context: &Context) -> Result<()> {
    let mut target = Target::of(context, Pair::of_our_host()[0], PortSettings::default())?;
    target.stop_listening();
    target.port = 4420;
    target.listen()?;
    let address = target.address;
    for from in [String::new(), format!(",host_traddr={address}")] {
        let controller = target.connect_by(&format!("traddr={address},nqn={NQN}{from}"))?;
        same("state", controller.attribute("state")?.as_str(), "live")?;
    }
    Ok(())
}

fn queues(context: &Context) -> Result<()> {
    let rows = [(1, 16, 16), (2, 128, 128), (4, 32, 32), (1, 1024, 128)];
    connect::have_queues(context, Pair::of_our_host(), &rows)
}

/// The tags beyond the depth stay in use, and more commands are outstanding than it allows.
fn smaller_queues(context: &Context) -> Result<()> {
    for &pair in Pair::of_our_host() {
        let delay = Some(Duration::from_millis(20));
        let settings = PortSettings { delay, ..Default::default() };
        let mut target = Target::of(context, pair, settings)?;
        let options = ",nr_io_queues=1,queue_size=128,reconnect_delay=1,ctrl_loss_tmo=120";
        let controller = target.connect(options)?;
        let disk = controller.disk(context)?;
        target.stop_listening();
        controller.wait_for("connecting", 6 * context.patience())?;
        target.settings.depth = Some(16);
        target.listen()?;
        controller.wait_for("live", 6 * context.patience())?;
        same("last index", controller.attribute("sqsize")?.as_str(), "15")?;
        let write = |number: u8| {
            let place = usize::from(number) << 13;
            disk.write(place, &[number; 8192])?;
            same("byte", disk.read(place, 8192)?[8191], number)
        };
        let write = &write;
        thread::scope(|scope| {
            let threads: Vec<_> =
                (1..64).map(|number| scope.spawn(move || write(number))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })
        .with_context(|| format!("with {pair:?}"))?;
    }
    Ok(())
}

/// Connects with options that must fail with this errno.
fn fails_with(target: &Target, options: &str, errno: i32) -> Result<()> {
    failed_with(options, target.connect_by(options), errno)
}

fn refused(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        let (address, port) = (target.address, target.port);
        let before = machine::objects()?;
        let to = |nqn: &str| format!("traddr={address},trsvcid={port},nqn={nqn}");
        // The target answers Connect with a status.
        fails_with(target, &to("nqn.2026-11.test:nothing"), libc::EIO)?;
        fails_with(target, &format!("traddr={address},trsvcid=1,nqn={NQN}"), libc::ECONNRESET)?;
        fails_with(target, &format!("traddr=elsewhere,nqn={NQN}"), libc::EINVAL)?;
        fails_with(target, &format!("nqn={NQN}"), libc::EINVAL)?;
        let unknown = format!("{},host_traddr=10.9.9.9", to(NQN));
        fails_with(target, &unknown, libc::ENODEV)?;
        // Our target has its own, and the connections that were refused end later.
        context.until("all objects are gone", || Ok(machine::objects()? == before))?;
        let controller = target.connect("")?;
        fails_with(target, &to(NQN), libc::EALREADY)?;
        controller.disk(context)?.write(0, &[9; 4096])
    })
}

fn reset(context: &Context) -> Result<()> {
    connect::reset_and_go_on(context, Pair::of_our_host())
}

fn many_times(context: &Context) -> Result<()> {
    connect::connect_many_times(context, Pair::of_our_host(), context.count(30))
}

/// A change of the namespaces is an asynchronous event, upon which the host scans them.
fn events(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        let controller = target.connect("")?;
        let path = controller.disk_path(context.patience())?;
        for _ in 0..3 {
            target.enable(false)?;
            context.until("the disk goes", || Ok(!path.exists()))?;
            enabled(context, target, &controller)?.write(0, &[3; 4096])?;
        }
        Ok(())
    })
}

/// Enables the namespace, and returns its disk.
///
/// The kernel's target sends the event before it has enabled the namespace (`nvmet_ns_enable()`),
/// so a host that scans at once does not find it. Then the namespace is enabled once more.
fn enabled(context: &Context, target: &Target, controller: &Controller) -> Result<Disk> {
    const FURTHER_ATTEMPTS: usize = 3;
    for _ in 0..FURTHER_ATTEMPTS {
        target.enable(true)?;
        if controller.disk_path(context.scaled(Duration::from_millis(300))).is_ok() {
            return controller.disk(context);
        }
        target.enable(false)?;
    }
    target.enable(true)?;
    controller.disk(context)
}

fn nvme_cli(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        let (address, service) = (target.address.to_string(), target.port.to_string());
        let to = ["-t", "kdapl", "-a", &address, "-s", &service];
        let found = run("nvme", &[&["discover"][..], &to].concat())?;
        ensure!(found.contains(NQN), "the subsystem is not in:\n{found}");
        let connected = run("nvme", &[&["connect"][..], &to, &["-n", NQN]].concat())?;
        let device = connected.split_whitespace().last().context("no output")?.to_string();
        let paths = run("nvme", &["list-subsys"])?;
        ensure!(paths.contains(&format!("{device} kdapl")), "no path of kdapl in:\n{paths}");
        run("nvme", &["reset", &format!("/dev/{device}")])?;
        let identity = run("nvme", &["id-ctrl", &format!("/dev/{device}")])?;
        ensure!(identity.contains("Linux"), "no model in:\n{identity}");
        run("nvme", &["disconnect", "-n", NQN])?;
        let paths = run("nvme", &["list-subsys"])?;
        ensure!(!paths.contains("kdapl"), "a path is left:\n{paths}");
        Ok(())
    })
}

fn beside_the_stock_host(context: &Context) -> Result<()> {
    let target = Target::of(context, Pair::Ours, PortSettings::default())?;
    let (address, port) = (target.address, target.port);
    let ours = target.connect("")?;
    let log = KernelLog::from_now()?;
    let stock = format!("transport=rdma,traddr={address},trsvcid={port},nqn={NQN}");
    let stock = format!(
        "{stock},hostnqn=nqn.2026-11.test:stock,hostid=00000001-0000-0000-0000-000000000000"
    );
    let stock = target.connect_as(&stock)?;
    same("transport", stock.attribute("transport")?.as_str(), "rdma")?;
    let disk = ours.disk(context)?;
    disk.write(0, &[4; 4096])?;
    drop(stock);
    same("byte", disk.read(0, 512)?[0], 4)?;
    let text = log.rest()?;
    ensure!(!text.contains("error recovery"), "a connection was lost:\n{text}");
    Ok(())
}
