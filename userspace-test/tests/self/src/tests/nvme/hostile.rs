// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Hostile hosts of `kdapl_nvmet.ko`: processes that speak NVMe/RDMA over kDAPL, and break its
//! rules. The connection ends, or the command is answered with an error. A good host beside does
//! not notice.

use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, connection_over, kind, same};
use crate::nvme::{Controller, Disk, PortSettings, Target, NQN};
use crate::tests::tests;
use anyhow::{bail, Context as _, Result};
use libkdapl::{ConnectionEvent, DtoStatus, Event, Type};
use std::time::Duration;

tests! { #![Nvme]
    malformed_requests, 120, "Malformed private data are rejected with the status of NVMe/RDMA";
    short_capsule, 120, "A capsule that is shorter than a command ends its connection";
    long_capsule, 120, "A capsule that is longer than the receive ends its connection";
    bad_descriptors, 120, "Descriptors of an unknown type, and in-capsule data outside the capsule, are answered with an error";
    unknown_key_for_reads, 120, "A key that does not exist, for data of the host, ends its connection";
    unknown_key_for_writes, 120, "A key that does not exist, for data for the host, ends its controller";
    too_long, 120, "A transfer above the largest is answered with an error";
    never_receives, 120, "A host that never receives responses is disconnected";
    silent, 120, "A host that connects, and sends nothing, is disconnected";
    without_keep_alive, 120, "A controller whose host sends no keep-alive ends";
    random_capsules, 300, "Random commands end with errors, or end their connection";
    killed, 300, "Hosts that vanish with commands outstanding leave nothing behind";
}

/// Target with a good host.
struct Scene {
    disk: Disk,
    _controller: Controller,
    target: Target,
}

impl Scene {
    fn new(context: &Context) -> Result<Self> {
        Self::with(context, "")
    }

    fn with(context: &Context, parameters: &'static str) -> Result<Self> {
        let settings = PortSettings { parameters, ..Default::default() };
        let target = Target::with(context, settings)?;
        let controller = target.connect("")?;
        Ok(Self { disk: controller.disk(context)?, _controller: controller, target })
    }

    /// Uses the good host.
    fn unharmed(&self) -> Result<()> {
        self.disk.write(4096, &[0x5a; 8192])?;
        same("byte of the good host", self.disk.read(4096, 512)?[0], 0x5a)
    }
}

/// Places in the memory of a hostile host.
const DATA: usize = 4096;
const RESPONSES: usize = 32 << 10;

/// Number of receives for responses, and of sends.
const DEPTH: u16 = 32;

/// Process that is a host.
struct Raw {
    end: End,
}

/// Private data of a request.
fn private_data(recfmt: u16, qid: u16, receives: u16, last_send: u16) -> [u8; 32] {
    let mut data = [0; 32];
    for (place, number) in data.chunks_mut(2).zip([recfmt, qid, receives, last_send]) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    data
}

impl Raw {
    fn unconnected(context: &Context) -> Result<Self> {
        let shape = Shape { receives: DEPTH.into(), requests: DEPTH.into(), ..Default::default() };
        Ok(Self { end: End::new(&context.open()?, shape)? })
    }

    /// Asks for a queue, and returns the outcome.
    fn ask(&self, context: &Context, target: &Target, data: &[u8]) -> Result<Event> {
        let (address, port) = (target.address, u64::from(target.port));
        self.end.ep.connect(address, port, Some(context.patience()), data)?;
        context.next(&self.end.connect)
    }

    /// Connects an admin queue.
    fn connected(context: &Context, target: &Target) -> Result<Self> {
        let raw = Self::unconnected(context)?;
        let event = raw.ask(context, target, &private_data(0, 0, DEPTH, DEPTH - 1))?;
        connection(&event, ConnectionEvent::Established)?;
        Ok(raw)
    }

    /// Connects an admin queue to a new controller.
    fn controller(context: &Context, target: &Target, keep_alive_ms: u32) -> Result<Self> {
        let raw = Self::connected(context, target)?;
        raw.receive()?;
        raw.fill_connect_data();
        raw.send(&raw.connect_command(1, keep_alive_ms), 64)?;
        same("status of the connect", raw.response(context, 1)?, 0)?;
        Ok(raw)
    }

    /// Posts a receive for a response.
    fn receive(&self) -> Result<()> {
        self.end.receive(RESPONSES, 16, 0)
    }

    /// Sends the first `length` bytes of a capsule.
    fn send(&self, command: &[u8; 64], length: usize) -> Result<()> {
        self.end.lmr.buffer().write(0, command);
        self.end.send(0, length, 1)
    }

    /// Returns the status of the next response, which is for `command_id`.
    fn response(&self, context: &Context, command_id: u16) -> Result<u16> {
        match context.next(&self.end.recv)? {
            Event::Dto(dto) if dto.status == DtoStatus::Success && dto.length == 16 => {}
            other => bail!("expected a response, got {other}"),
        }
        let bytes = self.end.lmr.buffer().to_vec(RESPONSES, 16);
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        same("command of the response", number(12), command_id)?;
        Ok(number(14) >> 1)
    }

    /// Waits for the end of the connection.
    fn ended(&self, context: &Context) -> Result<()> {
        connection_over(&context.next(&self.end.connect)?)
    }

    /// Fills the data of a Connect command.
    fn fill_connect_data(&self) {
        let mut data = [0; 1024];
        data[..16].fill(0x11);
        data[16..18].fill(0xff);
        for (place, name) in [(256, NQN), (512, "nqn.2026-11.test:raw")] {
            data[place..place + name.len()].copy_from_slice(name.as_bytes());
        }
        self.end.lmr.buffer().write(DATA, &data);
    }

    /// Returns a Connect command of an admin queue.
    fn connect_command(&self, id: u16, keep_alive_ms: u32) -> [u8; 64] {
        let memory = self.end.lmr.remote_segment(DATA, 1024);
        let mut bytes = command(0x7f, 1, id);
        bytes[24..40].copy_from_slice(&keyed(memory.address, 1024, memory.context));
        bytes[44..46].copy_from_slice(&(DEPTH - 1).to_le_bytes());
        bytes[48..52].copy_from_slice(&keep_alive_ms.to_le_bytes());
        bytes
    }
}

/// Returns a command without data.
fn command(opcode: u8, fabrics_type: u8, id: u16) -> [u8; 64] {
    let mut bytes = [0; 64];
    (bytes[0], bytes[1], bytes[4], bytes[39]) = (opcode, 0x40, fabrics_type, 0x40);
    bytes[2..4].copy_from_slice(&id.to_le_bytes());
    bytes
}

/// Returns a keyed descriptor.
fn keyed(address: u64, length: u32, key: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    bytes[8..11].copy_from_slice(&length.to_le_bytes()[..3]);
    bytes[11..15].copy_from_slice(&key.to_le_bytes());
    bytes[15] = 0x40;
    bytes
}

fn malformed_requests(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    for (data, status) in [
        (private_data(1, 0, 32, 31), 2),
        (private_data(0, 0, 32, 32), 4),
        (private_data(0, 0, 33, 31), 5),
        (private_data(0, 1, 0, 31), 5),
        (private_data(0, 1, 32, 256), 4),
        (private_data(0, 1, 32, u16::MAX), 4),
        ([0; 32], 5),
    ] {
        let raw = Raw::unconnected(context)?;
        let event = raw.ask(context, &scene.target, &data)?;
        connection(&event, ConnectionEvent::PeerRejected)?;
        let reason = raw.end.ep.private_data()?;
        same("status of the reject", reason.get(..4), Some(&[0, 0, status, 0][..]))?;
    }
    scene.unharmed()
}

fn short_capsule(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    for length in [0, 1, 63] {
        let raw = Raw::connected(context, &scene.target)?;
        raw.send(&command(0x7f, 1, 1), length)?;
        raw.ended(context)?;
    }
    scene.unharmed()
}

fn long_capsule(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let raw = Raw::connected(context, &scene.target)?;
    raw.send(&command(0x7f, 1, 1), 65)?;
    raw.ended(context)?;
    scene.unharmed()
}

fn bad_descriptors(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let raw = Raw::connected(context, &scene.target)?;
    let mut id = 0;
    // An unknown type, a segment descriptor, unknown subtypes, and data that the capsule has not.
    for (kind, expected) in
        [(0x10, 0x4011), (0x20, 0x4011), (0x42, 0x4002), (0x00, 0x4002), (0x01, 0x4016)]
    {
        id += 1;
        raw.receive()?;
        let mut bytes = raw.connect_command(id, 0);
        bytes[24..32].fill(0);
        bytes[39] = kind;
        raw.send(&bytes, 64)?;
        same(
            &format!("status for the descriptor {kind:#x}"),
            raw.response(context, id)?,
            expected,
        )?;
    }
    raw.receive()?;
    raw.fill_connect_data();
    raw.send(&raw.connect_command(99, 0), 64)?;
    same("status of a good command after it", raw.response(context, 99)?, 0)?;
    scene.unharmed()
}

fn unknown_key_for_reads(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let raw = Raw::connected(context, &scene.target)?;
    raw.receive()?;
    let mut bytes = raw.connect_command(1, 0);
    bytes[24..40].copy_from_slice(&keyed(0x1000, 1024, 0xdead_beef));
    raw.send(&bytes, 64)?;
    raw.ended(context)?;
    scene.unharmed()
}

fn unknown_key_for_writes(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let raw = Raw::controller(context, &scene.target, 0)?;
    raw.receive()?;
    // Property Set: the controller is enabled.
    let mut enable = command(0x7f, 0, 2);
    enable[44..48].copy_from_slice(&0x14_u32.to_le_bytes());
    enable[48..56].copy_from_slice(&0x46_0001_u64.to_le_bytes());
    raw.send(&enable, 64)?;
    same("status of the enabling", raw.response(context, 2)?, 0)?;
    raw.receive()?;
    // Identify the controller.
    let mut identify = command(0x06, 0, 3);
    identify[24..40].copy_from_slice(&keyed(0x1000, 4096, 0xdead_beef));
    identify[40] = 1;
    raw.send(&identify, 64)?;
    raw.ended(context)?;
    scene.unharmed()
}

fn too_long(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let raw = Raw::connected(context, &scene.target)?;
    for (id, length) in [(1, (1 << 20) + 1), (2, 0xff_ffff)] {
        raw.receive()?;
        let mut bytes = raw.connect_command(id, 0);
        let memory = raw.end.lmr.remote_segment(DATA, 1024);
        bytes[24..40].copy_from_slice(&keyed(memory.address, length, memory.context));
        raw.send(&bytes, 64)?;
        same("status", raw.response(context, id)?, 0x4002)?;
    }
    scene.unharmed()
}

fn never_receives(context: &Context) -> Result<()> {
    let scene = Scene::with(context, "connect_timeout_ms=1500")?;
    let raw = Raw::connected(context, &scene.target)?;
    for id in 1..DEPTH {
        raw.send(&command(0x06, 0, id), 64)?;
    }
    scene.unharmed()?;
    raw.ended(context)?;
    scene.unharmed()
}

fn silent(context: &Context) -> Result<()> {
    let scene = Scene::with(context, "connect_timeout_ms=1500")?;
    let raw = Raw::connected(context, &scene.target)?;
    raw.ended(context)?;
    scene.unharmed()
}

fn without_keep_alive(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let raw = Raw::controller(context, &scene.target, 1000)?;
    raw.ended(context)?;
    scene.unharmed()
}

fn random_capsules(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    for _ in 0..context.count(100) {
        let raw = Raw::connected(context, &scene.target)?;
        for id in 1..DEPTH {
            let mut bytes = [0; 64];
            context.rng().fill(&mut bytes);
            if context.rng().bool() {
                // A valid command but for its descriptor, which the core does not refuse itself.
                bytes[..24].copy_from_slice(&raw.connect_command(id, 0)[..24]);
                bytes[39] = [0x01, 0x40, 0x4f][context.rng().usize(0..3)];
            }
            let length = context.rng().usize(60..65);
            match raw.receive().and_then(|()| raw.send(&bytes, length)) {
                Ok(()) => {}
                // The connection ends meanwhile.
                Err(error) if kind(&error) == Some(Type::INVALID_STATE) => break,
                Err(error) => return Err(error),
            }
        }
        drop(raw);
    }
    scene.unharmed()
}

fn killed(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    for round in 0..context.count(100) {
        let raw = Raw::connected(context, &scene.target)?;
        raw.fill_connect_data();
        for id in 1..DEPTH {
            let sent = raw.send(&raw.connect_command(id, 0), 64);
            sent.with_context(|| format!("command {id} of round {round}"))?;
        }
        std::thread::sleep(Duration::from_micros(context.rng().u64(0..5000)));
        // The adapter is closed with all that is outstanding, as at the end of a process.
        drop(raw);
    }
    scene.unharmed()
}
