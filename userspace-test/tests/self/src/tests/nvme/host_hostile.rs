// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Hostile targets of our host: processes that speak NVMe/RDMA over kDAPL, and break its rules. The
//! host reports that it is not connected, and a good connection beside does not notice.

use super::fake::{
    reply, response, serve, Command, Queue, Reaction, ASYNC_EVENT, CONTENT, RECEIVES, SET_FEATURES,
};
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, failed_with, same};
use crate::machine::KernelLog;
use crate::nvme::{Pair, PortSettings, Target, NQN};
use crate::tests::tests;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Event, Ia};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

tests! { #![Nvme]
    rejected, 120, "A target that rejects our host says why";
    refuses_connect, 120, "A status that answers Connect ends the attempt, and its data, without an invalidation by the target";
    silent, 120, "A target that does not answer Connect is given up after the time-out";
    vanishes, 120, "A target that disconnects instead of an answer is given up";
    unknown_command, 120, "A response for an unknown command is reported, and ends no other one";
    event_without_command, 120, "A response for the command for asynchronous events that was not sent is reported";
    event_overtakes, 120, "An asynchronous event that overtakes the completion of its command's send is handled, and the next command sent";
    answers_twice, 120, "A second response for a command is reported";
    short_response, 120, "A response that is too short is reported";
    foreign_key, 120, "A response that invalidates a key that does not exist ends the connection";
}

/// Time within which an admin command must be answered, in seconds.
const ADMIN_TIMEOUT: &str = "/sys/module/nvme_core/parameters/admin_timeout";

/// Port of this process.
struct Port {
    listener: Listener,
    ia: Ia,
}

/// Target in this process, with one connection.
struct Fake {
    end: End,
    command: [u8; 64],
}

/// Places in the memory of a target.
const RESPONSE: usize = 8192;

/// Status of a Connect whose parameters are not valid, with the bit against retries.
const REFUSED: u16 = 0x4182;

impl Fake {
    /// Accepts a connection, and takes the Connect command.
    fn new(context: &Context, port: &Port) -> Result<Self> {
        let end = End::new(&port.ia, Shape::default())?;
        end.receive(0, 4096, 0)?;
        port.listener.request(context)?.accept(&end.ep, &reply(16))?;
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        match context.next(&end.recv)? {
            Event::Dto(dto) if dto.status == DtoStatus::Success && dto.length == 64 => {}
            other => bail!("expected a command, got {other}"),
        }
        let command = end.lmr.buffer().to_vec(0, 64).try_into().expect("64 bytes");
        Ok(Self { end, command })
    }

    fn command_id(&self) -> u16 {
        u16::from_le_bytes([self.command[2], self.command[3]])
    }

    /// Sends the first `length` bytes of a response, and waits until it has arrived. The host may
    /// disconnect when it has the response, before it acknowledges it.
    fn respond(
        &self,
        context: &Context,
        command_id: u16,
        status: u16,
        length: usize,
    ) -> Result<()> {
        self.prepare(command_id, status);
        self.end.send(RESPONSE, length, 0)?;
        match context.next(&self.end.request)? {
            Event::Dto(dto) if matches!(dto.status, DtoStatus::Success | DtoStatus::Flushed) => {
                same("operation", dto.operation, DtoOperation::Send)
            }
            other => bail!("expected the completion of a send, got {other}"),
        }
    }

    fn prepare(&self, command_id: u16, status: u16) {
        self.end.lmr.buffer().write(RESPONSE, &response(command_id, status, 0));
    }

    /// Sends a response that invalidates a key.
    fn respond_with_key(&self, key: u32) -> Result<()> {
        self.prepare(self.command_id(), REFUSED);
        let segment = [self.end.lmr.segment(RESPONSE, 16)];
        let flags = CompletionFlags::default();
        Ok(self.end.ep.post_send_with_invalidate(&segment, key, 0, flags)?)
    }
}

/// Lets the host connect to a target of this process, which must fail. Returns the host's messages.
fn attack(
    context: &Context,
    errno: i32,
    answer: impl FnOnce(&Port) -> Result<()>,
) -> Result<String> {
    let target = Target::of(context, Pair::of_our_host()[0], PortSettings::default())?;
    let good = target.connect("")?;
    let disk = good.disk(context)?;
    let log = KernelLog::from_now()?;
    let before = fs::read_to_string(ADMIN_TIMEOUT)?;
    fs::write(ADMIN_TIMEOUT, "2")?;
    let ia = context.open()?;
    let port = Port { listener: Listener::new(context, &ia)?, ia };
    let options = format!("traddr={},trsvcid={},nqn={NQN}", target.address, port.listener.port);
    let (outcome, answered) = thread::scope(|scope| {
        let host = scope.spawn(|| target.connect_by(&options).map(drop));
        let answered = answer(&port);
        (host.join().expect("the thread does not panic"), answered)
    });
    fs::write(ADMIN_TIMEOUT, before.trim())?;
    answered.with_context(|| format!("the host: {outcome:?}"))?;
    failed_with("a connect to the hostile target", outcome, errno)?;
    disk.write(0, &[0x5a; 8192])?;
    same("byte of the good connection", disk.read(4096, 512)?[0], 0x5a)?;
    same("state of the good connection", good.attribute("state")?.as_str(), "live")?;
    log.rest()
}

/// As [`attack`]. Afterwards the host's messages have `message`.
fn reported(
    context: &Context,
    errno: i32,
    message: &str,
    answer: impl FnOnce(&Port) -> Result<()>,
) -> Result<()> {
    let text = attack(context, errno, answer)?;
    ensure!(text.contains(message), "'{message}' is not in:\n{text}");
    Ok(())
}

fn rejected(context: &Context) -> Result<()> {
    reported(context, libc::ECONNREFUSED, "queue 0 was rejected: status 6", |port| {
        Ok(port.listener.request(context)?.reject(&[0, 0, 6, 0])?)
    })
}

fn refuses_connect(context: &Context) -> Result<()> {
    reported(context, libc::EIO, "Connect", |port| {
        let fake = Fake::new(context, port)?;
        fake.respond(context, fake.command_id(), REFUSED, 16)?;
        end_of(context, &fake)
    })
}

/// Waits until the host has ended the connection.
fn end_of(context: &Context, fake: &Fake) -> Result<()> {
    connection(&context.next(&fake.end.connect)?, ConnectionEvent::Disconnected)
}

fn silent(context: &Context) -> Result<()> {
    reported(context, libc::EIO, "a command of queue 0 has timed out", |port| {
        let fake = Fake::new(context, port)?;
        end_of(context, &fake)
    })
}

fn vanishes(context: &Context) -> Result<()> {
    attack(context, libc::EIO, |port| Fake::new(context, port).map(drop)).map(drop)
}

fn unknown_command(context: &Context) -> Result<()> {
    reported(context, libc::EIO, "a response has no command", |port| {
        let fake = Fake::new(context, port)?;
        // Another generation of the tag, a tag without a command, and one beyond the queue.
        let id = fake.command_id();
        for other in [id ^ 0x1000, id ^ 1, id | 0xfff] {
            fake.respond(context, other, 0, 16)?;
        }
        end_of(context, &fake)
    })
}

fn event_without_command(context: &Context) -> Result<()> {
    reported(context, libc::EIO, "a response has no command", |port| {
        let fake = Fake::new(context, port)?;
        fake.respond(context, 31, 0, 16)?;
        end_of(context, &fake)
    })
}

/// Command identifier of our host's command for asynchronous events.
const EVENT_ID: u16 = 31;

/// Result of that command: the namespaces have changed.
const NAMESPACES_CHANGED: u64 = 0x04_0002;

/// Feature that selects asynchronous events.
const EVENTS: u32 = 0x0b;

/// Returns how often a message of this machine has found no receive.
fn retries(context: &Context) -> Result<u64> {
    let device = &context.server.device;
    let file = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/rcvd_rnr_err");
    Ok(fs::read_to_string(&file).with_context(|| file)?.trim().parse()?)
}

/// Answers the command that selects asynchronous events, and sends one before there is a receive
/// for the host's next command, so that its send cannot be complete.
fn overtake(context: &Context, queue: &Queue, command: &Command) -> Result<()> {
    queue.carry_out(command)?;
    let before = retries(context)?;
    context.until("the host sends a command", || Ok(retries(context)? > before))?;
    // The first command need not be the one for events, which the host sends meanwhile.
    thread::sleep(context.scaled(Duration::from_millis(50)));
    queue.respond(RECEIVES - 1, EVENT_ID, 0, NAMESPACES_CHANGED)?;
    // It has arrived before the host's command finds a receive.
    let is_sent = |event: &Event| match event {
        Event::Dto(dto) => dto.operation == DtoOperation::Send && dto.cookie == u64::from(EVENT_ID),
        _ => false,
    };
    while !is_sent(&context.next(&queue.end.recv)?) {}
    Ok(())
}

/// The admin queue of the controller has one receive at a time.
fn event_overtakes(context: &Context) -> Result<()> {
    let target = Target::of(context, Pair::of_our_host()[0], PortSettings::default())?;
    let log = KernelLog::from_now()?;
    let commands = AtomicUsize::new(0);
    let hook = |context: &Context, queue: &Queue, command: &Command| {
        match (queue.number, command.opcode()) {
            (0, ASYNC_EVENT) => {
                commands.fetch_add(1, SeqCst);
            }
            (0, SET_FEATURES) if command.number(40) == EVENTS => {
                overtake(context, queue, command)?;
                return Ok(Reaction::Done);
            }
            _ => {}
        }
        Ok(Reaction::Usual)
    };
    serve(context, 1, &hook, |port| {
        let options = format!("traddr={},trsvcid={port},nqn={NQN}", target.address);
        let controller = target.connect_by(&format!("{options},nr_io_queues=1"))?;
        context.until("the next command for events", || Ok(commands.load(SeqCst) == 2))?;
        same("byte", controller.disk(context)?.read(0, 512)?[0], CONTENT)?;
        same("state", controller.attribute("state")?.as_str(), "live")
    })?;
    let text = log.rest()?;
    ensure!(!text.contains("error recovery"), "the connection was lost:\n{text}");
    Ok(())
}

fn answers_twice(context: &Context) -> Result<()> {
    reported(context, libc::EIO, "a response has no command", |port| {
        let fake = Fake::new(context, port)?;
        // A success: after a refusal the host might end the queue before the second one.
        fake.respond(context, fake.command_id(), 0, 16)?;
        fake.respond(context, fake.command_id(), 0, 16)?;
        end_of(context, &fake)
    })
}

fn short_response(context: &Context) -> Result<()> {
    reported(context, libc::EIO, "a response is short", |port| {
        let fake = Fake::new(context, port)?;
        fake.respond(context, fake.command_id(), 0, 12)?;
        end_of(context, &fake)
    })
}

fn foreign_key(context: &Context) -> Result<()> {
    attack(context, libc::EIO, |port| {
        let fake = Fake::new(context, port)?;
        let [.., k0, k1, k2, k3, _] = *fake.command.first_chunk::<40>().expect("a command");
        let key = u32::from_le_bytes([k0, k1, k2, k3]);
        fake.respond_with_key(key ^ 0x100)?;
        Ok(())
    })
    .map(drop)
}
