// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! BMI over two devices of one host, which both instances use.

use super::super::tests;
use super::kernel::{echo, request, Server};
use super::{transfer, ways, Side};
use crate::cgroup::Cgroup;
use crate::context::Context;
use crate::expect::same;
use crate::fork::{end_of, fork};
use crate::harness::skip;
use crate::hosts::Host;
use crate::machine::{no_objects_left, DeviceGuard};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl_bmi::{Bmi, Error, Failure, Options, Peer};
use std::net::{IpAddr, SocketAddr};
use std::process::{id, Command};
use std::sync::atomic::{AtomicBool, Ordering};

tests! {
    #[Transport]
    divides, 120, "BMI divides messages over connections on two devices";
    #[Transport]
    removed, 120, "After the removal of one of two devices, BMI goes on over the other one, and its connections there do not notice";
    #[Transport]
    silent_host, 60, "BMI connects to the second host of an address if the first one does not answer";
    #[Transport]
    endpoints, 60, "A BMI process that may have no Endpoint on the first of two devices connects over the other one";
    #[Transport]
    kernel, 60, "kdapl_bmi.ko exchanges messages with a process that has two devices";
    options, 20, "BMI refuses numbers of connections and devices that are not possible";
}

pub(super) const DEVICE: &str = "kdapl_bmi2";
const NETDEV: &str = "kdaplB2";
pub(super) const ADDRESS: [u8; 4] = [10, 9, 40, 1];

/// A second device of the server's host. Dropping it removes what is left of it.
pub(super) struct Second<'a>(&'a Host);

impl<'a> Second<'a> {
    pub(super) fn new(context: &'a Context) -> Result<Self> {
        let this = Self(&context.server);
        this.clear();
        for line in [
            "ip link set lo up".to_owned(),
            format!("ip link add {NETDEV} type dummy"),
            format!("ip addr add {}/24 dev {NETDEV}", IpAddr::from(ADDRESS)),
            format!("ip link set {NETDEV} up"),
        ] {
            this.0.command(&line)?;
        }
        this.add()?;
        Ok(this)
    }

    pub(super) fn add(&self) -> Result<()> {
        let Some(driver) = self.0.driver() else {
            return skip(format!("{} is not a device of a driver for tests", self.0.device));
        };
        self.0.command(&format!("rdma link add {DEVICE} type {driver} netdev {NETDEV}"))
    }

    pub(super) fn remove(&self) -> Result<()> {
        self.0.command(&format!("rdma link del {DEVICE}"))
    }

    fn clear(&self) {
        // They may not exist.
        let _ = self.remove();
        let _ = self.0.command(&format!("ip link del {NETDEV}"));
    }

    /// Returns the number of queue pairs of each device.
    fn queue_pairs(&self) -> Result<[usize; 2]> {
        let count = |device: &str| {
            let link = format!("{device}/1");
            let mut command = Command::new("rdma");
            let listed = command.args(["resource", "show", "qp", "link", &link]).output()?;
            ensure!(listed.status.success(), "rdma: {listed:?}");
            Ok(String::from_utf8_lossy(&listed.stdout).lines().count())
        };
        Ok([count(&self.0.device)?, count(DEVICE)?])
    }
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns an address of the hosts of both devices, or of one of them.
pub(super) fn address(port: u64, hosts: &[IpAddr]) -> String {
    let host = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let hosts: Vec<_> = hosts.iter().map(host).collect();
    format!("kdapl://{}:{port}", hosts.join("+"))
}

/// Two instances over both devices.
struct Pair {
    server: Side,
    client: Side,
    peer: Peer,
    port: u64,
}

impl Pair {
    fn open(context: &Context, options: &Options) -> Result<Self> {
        let host = &context.server;
        let both = Some(format!("{},{DEVICE}", host.device));
        let options = Options { adapter: both, stripe_from: 8192, ..options.clone() };
        let port = context.port();
        let address = address(port, &[context.server_address(), ADDRESS.into()]);
        let client = Side::open(context, host, &options)?;
        let listening = Options { listen: Some(address.clone()), ..options };
        let server = Side::open(context, host, &listening)?;
        let peer = client.bmi.lookup(&address)?;
        same("address of the peer", peer.address(), Some(address))?;
        Ok(Self { server, client, peer, port })
    }

    /// Lets the server know a client. Returns the client at the server.
    fn greet(&self, client: &Side, peer: &Peer) -> Result<Peer> {
        let op = client.context.send_unexpected(peer, 0, &[], 0)?;
        let message = self.server.unexpected()?;
        client.done(op, 0)?;
        Ok(message.peer)
    }
}

fn divides(context: &Context) -> Result<()> {
    let second = Second::new(context)?;
    for options in ways() {
        if options.pull && context.loses_reads() {
            continue;
        }
        let before = second.queue_pairs()?;
        let pair = Pair::open(context, &options)?;
        let back = pair.greet(&pair.client, &pair.peer)?;
        let expected = before.map(|count| count + 2);
        context.until("both connections are there", || Ok(second.queue_pairs()? == expected))?;
        let (client, server) = ((&pair.client, &pair.peer), (&pair.server, &back));
        for length in [0, 100, 10_000, 20_000, 1_000_001] {
            transfer(context, client, server, length)?;
            transfer(context, server, client, length)?;
        }
        same("queue pairs", second.queue_pairs()?, expected)?;
        drop((back, pair));
        no_objects_left(context.settings.scale)?;
    }
    Ok(())
}

/// Moves messages until one fails, which happens after a device was removed.
fn until_failure(pair: &Pair, back: &Peer, is_removed: &AtomicBool) -> Result<()> {
    const LENGTH: usize = 1 << 20;
    let (sent, got) = (pair.client.bmi.alloc(LENGTH)?, pair.server.bmi.alloc(LENGTH)?);
    let is_expected = |failure: &Failure| {
        let expected = matches!(failure, Failure::DeviceLost | Failure::Reset);
        ensure!(expected, "a message fails: {failure:?}");
        ensure!(is_removed.load(Ordering::SeqCst), "a message fails before the removal");
        Ok(())
    };
    loop {
        let receive = match pair.server.context.receive(back, 7, &[got.whole()], 0) {
            // The session has ended, and the server cannot connect to its client.
            Err(Error::Post(Failure::NotConnected)) => return is_expected(&Failure::Reset),
            receive => receive?,
        };
        let send = pair.client.context.send(&pair.peer, 7, &[sent.whole()], 0)?;
        let received = pair.server.result(receive)?.result;
        if received.is_err() {
            // It may be on a new session, which knows nothing of the receive.
            pair.client.context.cancel(send);
        }
        let sent = pair.client.result(send)?.result;
        let failures: Vec<_> = [received, sent].into_iter().filter_map(Result::err).collect();
        let of_removal = failures.iter().filter(|failure| **failure != Failure::Cancelled);
        of_removal.into_iter().try_for_each(is_expected)?;
        if !failures.is_empty() {
            return Ok(());
        }
    }
}

/// Removes a device while both clients of a server move messages: one over both devices, and one
/// over the device that stays.
fn remove(
    context: &Context,
    stays: (&str, IpAddr),
    delete: &dyn Fn() -> Result<()>,
    options: &Options,
) -> Result<()> {
    let pair = Pair::open(context, options)?;
    let back = pair.greet(&pair.client, &pair.peer)?;
    let one = Options { adapter: Some(stays.0.to_owned()), ..options.clone() };
    let other = Side::open(context, &context.server, &one)?;
    let peer = other.bmi.lookup(&address(pair.port, &[stays.1]))?;
    let other_back = pair.greet(&other, &peer)?;
    let (is_removed, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| {
            let moved = until_failure(&pair, &back, &is_removed);
            ended.store(true, Ordering::Relaxed);
            moved
        });
        let mut rounds = 0;
        while !ended.load(Ordering::Relaxed) {
            transfer(context, (&other, &peer), (&pair.server, &other_back), 20_000)?;
            rounds += 1;
            if rounds == 3 {
                is_removed.store(true, Ordering::SeqCst);
                delete()?;
            }
        }
        moved.join().expect("the thread panics")
    })?;
    let again = pair.greet(&pair.client, &pair.peer)?;
    ensure!(again == back, "the client is another peer");
    let (client, server) = ((&pair.client, &pair.peer), (&pair.server, &back));
    for length in [100, 1_000_001] {
        transfer(context, client, server, length)?;
        transfer(context, server, client, length)?;
        transfer(context, (&other, &peer), (&pair.server, &other_back), length)?;
    }
    Ok(())
}

fn removed(context: &Context) -> Result<()> {
    let second = Second::new(context)?;
    let guard = DeviceGuard::new(context)?;
    let first = (context.server.device.as_str(), context.server_address());
    for options in ways() {
        if options.pull && context.loses_reads() {
            continue;
        }
        remove(context, first, &|| second.remove(), &options).context("the second device")?;
        no_objects_left(context.settings.scale)?;
        second.add()?;
        let delete = || guard.delete_of(&context.server);
        remove(context, (DEVICE, ADDRESS.into()), &delete, &options).context("the first device")?;
        no_objects_left(context.settings.scale)?;
        guard.add()?;
    }
    Ok(())
}

fn silent_host(context: &Context) -> Result<()> {
    let _second = Second::new(context)?;
    let host = &context.server;
    let (port, first) = (context.port(), context.server_address());
    let listen = Some(address(port, &[ADDRESS.into()]));
    let one = Options { adapter: Some(DEVICE.to_owned()), listen, ..Options::default() };
    let server = Side::open(context, host, &one)?;
    let both = Some(format!("{},{DEVICE}", host.device));
    let client = Side::open(context, host, &Options { adapter: both, ..Options::default() })?;
    let peer = client.bmi.lookup(&address(port, &[first, ADDRESS.into()]))?;
    let send = client.context.send_unexpected(&peer, 1, &[], 0)?;
    let back = server.unexpected()?.peer;
    client.done(send, 0)?;
    let from = back.address().context("an address")?;
    let from = from.strip_prefix("kdapl://").context("a scheme")?;
    same("host of the client", from.parse::<SocketAddr>()?.ip(), ADDRESS.into())?;
    transfer(context, (&server, &back), (&client, &peer), 20_000)
}

/// Lets this process have no more objects on a device than it has.
fn forbid_objects(cgroup: &Cgroup, device: &str) -> Result<()> {
    let all = cgroup.read("rdma.current");
    let own = all.lines().find(|line| line.split(' ').next() == Some(device));
    let count = own.and_then(|line| line.split("hca_object=").nth(1));
    let count = count.with_context(|| format!("objects of {device}: {all}"))?;
    cgroup.write("rdma.max", &format!("{device} hca_object={count}"))
}

fn endpoints(context: &Context) -> Result<()> {
    let _second = Second::new(context)?;
    let host = &context.server;
    let cgroup = Cgroup::enter("rdma", "rdma.max", &format!("{DEVICE} hca_object=max"))?;
    cgroup.leave()?;
    let adapter = Some(format!("{},{DEVICE}", host.device));
    let both = Options { adapter, ..Options::default() };
    let address = address(context.port(), &[context.server_address(), ADDRESS.into()]);
    let listening = Options { listen: Some(address.clone()), ..both.clone() };
    let server = Side::open(context, host, &listening)?;
    let child = fork(|| {
        cgroup.write("cgroup.procs", &id().to_string())?;
        let client = Side::open(context, host, &both)?;
        forbid_objects(&cgroup, &host.device)?;
        let peer = client.bmi.lookup(&address)?;
        let send = client.context.send_unexpected(&peer, 1, &[], 0)?;
        client.done(send, 0)
    })?;
    server.unexpected()?;
    same("status of the client", end_of(child)?, 0)
}

fn kernel(context: &Context) -> Result<()> {
    let second = Second::new(context)?;
    let server = Server::start_with(context, "rails=2")?;
    let adapter = Some(format!("{},{DEVICE}", context.server.device));
    for options in ways() {
        if options.pull && context.loses_reads() {
            continue;
        }
        let options = Options { adapter: adapter.clone(), ..options };
        let [first, other] = second.queue_pairs()?;
        let client = Side::open(context, &context.server, &options)?;
        let peer = client.bmi.lookup(&server.address)?;
        request(&client, &peer, 1, 1)?;
        echo(context, &client, &peer, 1)?;
        // The client has one on each device, and the server both on its only device. Over rxe the
        // second one cannot be established: the device gets its own packets for another address of
        // this host (docs/bmi/rails.md), and the session goes on with one connection.
        if context.server.is_siw() {
            let expected = [first + 3, other + 1];
            context
                .until("both connections are there", || Ok(second.queue_pairs()? == expected))?;
        }
        for length in [1, 20_000, 1_000_001] {
            request(&client, &peer, length, 1)?;
            echo(context, &client, &peer, length)?;
        }
    }
    server.end()
}

fn options(context: &Context) -> Result<()> {
    let device = &context.client.device;
    let refused =
        |options: Options, reason: &str| match context.client.inside(|| Bmi::open(&options))? {
            Err(Error::Options(text)) => same("error", text.as_str(), reason),
            other => bail!("{reason}: {other:?}"),
        };
    for (rails, reason) in
        [(0, "0 rails: there can be 1 to 4"), (5, "5 rails: there can be 1 to 4")]
    {
        let adapter = Some(device.clone());
        refused(Options { adapter, rails, ..Options::default() }, reason)?;
    }
    let adapter = Some([device.as_str(); 5].join(","));
    refused(Options { adapter, ..Options::default() }, "5 adapters: there can be 1 to 4")
}
