// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl_bmi.ko` over two devices of one host, with itself and with processes.

use super::super::super::faults::inject;
use super::super::devices::{address, Second, ADDRESS, DEVICE};
use super::super::{bytes, Side};
use super::rails::options;
use super::{device, echo, load_bmi, load_on, request, serve, tests, Loaded, Server};
use super::{TO_CLIENT, TO_SERVER};
use crate::context::Context;
use crate::expect::same;
use crate::machine::DeviceGuard;
use anyhow::{ensure, Context as _, Result};
use libkdapl::IaStat;
use libkdapl_bmi::{Failure, Options, Peer};
use std::fs;
use std::net::IpAddr;

tests! {
    #[Transport]
    with_itself, 120, "kdapl_bmi.ko divides messages of 1 byte to 1 MiB over two devices between two instances, and each device carries its part";
    #[Long, Transport]
    up_to_16_mib, 240, "kdapl_bmi.ko divides messages of 16 MiB over two devices, with itself and with processes";
    #[Transport]
    ends, 240, "kdapl_bmi.ko keeps the order of messages over two devices, and ends with them";
    #[Transport]
    user_client, 120, "A process and kdapl_bmi.ko, which serves it, divide messages over two devices of each";
    #[Transport]
    user_server, 120, "kdapl_bmi.ko and a process, which serves it, divide messages over two devices of each";
    #[Transport]
    one_device, 120, "Processes with one device exchange messages with kdapl_bmi.ko, which has two";
    #[Transport]
    silent_host, 60, "kdapl_bmi.ko connects to the second host of an address if nobody listens at the first one";
    #[Transport]
    removed, 120, "After the removal of one of two devices, messages of kdapl_bmi.ko fail, and the next ones take the other device";
    #[Transport]
    removed_at_user, 120, "After the removal of one of two devices, kdapl_bmi.ko serves processes over the other one, and its connections there do not notice";
    #[Transport]
    unloads, 60, "kdapl_bmi.ko ends with messages in flight over two devices";
    #[Transport]
    faults, 300, "kdapl_bmi.ko with two devices survives each failed allocation of each of its calls";
}

/// Lengths of messages: below and above those that are divided.
const LENGTHS: [usize; 5] = [1, 8191, 16_337, 100_001, 1 << 20];

/// Two devices.
struct Devices<'a> {
    context: &'a Context,
    second: Second<'a>,
    /// Their names, as an instance gets them.
    names: String,
    hosts: [IpAddr; 2],
}

impl<'a> Devices<'a> {
    fn new(context: &'a Context) -> Result<Self> {
        let names = format!("{},{DEVICE}", device(context)?);
        let hosts = [context.server_address(), ADDRESS.into()];
        Ok(Self { context, second: Second::new(context)?, names, hosts })
    }

    fn name(&self, device: usize) -> &str {
        [&*self.context.server.device, DEVICE][device]
    }

    /// Returns an address of both hosts.
    fn address(&self) -> String {
        address(self.context.port(), &self.hosts)
    }

    /// Starts a server on both devices.
    fn start(&self) -> Result<Server> {
        Server::on(&self.names, self.address(), "stripe_from=8192")
    }

    /// Opens a process's instance on both devices.
    fn open(&self, options: Options) -> Result<Side> {
        let adapter = Some(self.names.clone());
        Side::open(self.context, &self.context.server, &Options { adapter, ..options })
    }

    /// Adds up a number of all adapters on each device.
    fn sum(&self, number: impl Fn(&IaStat) -> u64) -> Result<[u64; 2]> {
        let stats = libkdapl::ia_stats()?;
        let of_device = |device: &str| {
            let stats = stats.iter().filter(|stat| stat.adapter == device);
            stats.map(&number).sum()
        };
        Ok([of_device(self.name(0)), of_device(self.name(1))])
    }

    /// Checks that the adapters of kernel modules, or those of processes, have moved so many bytes
    /// by their requests, on each device. An adapter may miss those of an Endpoint that is being
    /// freed.
    fn carry(&self, by_kernel: bool, bytes: usize) -> Result<()> {
        let moved = |stat: &IaStat| match stat.is_kernel == by_kernel {
            true => stat.raw.request_bytes,
            false => 0,
        };
        let enough = || Ok(self.sum(moved)?.iter().all(|moved| *moved >= bytes as u64));
        self.context.until("each device has moved its part", enough)
    }

    /// Waits until each device has so many ends of connections.
    fn have_ends(&self, expected: [u64; 2]) -> Result<()> {
        let ends = || self.sum(|stat| stat.raw.connections.into());
        self.context.until("all connections are there", || Ok(ends()? == expected))?;
        same("ends of connections", ends()?, expected)
    }
}

/// Moves messages of these lengths between two instances of the module.
fn between_instances(context: &Context, lengths: &[usize]) -> Result<()> {
    let (devices, bmi) = (Devices::new(context)?, load_bmi(context)?);
    for (push, registered) in [("N", "Y"), ("Y", "N")] {
        for length in lengths {
            let address = devices.address();
            let parameters = format!(
                "listen={address} peer={address} length={length} registered={registered} \
                 push={push} stripe_from=8192 rounds=4"
            );
            let both = load_on(&devices.names, &parameters).with_context(|| parameters.clone())?;
            // The first messages may have come before the second connection.
            let carried = match length >= &(1 << 20) {
                true => devices.carry(true, *length),
                false => Ok(()),
            };
            carried.and_then(|()| both.unload()).with_context(|| parameters)?;
        }
    }
    bmi.unload()
}

fn with_itself(context: &Context) -> Result<()> {
    between_instances(context, &LENGTHS)
}

fn up_to_16_mib(context: &Context) -> Result<()> {
    const LENGTHS: [usize; 1] = [16 << 20];
    between_instances(context, &LENGTHS)?;
    with_clients(context, &LENGTHS)?;
    with_servers(context, &LENGTHS)
}

fn ends(context: &Context) -> Result<()> {
    let (devices, bmi) = (Devices::new(context)?, load_bmi(context)?);
    for push in ["N", "Y"] {
        let parameters =
            format!("adapter={} listen={} rails=2 push={push}", devices.names, devices.address());
        let counted = || devices.have_ends([2, 2]);
        load_staged(context, "kdapl_bmi_rails", &parameters, counted)?.unload()?;
    }
    bmi.unload()
}

/// Loads a module that waits at stage 1 for `action`, and for stage 2 if it looks at that.
fn load_staged(
    context: &Context,
    name: &'static str,
    parameters: &str,
    action: impl FnOnce() -> Result<()>,
) -> Result<Loaded> {
    let stage = format!("/sys/module/{name}/parameters/stage");
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| Loaded::new(name, parameters));
        context.until("the module waits", || {
            let text = fs::read_to_string(&stage).unwrap_or_default();
            Ok(loading.is_finished() || text.trim() == "1")
        })?;
        let done = action();
        // Without the file, the load has failed. It may be for reading only.
        let _ = fs::write(&stage, "2");
        let loaded = loading.join().expect("the thread panics");
        let loaded = loaded.with_context(|| parameters.to_owned())?;
        done.map(|()| loaded)
    })
}

/// Exchanges messages of these lengths with a server.
fn exchange(context: &Context, side: &Side, peer: &Peer, lengths: &[usize]) -> Result<()> {
    for length in lengths {
        request(side, peer, *length, 2)?;
        for _ in 0..2 {
            echo(context, side, peer, *length)?;
        }
    }
    Ok(())
}

fn user_client(context: &Context) -> Result<()> {
    with_clients(context, &LENGTHS)
}

/// Lets processes on both devices exchange messages of these lengths with a server in the kernel.
fn with_clients(context: &Context, lengths: &[usize]) -> Result<()> {
    let devices = Devices::new(context)?;
    let server = devices.start()?;
    for pull in [true, false] {
        let side = devices.open(options(1, pull))?;
        let peer = side.bmi.lookup(&server.address)?;
        request(&side, &peer, 1, 1)?;
        echo(context, &side, &peer, 1)?;
        devices.have_ends([2, 2])?;
        exchange(context, &side, &peer, lengths)?;
        devices.carry(true, lengths.iter().sum::<usize>() / 2)?;
    }
    server.end()
}

/// Lets a process on some devices serve a client in the kernel on both.
fn serve_both(devices: &Devices, listening: &Options, peer: &str, length: usize) -> Result<()> {
    let (context, adapter) = (devices.context, listening.adapter.clone());
    let side = Side::open(context, &context.server, listening)?;
    for (push, registered) in [("N", "Y"), ("Y", "N")] {
        let parameters = format!(
            "peer={peer} length={length} rounds=4 registered={registered} push={push} \
             stripe_from=8192"
        );
        let served = std::thread::scope(|scope| {
            let served = scope.spawn(|| serve(&side));
            let loaded = load_on(&devices.names, &parameters);
            loaded.and_then(Loaded::unload).with_context(|| parameters)?;
            served.join().expect("the server panics")
        })?;
        same("rounds", served, 4)?;
    }
    let both = length >= 1 << 20 && adapter.is_some_and(|names| names == devices.names);
    match both {
        true => devices.carry(false, length),
        false => Ok(()),
    }
}

fn user_server(context: &Context) -> Result<()> {
    with_servers(context, &LENGTHS)
}

/// Lets processes on both devices serve clients in the kernel, with messages of these lengths.
fn with_servers(context: &Context, lengths: &[usize]) -> Result<()> {
    let (devices, bmi) = (Devices::new(context)?, load_bmi(context)?);
    let address = devices.address();
    let (adapter, listen) = (Some(devices.names.clone()), Some(address.clone()));
    let listening = Options { adapter, listen, ..options(1, true) };
    for length in lengths {
        serve_both(&devices, &listening, &address, *length)?;
    }
    bmi.unload()
}

/// Opens a process's instance on one device.
fn open_on(devices: &Devices, device: usize) -> Result<Side> {
    let adapter = Some(devices.name(device).to_owned());
    let options = Options { adapter, ..options(2, true) };
    Side::open(devices.context, &devices.context.server, &options)
}

fn one_device(context: &Context) -> Result<()> {
    let devices = Devices::new(context)?;
    let server = devices.start()?;
    let port = server.address.rsplit_once(':').context("a port")?.1.parse()?;
    for (device, host) in devices.hosts.into_iter().enumerate() {
        let side = open_on(&devices, device)?;
        let peer = side.bmi.lookup(&address(port, &[host]))?;
        request(&side, &peer, 1, 1)?;
        echo(context, &side, &peer, 1)?;
        // Both connections are on the same device.
        devices.have_ends([[4, 0], [0, 4]][device])?;
        exchange(context, &side, &peer, &LENGTHS)?;
        drop((peer, side));
    }
    server.end()?;
    let (bmi, adapter) = (load_bmi(context)?, Some(devices.name(0).to_owned()));
    let place = address(context.port(), &devices.hosts[..1]);
    let listening = Options { adapter, listen: Some(place.clone()), ..options(2, true) };
    for length in LENGTHS {
        serve_both(&devices, &listening, &place, length)?;
    }
    bmi.unload()
}

fn silent_host(context: &Context) -> Result<()> {
    let (devices, bmi) = (Devices::new(context)?, load_bmi(context)?);
    let place = devices.address();
    let (adapter, listen) = (Some(DEVICE.to_owned()), Some(place.clone()));
    let listening = Options { adapter, listen, ..options(1, true) };
    serve_both(&devices, &listening, &place, 100_001)?;
    bmi.unload()
}

/// Removes a device, by its number.
fn remove(devices: &Devices, guard: &DeviceGuard, device: usize) -> Result<()> {
    match device {
        0 => guard.delete_of(&devices.context.server),
        _ => devices.second.remove(),
    }
}

/// Adds the device again.
fn restore(devices: &Devices, guard: &DeviceGuard, device: usize) -> Result<()> {
    match device {
        0 => guard.add(),
        _ => devices.second.add(),
    }
}

fn removed(context: &Context) -> Result<()> {
    let (devices, bmi) = (Devices::new(context)?, load_bmi(context)?);
    let guard = DeviceGuard::new(context)?;
    for (device, push) in [(1, "N"), (1, "Y"), (0, "N"), (0, "Y")] {
        let parameters = format!(
            "adapter={} listen={} rails=2 push={push} scene=one_of_two",
            devices.names,
            devices.address()
        );
        let delete = || remove(&devices, &guard, device);
        load_staged(context, "kdapl_bmi_ends", &parameters, delete)?.unload()?;
        restore(&devices, &guard, device)?;
    }
    bmi.unload()
}

/// Ends the session of a client by `end` while a server moves its long messages. Those that have
/// not arrived fail: with Reset, or one of `failures`.
fn fail_amid(
    context: &Context,
    (side, peer): (&Side, &Peer),
    failures: &[Failure],
    end: impl FnOnce() -> Result<()>,
) -> Result<()> {
    const MESSAGES: usize = 16;
    const LENGTH: usize = 4 << 20;
    let (sent, got) = (side.random(context, LENGTH)?, side.bmi.alloc(LENGTH)?);
    request(side, peer, LENGTH, 1000)?;
    let unmatched = side.context.receive(peer, 99, &[], 0)?;
    let mut ops = Vec::new();
    for _ in 0..MESSAGES {
        ops.push(side.context.receive(peer, TO_CLIENT, &[got.whole()], 0)?);
        ops.push(side.context.send(peer, TO_SERVER, &[sent.whole()], 0)?);
    }
    side.done(ops.remove(0), LENGTH)?;
    ensure!(bytes(&sent, LENGTH) == bytes(&got, LENGTH), "wrong bytes");
    end()?;
    let mut failed = 0;
    for op in ops.into_iter().chain([unmatched]) {
        let result = side.result(op)?.result;
        if let Err(failure) = result {
            let expected = failure == Failure::Reset || failures.contains(&failure);
            ensure!(expected, "an operation amid the end: {failure:?}");
        }
        failed += usize::from(result.is_err());
    }
    ensure!(failed > 1, "no message has failed");
    Ok(())
}

fn removed_at_user(context: &Context) -> Result<()> {
    let devices = Devices::new(context)?;
    let guard = DeviceGuard::new(context)?;
    for (device, stays) in [(1, 0), (0, 1)] {
        let server = devices.start()?;
        let port = server.address.rsplit_once(':').context("a port")?.1.parse()?;
        let side = devices.open(options(1, device == 1))?;
        let peer = side.bmi.lookup(&server.address)?;
        let other = open_on(&devices, stays)?;
        let other_peer = other.bmi.lookup(&address(port, &[devices.hosts[stays]]))?;
        request(&other, &other_peer, 20_000, 3)?;
        echo(context, &other, &other_peer, 20_000)?;
        let failures = [Failure::DeviceLost];
        fail_amid(context, (&side, &peer), &failures, || remove(&devices, &guard, device))?;
        // The session of the other client has not ended: the server goes on with its request.
        echo(context, &other, &other_peer, 20_000)?;
        exchange(context, &side, &peer, &LENGTHS)?;
        echo(context, &other, &other_peer, 20_000)?;
        drop((peer, side, other_peer, other));
        server.end()?;
        restore(&devices, &guard, device)?;
    }
    Ok(())
}

fn unloads(context: &Context) -> Result<()> {
    let devices = Devices::new(context)?;
    for pull in [true, false] {
        let server = devices.start()?;
        let side = devices.open(options(1, pull))?;
        let peer = side.bmi.lookup(&server.address)?;
        // The server cancels its operations.
        fail_amid(context, (&side, &peer), &[Failure::Cancelled], || server.end())?;
    }
    Ok(())
}

fn faults(context: &Context) -> Result<()> {
    inject::set_up_for(context)?;
    let (devices, bmi) = (Devices::new(context)?, load_bmi(context)?);
    let parameters = format!("adapter={} listen={}", devices.names, devices.address());
    Loaded::new("kdapl_bmi_faults", &parameters)?.unload()?;
    bmi.unload()
}
