// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A host in this process, which speaks NVMe/RDMA over kDAPL.

use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, connection_over, done, same};
use crate::nvme::{Target, NQN};
use anyhow::{bail, Result};
use libkdapl::{ConnectionEvent, DtoOperation, DtoStatus, Event};
use std::cell::Cell;

/// Places in the memory of a host.
pub(super) const DATA: usize = 4096;
const RESPONSES: usize = 32 << 10;
const LARGE_DATA: usize = 64 << 10;

/// Bytes of the largest transfer.
const LARGEST: u32 = 1 << 20;

/// Number of receives for responses, and of sends.
pub(super) const DEPTH: u16 = 32;

/// Process that is a host.
pub(super) struct Raw {
    pub(super) end: End,
    /// Next receive. They are filled in their order.
    posted: Cell<usize>,
    filled: Cell<usize>,
    /// Identifier of the controller, on its admin queue.
    controller: Cell<u16>,
}

/// Private data of a request.
pub(super) fn private_data(recfmt: u16, qid: u16, receives: u16, last_send: u16) -> [u8; 32] {
    let mut data = [0; 32];
    for (place, number) in data.chunks_mut(2).zip([recfmt, qid, receives, last_send]) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    data
}

impl Raw {
    pub(super) fn unconnected(context: &Context) -> Result<Self> {
        let shape = Shape {
            receives: DEPTH.into(),
            requests: DEPTH.into(),
            memory: LARGE_DATA + LARGEST as usize,
            ..Default::default()
        };
        let end = End::new(&context.open()?, shape)?;
        Ok(Self { end, posted: Cell::new(0), filled: Cell::new(0), controller: Cell::new(0) })
    }

    /// Asks for a queue, and returns the outcome.
    pub(super) fn ask(&self, context: &Context, target: &Target, data: &[u8]) -> Result<Event> {
        let (address, port) = (target.address, u64::from(target.port));
        self.end.ep.connect(address, port, Some(context.patience()), data)?;
        context.next(&self.end.connect)
    }

    /// Connects an admin queue.
    pub(super) fn connected(context: &Context, target: &Target) -> Result<Self> {
        let raw = Self::unconnected(context)?;
        let event = raw.ask(context, target, &private_data(0, 0, DEPTH, DEPTH - 1))?;
        connection(&event, ConnectionEvent::Established)?;
        Ok(raw)
    }

    /// Connects an admin queue to a new controller.
    pub(super) fn controller(
        context: &Context,
        target: &Target,
        keep_alive_ms: u32,
    ) -> Result<Self> {
        let raw = Self::connected(context, target)?;
        raw.receive()?;
        raw.fill_connect_data();
        raw.send_and_wait(context, &raw.connect_command(1, keep_alive_ms))?;
        let bytes = raw.any_completion(context)?;
        same("status of the connect", &bytes[12..16], &[1, 0, 0, 0][..])?;
        raw.controller.set(u16::from_le_bytes([bytes[0], bytes[1]]));
        Ok(raw)
    }

    /// Enables the controller, by Property Set.
    pub(super) fn enable(&self, context: &Context) -> Result<()> {
        self.receive()?;
        let mut enable = command(0x7f, 0, 2);
        enable[44..48].copy_from_slice(&0x14_u32.to_le_bytes());
        enable[48..56].copy_from_slice(&0x46_0001_u64.to_le_bytes());
        self.send_and_wait(context, &enable)?;
        same("status of the enabling", self.response(context, 2)?, 0)
    }

    /// Connects an I/O queue to the controller.
    pub(super) fn io_queue(&self, context: &Context, target: &Target) -> Result<Self> {
        let raw = Self::unconnected(context)?;
        let event = raw.ask(context, target, &private_data(0, 1, DEPTH, DEPTH - 1))?;
        connection(&event, ConnectionEvent::Established)?;
        raw.receive()?;
        raw.fill_connect_data();
        raw.end.lmr.buffer().write(DATA + 16, &self.controller.get().to_le_bytes());
        let mut bytes = raw.connect_command(1, 0);
        bytes[42..44].copy_from_slice(&1_u16.to_le_bytes());
        raw.send_and_wait(context, &bytes)?;
        same("status of the queue's connect", raw.response(context, 1)?, 0)?;
        Ok(raw)
    }

    /// Returns a Read command of the largest transfer.
    pub(super) fn read_command(&self, id: u16) -> [u8; 64] {
        let memory = self.end.lmr.remote_segment(LARGE_DATA, LARGEST as usize);
        let mut bytes = command(0x02, 1, id);
        bytes[24..40].copy_from_slice(&keyed(memory.address, LARGEST, memory.context));
        bytes[48..50].copy_from_slice(&((LARGEST / 512 - 1) as u16).to_le_bytes());
        bytes
    }

    /// Posts a receive for a response.
    pub(super) fn receive(&self) -> Result<()> {
        self.end.receive(place(&self.posted), 16, 0)
    }

    /// Sends the first `length` bytes of a capsule.
    pub(super) fn send(&self, command: &[u8; 64], length: usize) -> Result<()> {
        self.end.lmr.buffer().write(0, command);
        self.end.send(0, length, 1)
    }

    /// Sends a capsule, and waits until it has arrived.
    pub(super) fn send_and_wait(&self, context: &Context, command: &[u8; 64]) -> Result<()> {
        self.send(command, 64)?;
        done(&context.next(&self.end.request)?, DtoOperation::Send, 64, 1).map(drop)
    }

    /// Returns the status of the next response, which is for `command_id`.
    pub(super) fn response(&self, context: &Context, command_id: u16) -> Result<u16> {
        let (id, status) = self.any_response(context)?;
        same("command of the response", id, command_id)?;
        Ok(status)
    }

    /// Returns the command and the status of the next response.
    pub(super) fn any_response(&self, context: &Context) -> Result<(u16, u16)> {
        let bytes = self.any_completion(context)?;
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Ok((number(12), number(14) >> 1))
    }

    fn any_completion(&self, context: &Context) -> Result<Vec<u8>> {
        match context.next(&self.end.recv)? {
            Event::Dto(dto) if dto.status == DtoStatus::Success && dto.length == 16 => {}
            other => bail!("expected a response, got {other}"),
        }
        Ok(self.end.lmr.buffer().to_vec(place(&self.filled), 16))
    }

    /// Waits for the end of the connection.
    pub(super) fn ended(&self, context: &Context) -> Result<()> {
        connection_over(&context.next(&self.end.connect)?)
    }

    /// Fills the data of a Connect command.
    pub(super) fn fill_connect_data(&self) {
        let mut data = [0; 1024];
        data[..16].fill(0x11);
        data[16..18].fill(0xff);
        for (place, name) in [(256, NQN), (512, "nqn.2026-11.test:raw")] {
            data[place..place + name.len()].copy_from_slice(name.as_bytes());
        }
        self.end.lmr.buffer().write(DATA, &data);
    }

    /// Returns a Connect command of an admin queue.
    pub(super) fn connect_command(&self, id: u16, keep_alive_ms: u32) -> [u8; 64] {
        let memory = self.end.lmr.remote_segment(DATA, 1024);
        let mut bytes = command(0x7f, 1, id);
        bytes[24..40].copy_from_slice(&keyed(memory.address, 1024, memory.context));
        bytes[44..46].copy_from_slice(&(DEPTH - 1).to_le_bytes());
        bytes[48..52].copy_from_slice(&keep_alive_ms.to_le_bytes());
        bytes
    }
}

/// Returns the place of the next response, and counts it.
fn place(number: &Cell<usize>) -> usize {
    RESPONSES + 16 * (number.replace(number.get() + 1) % usize::from(DEPTH))
}

/// Returns a command without data.
pub(super) fn command(opcode: u8, fabrics_type: u8, id: u16) -> [u8; 64] {
    let mut bytes = [0; 64];
    (bytes[0], bytes[1], bytes[4], bytes[39]) = (opcode, 0x40, fabrics_type, 0x40);
    bytes[2..4].copy_from_slice(&id.to_le_bytes());
    bytes
}

/// Returns a keyed descriptor.
pub(super) fn keyed(address: u64, length: u32, key: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    bytes[8..11].copy_from_slice(&length.to_le_bytes()[..3]);
    bytes[11..15].copy_from_slice(&key.to_le_bytes());
    bytes[15] = 0x40;
    bytes
}
