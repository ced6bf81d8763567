// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Hostile hosts of `kdapl_nvmet.ko`: processes that speak NVMe/RDMA over kDAPL, and break its
//! rules. The connection ends, or the command is answered with an error. A good host beside does
//! not notice.

use super::raw::{command, keyed, private_data, Raw, DATA, DEPTH};
use crate::context::Context;
use crate::expect::{connection, kind, same};
use crate::nvme::{Controller, Disk, PortSettings, Target};
use crate::tests::tests;
use anyhow::{Context as _, Result};
use libkdapl::{ConnectionEvent, Type};
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
    failures_beside_reads, 120, "Commands that fail while the responses of large reads are held back are answered too";
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
    raw.enable(context)?;
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

/// The target has requests for the transfers of all reads at a time. Its other responses need more.
fn failures_beside_reads(context: &Context) -> Result<()> {
    /// Reads and all commands. As many reads as reserve all requests of a queue over soft-RoCE.
    const READS: u16 = 8;
    const ALL: u16 = DEPTH - 1;
    let scene = Scene::new(context)?;
    let admin = Raw::controller(context, &scene.target, 0)?;
    admin.enable(context)?;
    let queue = admin.io_queue(context, &scene.target)?;
    // The host has no receives, so that no response leaves the target.
    for id in 1..=ALL {
        let mut bytes = queue.read_command(id);
        if id > READS {
            bytes[39] = 0x10;
        }
        queue.send_and_wait(context, &bytes)?;
    }
    (1..=ALL).try_for_each(|_| queue.receive())?;
    let mut statuses = [0; ALL as usize + 1];
    for _ in 1..=ALL {
        let (id, status) = queue.any_response(context)?;
        *statuses.get_mut(usize::from(id)).context("an unknown command")? = status;
    }
    for (id, status) in statuses.into_iter().enumerate().skip(1) {
        let expected = if id > usize::from(READS) { 0x4011 } else { 0 };
        same(&format!("status of command {id}"), status, expected)?;
    }
    scene.unharmed()
}
