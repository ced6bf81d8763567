// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections of hosts: discovery, queues, resets, ends.

use super::{each, STOCK_HOST};
use crate::context::Context;
use crate::expect::{failed_with, same};
use crate::harness::skip;
use crate::machine::command;
use crate::nvme::{Pair, PortSettings, Target, NQN};
use crate::tests::tests;
use anyhow::{ensure, Context as _, Result};
use std::process::Command;

tests! { #![Nvme]
    connects, 120, "An nvme-rdma host connects to the target, and disconnects";
    discovery, 120, "The discovery controller lists the subsystem with its address";
    queues, 120, "A host has several queues of any depth";
    unknown_subsystem, 120, "A host that asks for an unknown subsystem is refused, and others do not notice";
    reset, 120, "A controller is reset, and its disk stays";
    many_times, 300, "Hosts connect and disconnect many times, and nothing is left";
    refused_ports, 120, "Ports with an address of no device, or with any address, are not enabled";
    iwarp_port, 60, "A port at the address of an iWARP device is not enabled";
    several_hosts, 120, "Several controllers use the target at a time";
}

fn connects(context: &Context) -> Result<()> {
    connect_and_disconnect(context, &STOCK_HOST, "rdma")
}

/// Connects by a transport, moves blocks, and disconnects.
pub(super) fn connect_and_disconnect(
    context: &Context,
    pairs: &[Pair],
    transport: &str,
) -> Result<()> {
    each(context, pairs, PortSettings::default(), |target| {
        let controller = target.connect("")?;
        same("state", controller.attribute("state")?.as_str(), "live")?;
        same("transport", controller.attribute("transport")?.as_str(), transport)?;
        let disk = controller.disk(context)?;
        disk.write(0, &[7; 4096])?;
        same("byte", disk.read(0, 512)?[0], 7)?;
        same("byte of the target", target.disk()?.read(0, 512)?[0], 7)?;
        drop(disk);
        controller.delete()?;
        ensure!(!controller.exists(), "the controller exists after its deletion");
        Ok(())
    })
}

fn discovery(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    let (address, port) = (target.address.to_string(), target.port.to_string());
    let output = Command::new("nvme")
        .args(["discover", "-t", "rdma", "-a", &address, "-s", &port])
        .output()
        .context("cannot run nvme")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nvme discover: {problem}");
    for expected in [NQN, &address, &port] {
        ensure!(text.contains(expected), "'{expected}' is not in:\n{text}");
    }
    Ok(())
}

fn queues(context: &Context) -> Result<()> {
    have_queues(context, &STOCK_HOST, &[(1, 16, 16), (2, 128, 128), (4, 32, 32)])
}

/// Connects with numbers and depths of queues, of which the last number is the expected depth.
pub(super) fn have_queues(
    context: &Context,
    pairs: &[Pair],
    rows: &[(usize, usize, usize)],
) -> Result<()> {
    each(context, pairs, PortSettings::default(), |target| {
        for &(queues, depth, expected) in rows {
            let options = format!(",nr_io_queues={queues},queue_size={depth}");
            let controller = target.connect(&options)?;
            let disk = controller.disk(context)?;
            let count = queues.min(std::thread::available_parallelism()?.get()) + 1;
            same("queues", controller.attribute("queue_count")?, count.to_string())?;
            same("last index", controller.attribute("sqsize")?, (expected - 1).to_string())?;
            disk.write(0, &[depth as u8; 8192])?;
            same("byte", disk.read(4096, 512)?[0], depth as u8)?;
        }
        Ok(())
    })
}

fn unknown_subsystem(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    let controller = target.connect("")?;
    let disk = controller.disk(context)?;
    let unknown = target.connect_to("nqn.2026-11.test:nothing", "");
    failed_with("a connect to an unknown subsystem", unknown, libc::EIO)?;
    disk.write(0, &[9; 4096])?;
    same("byte", disk.read(0, 512)?[0], 9)
}

fn reset(context: &Context) -> Result<()> {
    reset_and_go_on(context, &STOCK_HOST)
}

/// Resets a controller, whose disk stays.
pub(super) fn reset_and_go_on(context: &Context, pairs: &[Pair]) -> Result<()> {
    each(context, pairs, PortSettings::default(), |target| {
        let controller = target.connect("")?;
        let disk = controller.disk(context)?;
        for round in 1..=5_u8 {
            disk.write(0, &[round; 4096])?;
            controller.reset()?;
            controller.wait_for("live", context.patience())?;
            same("byte", disk.read(0, 512)?[0], round)?;
        }
        Ok(())
    })
}

fn many_times(context: &Context) -> Result<()> {
    connect_many_times(context, &STOCK_HOST, context.count(50))
}

/// Connects, writes a block and disconnects, so many times.
pub(super) fn connect_many_times(context: &Context, pairs: &[Pair], rounds: u64) -> Result<()> {
    each(context, pairs, PortSettings::default(), |target| {
        for round in 0..rounds {
            let controller = target.connect("")?;
            let disk = controller.disk(context)?;
            disk.write(0, &[round as u8; 512]).with_context(|| format!("in round {round}"))?;
            drop(disk);
            controller.delete()?;
        }
        Ok(())
    })
}

fn refused_ports(context: &Context) -> Result<()> {
    let mut target = Target::new(context)?;
    let (address, any) = if target.address.is_ipv4() {
        ("192.0.2.1".parse()?, "0.0.0.0".parse()?)
    } else {
        ("2001:db8::1".parse()?, "::".parse()?)
    };
    let good = std::mem::replace(&mut target.address, address);
    for address in [address, any] {
        target.address = address;
        target.stop_listening();
        failed_with(&format!("a port at {address}"), target.listen(), libc::ENODEV)?;
    }
    target.stop_listening();
    target.address = good;
    target.listen()?;
    let controller = target.connect("")?;
    same("state", controller.attribute("state")?.as_str(), "live")
}

/// A soft-iWARP device with an address of its own. The drop removes it.
struct Iwarp;

impl Iwarp {
    const ADDRESS: &str = "10.7.9.1";

    /// Makes the device, or skips the test.
    fn new() -> Result<Self> {
        command("ip link add nvme_siw type dummy")?;
        let device = Self;
        command(&format!("ip addr add {}/24 dev nvme_siw", Self::ADDRESS))?;
        command("ip link set nvme_siw up")?;
        if command("rdma link add nvme_siw type siw netdev nvme_siw").is_err() {
            return skip("the kernel has no soft-iWARP");
        }
        Ok(device)
    }
}

impl Drop for Iwarp {
    fn drop(&mut self) {
        let _ = command("ip link del nvme_siw");
    }
}

fn iwarp_port(context: &Context) -> Result<()> {
    let mut target = Target::new(context)?;
    let _device = Iwarp::new()?;
    let good = std::mem::replace(&mut target.address, Iwarp::ADDRESS.parse()?);
    target.stop_listening();
    failed_with("a port of an iWARP device", target.listen(), libc::EOPNOTSUPP)?;
    target.stop_listening();
    target.address = good;
    target.listen()?;
    let controller = target.connect("")?;
    same("state", controller.attribute("state")?.as_str(), "live")
}

fn several_hosts(context: &Context) -> Result<()> {
    let target = Target::new(context)?;
    let hosts = ["a", "b", "c"].map(|name| {
        format!(",hostnqn=nqn.2026-11.test:{name},hostid=0000000{name}-0000-0000-0000-000000000000")
    });
    let controllers: Vec<_> =
        hosts.iter().map(|options| target.connect(options)).collect::<Result<_>>()?;
    let disk = controllers[0].disk(context)?;
    disk.write(0, &[5; 4096])?;
    for controller in &controllers {
        same("state", controller.attribute("state")?.as_str(), "live")?;
    }
    drop(controllers);
    Ok(())
}
