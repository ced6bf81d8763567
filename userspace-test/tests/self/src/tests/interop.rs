// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connects endpoints with plain rdma_cm programs.

use super::connect::carried;
use super::extensions::needed;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, connection_over, done, dto, same};
use crate::harness::skip;
use crate::hosts::Host;
use crate::plain::{decode, encode, Exchange, Plain};
use crate::repeat::unheard;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, DtoOperation, DtoStatus, EpState, Extensions, Segment};

tests! {
    #![Address]
    plain_connects, 60, "A plain rdma_cm program connects to a service point, and both exchange messages and RDMA writes";
    plain_listens, 60, "An endpoint connects to a plain rdma_cm program, and both exchange messages and RDMA writes";
    plain_immediate, 60, "Messages with immediate data from a plain rdma_cm program arrive with their data as RECV_MSG_IMMED";
    plain_gets_disconnect, 60, "A plain rdma_cm program gets our disconnect, whichever side connected";
    plain_disconnects, 60, "A disconnect by a plain rdma_cm program is reported as DISCONNECTED, whichever side connected";
    plain_is_rejected, 30, "A plain rdma_cm program gets our reject and its private data";
    plain_rejects, 30, "A reject by a plain rdma_cm program is reported as PEER_REJECTED, with its private data";
    plain_finds_no_listener, 30, "A plain rdma_cm program is rejected by the transport where no service point listens";
    plain_listener_has_ended, 30, "A connect to a port where a plain rdma_cm program listened before is NON_PEER_REJECTED";
    plain_is_killed, 60, "A killed plain rdma_cm program ends the connection, whichever side connected";
    rping_connects, 60, "rping's client reads and writes our memory, and finds every byte right";
    rping_listens, 60, "rping's server reads and writes our memory, and every byte is right";
}

/// The first unprivileged port, one above the signed 16-bit range, and the last one.
const PORTS: [u64; 3] = [1025, 33_000, 65_535];
const ROUNDS: u32 = 10;
const EXCHANGE: [&str; 2] = ["--exchange", "10"];
/// Reasons of a reject in `rdma_cm`: by the consumer, and by the transport.
const CONSUMER_DEFINED: i32 = 28;
const INVALID_SERVICE_ID: i32 = 8;

/// Creates an end on the host of the listening or the connecting side.
fn end(context: &Context, listens: bool) -> Result<End> {
    let ia = if listens { context.open_server()? } else { context.open()? };
    End::new(&ia, Shape::default())
}

/// Returns the private data to reject with. Over iWARP a reject without private data is the same as
/// a closed connection.
fn reasons(context: &Context) -> &'static [&'static str] {
    if context.client.is_iwarp() {
        &["not today"]
    } else {
        &["not today", ""]
    }
}

fn event(context: &Context, end: &End, expected: ConnectionEvent) -> Result<()> {
    connection(&context.next(&end.connect)?, expected)
}

fn call(context: &Context, end: &End, port: u64, private_data: &[u8]) -> Result<()> {
    Ok(end.ep.connect(context.server_address(), port, Some(context.patience()), private_data)?)
}

/// Connects a plain program to an endpoint, or the endpoint to the plain program.
fn connected(context: &Context, plain_connects: bool, arguments: &[&str]) -> Result<(End, Plain)> {
    let (end, port) = (end(context, plain_connects)?, context.port());
    let mut plain;
    if plain_connects {
        let listener = Listener::on(&end.ia, port)?;
        plain = Plain::connect(context, port, arguments)?;
        listener.request(context)?.accept(&end.ep, &[])?;
    } else {
        plain = Plain::listen(context, port, arguments)?;
        call(context, &end, port, &[])?;
        plain.says("request")?;
    }
    event(context, &end, ConnectionEvent::Established)?;
    plain.says("established")?;
    Ok((end, plain))
}

fn plain_connects(context: &Context) -> Result<()> {
    for port in PORTS {
        let end = end(context, true)?;
        let listener = Listener::on(&end.ia, port).with_context(|| format!("port {port}"))?;
        let arguments = [&EXCHANGE[..], &["--private-data", "may I?"]].concat();
        let mut plain = Plain::connect(context, port, &arguments)?;
        let mut cr = listener.request(context)?;
        carried("request", &cr.query()?.private_data, b"may I?")?;
        let exchange = Exchange { context, end: &end, first: false, immediate: false };
        exchange.prepare()?;
        cr.accept(&end.ep, b"you may")?;
        event(context, &end, ConnectionEvent::Established)?;
        plain.says("established you may")?;
        exchange.run(ROUNDS).with_context(|| format!("port {port}"))?;
        plain.says("exchanged 10")?;
        end.ep.disconnect(Close::Graceful)?;
        event(context, &end, ConnectionEvent::Disconnected)?;
        plain.says("disconnected")?;
        plain.succeeds()?;
    }
    Ok(())
}

fn plain_listens(context: &Context) -> Result<()> {
    for port in PORTS {
        let end = end(context, false)?;
        let arguments = [&EXCHANGE[..], &["--private-data", "you may"]].concat();
        let mut plain = Plain::listen(context, port, &arguments)?;
        let exchange = Exchange { context, end: &end, first: true, immediate: false };
        exchange.prepare()?;
        call(context, &end, port, b"may I?")?;
        plain.says("request may I?")?;
        event(context, &end, ConnectionEvent::Established)?;
        carried("answer", &end.ep.private_data()?, b"you may")?;
        same("qualifier", end.ep.query()?.raw.remote_port_qual, port)?;
        plain.says("established")?;
        exchange.run(ROUNDS).with_context(|| format!("port {port}"))?;
        plain.says("exchanged 10")?;
        end.ep.disconnect(Close::Graceful)?;
        event(context, &end, ConnectionEvent::Disconnected)?;
        plain.says("disconnected")?;
        plain.succeeds()?;
    }
    Ok(())
}

fn plain_immediate(context: &Context) -> Result<()> {
    needed(context, Extensions::IMMED_DATA)?;
    let (end, port) = (end(context, true)?, context.port());
    let listener = Listener::on(&end.ia, port)?;
    let mut plain = Plain::connect(context, port, &[&EXCHANGE[..], &["--immediate"]].concat())?;
    let exchange = Exchange { context, end: &end, first: false, immediate: true };
    exchange.prepare()?;
    listener.request(context)?.accept(&end.ep, &[])?;
    event(context, &end, ConnectionEvent::Established)?;
    plain.says("established")?;
    exchange.run(ROUNDS)?;
    plain.says("exchanged 10")?;
    end.ep.disconnect(Close::Graceful)?;
    event(context, &end, ConnectionEvent::Disconnected)?;
    plain.says("disconnected")?;
    plain.succeeds()
}

fn plain_gets_disconnect(context: &Context) -> Result<()> {
    for (plain_connects, how) in [
        (true, Close::Abrupt),
        (true, Close::Graceful),
        (false, Close::Abrupt),
        (false, Close::Graceful),
    ] {
        let (end, mut plain) = connected(context, plain_connects, &[])?;
        end.ep.disconnect(how)?;
        event(context, &end, ConnectionEvent::Disconnected)?;
        plain.says("disconnected")?;
        plain.succeeds()?;
        context.quiet(&end.connect)?;
    }
    Ok(())
}

fn plain_disconnects(context: &Context) -> Result<()> {
    // Where packets get lost, the disconnect may overtake the confirmation, and implies it.
    for plain_connects in [true, false] {
        let (end, mut plain) = connected(context, plain_connects, &["--disconnect"])?;
        event(context, &end, ConnectionEvent::Disconnected)?;
        plain.says("disconnected")?;
        plain.succeeds()?;
        same("state", end.ep.status()?.state, EpState::Disconnected)?;
        context.quiet(&end.connect)?;
    }
    Ok(())
}

fn plain_is_rejected(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let listener = Listener::new(context, &context.open_server()?)?;
    // Over iWARP the status is the errno of a closed connection.
    let iwarp = context.client.is_iwarp();
    let status = if iwarp { -libc::ECONNRESET } else { CONSUMER_DEFINED };
    for reason in reasons(context) {
        let mut plain = Plain::connect(context, listener.port, &[])?;
        listener.request(context)?.reject(reason.as_bytes())?;
        plain.says(format!("rejected {status} {reason}").trim_end())?;
        same("exit status", plain.ends()?.0.code(), Some(3))?;
    }
    Ok(())
}

fn plain_rejects(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    for reason in reasons(context) {
        let (end, port) = (end(context, false)?, context.port());
        let mut plain = Plain::listen(context, port, &["--reject", reason])?;
        call(context, &end, port, b"may I?")?;
        plain.says("request may I?")?;
        plain.says("rejected")?;
        event(context, &end, ConnectionEvent::PeerRejected)?;
        carried("reason", &end.ep.private_data()?, reason.as_bytes())?;
        same("state", end.ep.status()?.state, EpState::Disconnected)?;
        plain.succeeds()?;
    }
    Ok(())
}

fn plain_finds_no_listener(context: &Context) -> Result<()> {
    if context.client.is_siw() {
        return skip("siw's rdma_connect() itself fails if there is no listener");
    }
    let said = format!("rejected {INVALID_SERVICE_ID}");
    let mut plain = Plain::connect(context, context.port(), &[])?;
    plain.says(&said)?;
    same("exit status", plain.ends()?.0.code(), Some(3))?;
    // The result is the same after a service point is freed.
    let listener = Listener::new(context, &context.open_server()?)?;
    listener.psp.free()?;
    let mut plain = Plain::connect(context, listener.port, &[])?;
    plain.says(&said)
}

fn plain_listener_has_ended(context: &Context) -> Result<()> {
    let (end, port) = (end(context, false)?, context.port());
    let mut plain = Plain::listen(context, port, &[])?;
    plain.kill()?;
    call(context, &end, port, &[])?;
    event(context, &end, ConnectionEvent::NonPeerRejected)?;
    same("state", end.ep.status()?.state, EpState::Disconnected)
}

fn plain_is_killed(context: &Context) -> Result<()> {
    for plain_connects in [true, false] {
        let (end, mut plain) = connected(context, plain_connects, &[])?;
        plain.kill()?;
        if context.link_is_spoilt() {
            // The kernel disconnects once for the dead process, and that message may get lost. A
            // send detects the dead peer.
            let _already_known = end.send(TO_SEND_AT, RECEIVED_AT, 1);
        }
        connection_over(&context.next(&end.connect)?)?;
        same("state", end.ep.status()?.state, EpState::Disconnected)?;
    }
    Ok(())
}

/// Number of pings, and bytes of each. No round number.
const PINGS: usize = 5;
const PING: usize = 1000;
/// Offsets of received messages, of messages to send, of the memory that `rping` reads, and of the
/// memory that it writes.
const RECEIVED_AT: usize = 16;
const TO_SEND_AT: usize = 64;
const READ_BY_PEER_AT: usize = 4096;
const WRITTEN_BY_PEER_AT: usize = 8192;

/// The endpoint's part of `rping`. The client announces in turn a source to read from and a sink to
/// write to. The server answers each with a message when it is done.
struct Rping<'a> {
    context: &'a Context,
    end: End,
}

impl Rping<'_> {
    fn receive(&self, slot: usize) -> Result<()> {
        self.end.receive(slot * RECEIVED_AT, RECEIVED_AT, slot as u64)
    }

    fn say(&self, segment: Segment) -> Result<()> {
        self.end.lmr.buffer().write(TO_SEND_AT, &encode(segment));
        self.end.send(TO_SEND_AT, RECEIVED_AT, 1)
    }

    fn tell(&self, segment: Segment) -> Result<()> {
        self.say(segment)?;
        done(&self.context.next(&self.end.request)?, DtoOperation::Send, RECEIVED_AT as u64, 1)
    }

    /// Returns the next message, which must be in `slot`.
    fn told(&self, slot: usize) -> Result<Segment> {
        let event = self.context.next(&self.end.recv)?;
        done(&event, DtoOperation::Receive, RECEIVED_AT as u64, slot as u64)?;
        let segment = decode(&self.end.lmr.buffer().to_vec(slot * RECEIVED_AT, RECEIVED_AT))?;
        self.receive(slot)?;
        Ok(segment)
    }

    fn serve(&self) -> Result<()> {
        for ping in 1..=PINGS {
            let source = self.told(0)?;
            same("length", source.length as usize, PING)?;
            self.end.read(WRITTEN_BY_PEER_AT, PING, source, 2)?;
            let event = self.context.next(&self.end.request)?;
            done(&event, DtoOperation::RdmaRead, PING as u64, 2)?;
            self.tell(source)?;
            let sink = self.told(1)?;
            self.end.write(WRITTEN_BY_PEER_AT, PING, sink, 3)?;
            let event = self.context.next(&self.end.request)?;
            done(&event, DtoOperation::RdmaWrite, PING as u64, 3)?;
            if ping < PINGS {
                self.tell(sink)?;
            }
        }
        // The client disconnects after the last message, perhaps before that send completes.
        self.say(self.end.lmr.remote_segment(WRITTEN_BY_PEER_AT, PING))?;
        let event = self.context.next(&self.end.request)?;
        match dto(&event, DtoOperation::Send, DtoStatus::Flushed) {
            Ok(_) => Ok(()),
            Err(_) => done(&event, DtoOperation::Send, RECEIVED_AT as u64, 1),
        }
    }

    fn ping(&self) -> Result<()> {
        for ping in 0..PINGS {
            // rping's server writes back a string, up to the first NUL.
            let mut rng = self.context.rng();
            let mut bytes: Vec<u8> = (1..PING).map(|_| rng.u8(1..)).collect();
            bytes.push(0);
            self.end.lmr.buffer().write(READ_BY_PEER_AT, &bytes);
            self.tell(self.end.lmr.remote_segment(READ_BY_PEER_AT, PING))?;
            self.told(0)?;
            self.tell(self.end.lmr.remote_segment(WRITTEN_BY_PEER_AT, PING))?;
            self.told(1)?;
            let back = self.end.lmr.buffer().to_vec(WRITTEN_BY_PEER_AT, PING);
            ensure!(back == bytes, "ping {ping} came back changed");
        }
        Ok(())
    }
}

fn rping(context: &Context, listens: bool) -> Result<Rping<'_>> {
    let rping = Rping { context, end: end(context, listens)? };
    (0..2).try_for_each(|slot| rping.receive(slot))?;
    Ok(rping)
}

fn arguments(context: &Context, side: &str, port: u64) -> Vec<String> {
    let line = format!("{side} -a {} -p {port} -C {PINGS} -S {PING}", context.server_address());
    line.split(' ').map(String::from).collect()
}

fn start(host: &Host, arguments: &[String]) -> Result<Plain> {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    Plain::start(host, "rping", &arguments)
}

fn rping_connects(context: &Context) -> Result<()> {
    let rping = rping(context, true)?;
    let listener = Listener::new(context, &rping.end.ia)?;
    let plain = start(&context.client, &arguments(context, "-c -V", listener.port))?;
    listener.request(context)?.accept(&rping.end.ep, &[])?;
    event(context, &rping.end, ConnectionEvent::Established)?;
    rping.serve()?;
    let (status, _) = plain.ends()?;
    if !status.success() {
        unheard!("rping ended with {status}");
    }
    if context.link_is_spoilt() {
        // As for a killed program: rping ends at once, and no one repeats its disconnect.
        let _already_known = rping.end.send(TO_SEND_AT, RECEIVED_AT, 1);
        return connection_over(&context.next(&rping.end.connect)?);
    }
    event(context, &rping.end, ConnectionEvent::Disconnected)
}

fn rping_listens(context: &Context) -> Result<()> {
    let port = context.port();
    let plain = start(&context.server, &arguments(context, "-s", port))?;
    let mut connected = None;
    // rping does not print when it listens.
    context.until("rping listens", || {
        let rping = rping(context, false)?;
        call(context, &rping.end, port, &[])?;
        let event = context.next(&rping.end.connect)?;
        if connection(&event, ConnectionEvent::NonPeerRejected).is_ok() {
            return Ok(false);
        }
        connection(&event, ConnectionEvent::Established)?;
        connected = Some(rping);
        Ok(true)
    })?;
    let rping = connected.context("until() returns only once connected")?;
    rping.ping()?;
    rping.end.ep.disconnect(Close::Graceful)?;
    event(context, &rping.end, ConnectionEvent::Disconnected)?;
    // rping's server reports our disconnect in the middle of its loop as an error.
    plain.ends()?;
    Ok(())
}
