// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connects over iWARP, where the driver makes a TCP connection. Checks which calls a slow connect
//! delays, how it ends, and in which network namespace it is made.
//!
//! The tests create their own device.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, refused, same};
use crate::harness::skip;
use crate::hosts::{inside, ASYNC_QLEN};
use crate::machine::{become_user_with, command, no_objects_left, CAP_SYS_RAWIO};
use crate::peer::{Peer, Step};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, EpAttr, EpState, EvdFlags, Event, Ia, Type};
use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, TcpListener};
use std::time::{Duration, Instant};

tests! {
    unanswered_connect_delays_no_other, 120, "An unanswered connect over iWARP delays no other user of rdma_cm, and ends with its endpoint";
    unanswered_connect_times_out, 120, "An unanswered connect over iWARP times out in time";
    close_during_unanswered_connect, 120, "An adapter closes although an iWARP peer has accepted the TCP connection and sends no answer";
    pending_connects_are_limited, 240, "The number of iWARP connects without an outcome is limited for each user";
    killed_during_connect, 120, "A process that connects over iWARP to a silent peer exits when it is killed";
    connect_stays_in_namespace, 60, "A connect over iWARP stays in the network namespace of its caller";
    connect_within_namespace, 60, "Endpoints of a network namespace connect over iWARP";
    cancelled_connects, 120, "A listener over iWARP survives connects that are cancelled at random moments";
}

const NAMESPACE: &str = "kdapl-t";
pub const DEVICE: &str = "kdapl_t";
pub const NETDEV: &str = "kdaplT";
pub const ADDRESS: [u8; 4] = [10, 9, 1, 1];
/// An address without a host. The dummy device drops all packets.
const SILENT_ADDRESS: [u8; 4] = [10, 9, 1, 77];
/// Ten retries: TCP tries for ten minutes.
const SYN_RETRIES: &str = "/proc/sys/net/ipv4/tcp_syn_retries";
/// Longest duration of a call that does not wait for the peer (times the scale).
const MAX_CALL_TIME: Duration = Duration::from_secs(10);

/// Creates a siw device on a network device of its own, and removes both when dropped.
pub struct Device {
    namespace: Option<&'static str>,
    /// Set if the namespace is removed with the device.
    owns_namespace: bool,
    retries: String,
}

impl Device {
    /// Creates the device in a new network namespace.
    fn in_namespace(name: &'static str) -> Result<Self> {
        Self::clear(Some(name), true);
        command(&format!("ip netns add {name}"))?;
        Self::make(Some(name), true)
    }

    /// Creates the device on the client's host, where other processes of the test begin.
    pub fn of_client(context: &Context) -> Result<Self> {
        let namespace = context.client.namespace();
        Self::clear(namespace, false);
        Self::make(namespace, false)
    }

    fn make(namespace: Option<&'static str>, owns_namespace: bool) -> Result<Self> {
        let retries = inside(namespace, || fs::read_to_string(SYN_RETRIES))??;
        let this = Self { namespace, owns_namespace, retries };
        inside(namespace, || -> Result<()> {
            fs::write(SYN_RETRIES, "10")?;
            command("ip link set lo up")?;
            add_netdev()
        })??;
        let added = inside(namespace, || {
            command(&format!("rdma link add {DEVICE} type siw netdev {NETDEV}"))
        })?;
        match added {
            Ok(()) => Ok(this),
            Err(error) => skip(format!("this kernel creates no siw device: {error:#}")),
        }
    }

    fn clear(namespace: Option<&'static str>, with_namespace: bool) {
        // Most of it may not exist.
        let _ = inside(namespace, || {
            let _ = command(&format!("rdma link del {DEVICE}"));
            let _ = command(&format!("ip link del {NETDEV}"));
        });
        if let (Some(name), true) = (namespace, with_namespace) {
            let _ = command(&format!("ip netns del {name}"));
        }
    }

    pub fn open(&self) -> Result<Ia> {
        Ok(inside(self.namespace, || Ia::open(DEVICE, ASYNC_QLEN))??)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = inside(self.namespace, || fs::write(SYN_RETRIES, self.retries.trim()));
        Self::clear(self.namespace, self.owns_namespace);
    }
}

fn add_netdev() -> Result<()> {
    command(&format!("ip link add {NETDEV} type dummy"))?;
    command(&format!("ip addr add {}/24 dev {NETDEV}", IpAddr::from(ADDRESS)))?;
    command(&format!("ip link set {NETDEV} up"))
}

/// Listens for TCP connections, at a port that no connect takes as its local one. Returns the port.
pub fn tcp_listener(context: &Context) -> Result<(TcpListener, u64)> {
    let port = context.port();
    let listener = TcpListener::bind((IpAddr::from(ADDRESS), u16::try_from(port)?))?;
    Ok((listener, port))
}

/// Accepts the client's request. Both ends must be connected then.
pub fn accepted(context: &Context, listener: &Listener, client: &End, server: &End) -> Result<()> {
    listener.request(context)?.accept(&server.ep, &[])?;
    for end in [client, server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    Ok(())
}

/// Connects an endpoint to an address that no host answers.
fn calls_nobody(context: &Context, ia: &Ia, time: Option<Duration>) -> Result<End> {
    let end = End::new(ia, Shape::default())?;
    end.ep.connect(SILENT_ADDRESS.into(), context.port(), time, &[])?;
    // By then the address is resolved and TCP has begun.
    std::thread::sleep(context.scaled(Duration::from_millis(300)));
    under_way(&end)?;
    Ok(end)
}

fn under_way(end: &End) -> Result<()> {
    same(
        "state of the connecting endpoint",
        end.ep.status()?.state,
        EpState::ActiveConnectionPending,
    )
}

/// Runs an action that must not wait for the peer.
fn soon<T>(context: &Context, what: &str, action: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = action()?;
    let took = start.elapsed();
    ensure!(took < context.scaled(MAX_CALL_TIME), "{what} took {took:?}");
    Ok(result)
}

fn unanswered_connect_delays_no_other(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let ia = device.open()?;
    let (first, second) = (calls_nobody(context, &ia, None)?, calls_nobody(context, &ia, None)?);
    // Another user of rdma_cm, on the device of the run.
    let pair = Pair::new(context, Shape::default())?;
    drop(pair);
    under_way(&first)?;
    under_way(&second)?;
    soon(context, "an abrupt disconnect", || Ok(first.ep.disconnect(Close::Abrupt)?))?;
    connection(&context.next(&first.connect)?, ConnectionEvent::Disconnected)?;
    soon(context, "a reset", || Ok(first.ep.reset()?))?;
    soon(context, "freeing an endpoint", || Ok(first.ep.free()?))?;
    under_way(&second)?;
    soon(context, "closing the adapter", || {
        drop((first, second));
        Ok(ia.close(Close::Abrupt)?)
    })
}

fn unanswered_connect_times_out(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let ia = device.open()?;
    let time = context.scaled(Duration::from_secs(1));
    let end = calls_nobody(context, &ia, Some(time))?;
    soon(context, "the time-out", || {
        connection(&context.next(&end.connect)?, ConnectionEvent::TimedOut)
    })?;
    soon(context, "a reset", || Ok(end.ep.reset()?))?;
    soon(context, "closing the adapter", || Ok(ia.close(Close::Abrupt)?))
}

fn killed_during_connect(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let mut peer = Peer::play(context, "Silent 0 0")?;
    peer.reaches(Step::Connecting)?;
    soon(context, "the end of a process that was killed", || peer.kill())?;
    drop(device);
    Ok(())
}

/// Runs as the other process: connects as a user, and waits.
pub fn caller(context: &Context, user: u32) -> Result<()> {
    if user != 0 {
        // Without this capability only root may use siw.
        become_user_with(user, CAP_SYS_RAWIO)?;
    }
    let ia = Ia::open(DEVICE, ASYNC_QLEN)?;
    let _end = calls_nobody(context, &ia, None)?;
    println!("{:?}", Step::Connecting);
    std::thread::sleep(Duration::from_secs(3600));
    Ok(())
}

/// The endpoint is freed at once. Its id and its queue pair are destroyed when siw ends the
/// attempt.
fn close_during_unanswered_connect(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let (listener, port) = tcp_listener(context)?;
    let ia = device.open()?;
    let end = End::new(&ia, Shape::default())?;
    end.ep.connect(ADDRESS.into(), port, None, &[])?;
    let (mut peer, _) = listener.accept()?;
    // The request has arrived: siw now waits ten seconds for the answer.
    peer.read_exact(&mut [0; 20])?;
    under_way(&end)?;
    drop(end);
    ia.close(Close::Abrupt)?;
    peer.set_nonblocking(true)?;
    loop {
        match peer.read(&mut [0; 256]) {
            Ok(0) => bail!("the close waited until siw gave up the peer"),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    peer.set_nonblocking(false)?;
    // After siw has ended the attempt, no object may remain.
    while peer.read(&mut [0; 256])? > 0 {}
    no_objects_left(context.settings.scale)
}

/// The limit of connects in progress (`rust/rdma/cm/lingering_ids.rs`).
const MAX_PENDING_CONNECTS: usize = 1_024;

fn pending_connects_are_limited(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let ia = device.open()?;
    let end = End::new(&ia, Shape { receives: 1, requests: 1, ..Default::default() })?;
    let attr = EpAttr { max_recv_dtos: 1, max_request_dtos: 1, ..Default::default() };
    let another = || ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(attr));
    let mut eps = Vec::new();
    for _ in 0..MAX_PENDING_CONNECTS {
        let ep = another()?;
        ep.connect(SILENT_ADDRESS.into(), context.port(), None, &[])?;
        eps.push(ep);
    }
    let one_more = another()?;
    let call = || one_more.connect(SILENT_ADDRESS.into(), context.port(), None, &[]);
    refused(call(), Type::INSUFFICIENT_RESOURCES)?;
    same("state of the refused endpoint", one_more.status()?.state, EpState::Unconnected)?;
    // Another user of the same device has its own limit.
    let mut other = Peer::play(context, &format!("Silent {OTHER_USER} 0"))?;
    other.reaches(Step::Connecting)?;
    other.kill()?;
    for ep in &eps {
        same("state", ep.status()?.state, EpState::ActiveConnectionPending)?;
    }
    eps.pop().context("no endpoint is left")?.free()?;
    context.until("one more connect is accepted", || Ok(call().is_ok()))?;
    soon(context, "closing the adapter", || Ok(ia.close(Close::Abrupt)?))
}

/// User id without other processes.
const OTHER_USER: u32 = 4_711;

/// Both namespaces have the same address. One listens, the other connects.
fn connect_stays_in_namespace(context: &Context) -> Result<()> {
    let device = Device::in_namespace(NAMESPACE)?;
    let here = Netdev::new()?;
    let (host, port) = tcp_listener(context)?;
    host.set_nonblocking(true)?;
    let ia = device.open()?;
    let end = End::new(&ia, Shape::default())?;
    end.ep.connect(ADDRESS.into(), port, Some(context.patience()), &[])?;
    let event = context.next(&end.connect)?;
    let Event::Connection { event, .. } = event else { bail!("{event} on the connect EVD") };
    if let Ok((_, from)) = host.accept() {
        bail!("{from} of another network namespace has connected to this one's listener");
    }
    same("outcome of the connect", event, ConnectionEvent::NonPeerRejected)?;
    drop(here);
    Ok(())
}

/// Creates a network device with the same address as in the other namespace.
struct Netdev;

impl Netdev {
    fn new() -> Result<Self> {
        let _ = command(&format!("ip link del {NETDEV}"));
        add_netdev()?;
        Ok(Self)
    }
}

impl Drop for Netdev {
    fn drop(&mut self) {
        let _ = command(&format!("ip link del {NETDEV}"));
    }
}

/// The thread itself is in another namespace: only the namespace in which the adapter was opened
/// counts.
fn connect_within_namespace(context: &Context) -> Result<()> {
    let device = Device::in_namespace(NAMESPACE)?;
    let (client_ia, server_ia) = (device.open()?, device.open()?);
    let requests = server_ia.create_evd(EvdFlags::CR, 8)?;
    let port = context.port();
    let _psp = server_ia.create_psp(port, &requests)?;
    let client = End::new(&client_ia, Shape::default())?;
    let server = End::new(&server_ia, Shape::default())?;
    client.ep.connect(ADDRESS.into(), port, Some(context.patience()), &[])?;
    let event = context.next(&requests)?;
    let Event::ConnectionRequest { mut cr, .. } = event else {
        bail!("expected a request, got {event}")
    };
    cr.accept(&server.ep, &[])?;
    for end in [&client, &server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)
            .context("connecting within the namespace")?;
    }
    Ok(())
}

/// Private data of the connect that is not cancelled.
const LAST: &[u8] = b"last";

/// Siw's listener takes the end of a TCP connection that it has not accepted yet for its own end.
fn cancelled_connects(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let (client_ia, server_ia) = (device.open()?, device.open()?);
    let listener = Listener::new(context, &server_ia)?;
    let connect = |end: &End, data: &[u8]| {
        end.ep.connect(ADDRESS.into(), listener.port, Some(context.patience()), data)
    };
    for round in 0..context.count(300).max(60) {
        let end = End::new(&client_ia, Shape::default())?;
        connect(&end, &[])?;
        std::thread::sleep(Duration::from_micros(context.rng().u64(0..1_000)));
        match round % 3 {
            0 => end.ep.disconnect(Close::Abrupt)?,
            1 => end.ep.free()?,
            _ => drop(end),
        }
        while let Ok((Event::ConnectionRequest { mut cr, .. }, _)) = listener.evd.dequeue() {
            cr.reject(&[])?;
        }
    }
    let (client, server) =
        (End::new(&client_ia, Shape::default())?, End::new(&server_ia, Shape::default())?);
    connect(&client, LAST)?;
    let mut cr = listener.request(context)?;
    while !cr.query()?.private_data.starts_with(LAST) {
        cr.reject(&[])?;
        cr = listener.request(context)?;
    }
    cr.accept(&server.ep, &[])?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)
}
