// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The echo server of docs/samples, which serves up to a thousand connections in one thread.

use super::super::tests;
use crate::context::Context;
use crate::expect::{connection, same};
use crate::plain::Plain;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Buffer, Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, EpConfig,
    Evd, EvdFlags, Event, Ia, Lmr, Privileges, Pz,
};

tests! {
    #[Long]
    by_a_ring, 900, "A server of up to a thousand connections has one thread and one ring, and each message comes back";
    #[Long]
    by_waits, 900, "The same server by waits on an EVD";
}

/// Most connections. On a slow kernel each costs a third of a second.
const CONNECTIONS: u64 = 1000;
const ROUNDS: u64 = 3;
/// Bytes of a message.
const SIZE: usize = 64;
/// Number of connects at once.
const WAVE: usize = 50;

/// The clients of all connections.
struct Clients {
    eps: Vec<Ep>,
    evd: Evd,
    /// A sent and a received message for each connection.
    memory: Lmr,
    pz: Pz,
    ia: Ia,
}

/// Returns the number of connections: a number of whole waves.
fn connections(context: &Context) -> usize {
    let most = context.count(10 * CONNECTIONS).min(CONNECTIONS) as usize;
    most.next_multiple_of(WAVE)
}

impl Clients {
    fn new(context: &Context, connections: usize) -> Result<Self> {
        let ia = context.open()?;
        let pz = ia.create_pz()?;
        let evd = ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 4 * connections as i32)?;
        let memory = ia.register(&pz, Buffer::new(2 * connections * SIZE)?, Privileges::ALL)?;
        Ok(Self { eps: Vec::with_capacity(connections), evd, memory, pz, ia })
    }

    fn connect(&mut self, context: &Context, port: u64, connections: usize) -> Result<()> {
        let attr = EpAttr { max_recv_dtos: 2, max_request_dtos: 2, ..Default::default() };
        let evd = Some(&self.evd);
        let config = EpConfig {
            pz: Some(&self.pz),
            recv: evd,
            request: evd,
            connect: evd,
            attr: Some(attr),
            ..Default::default()
        };
        while self.eps.len() < connections {
            let wave = WAVE.min(connections - self.eps.len());
            for _ in 0..wave {
                let ep = self.ia.create_ep_with(&config)?;
                ep.connect(context.server_address(), port, Some(context.patience()), b"")?;
                self.eps.push(ep);
            }
            for _ in 0..wave {
                connection(&context.next(&self.evd)?, ConnectionEvent::Established)?;
            }
        }
        Ok(())
    }

    /// Offset of the sent message of a connection; the received one follows.
    fn offset(place: usize) -> usize {
        2 * place * SIZE
    }

    /// Sends a message on each connection, and waits for all of them to come back.
    fn round(&self, context: &Context, round: u64) -> Result<()> {
        let none = CompletionFlags::default();
        for (place, ep) in self.eps.iter().enumerate() {
            let (sent, received) = (Self::offset(place), Self::offset(place) + SIZE);
            let number = (round << 32) | place as u64;
            self.memory.buffer().write(sent, &number.to_le_bytes());
            ep.post_recv(&[self.memory.segment(received, SIZE)], place as u64, none)?;
            ep.post_send(&[self.memory.segment(sent, SIZE)], place as u64, none)?;
        }
        let mut back = vec![0_u32; self.eps.len()];
        for _ in 0..2 * self.eps.len() {
            match context.next(&self.evd)? {
                Event::Dto(dto) if dto.status == DtoStatus::Success => {
                    let place = usize::try_from(dto.cookie)?;
                    let count = back.get_mut(place).context("an unknown cookie")?;
                    *count += u32::from(dto.operation == DtoOperation::Receive);
                }
                other => bail!("expected a completion, got {other}"),
            }
        }
        ensure!(back.iter().all(|count| *count == 1), "messages came back twice or not at all");
        for place in 0..self.eps.len() {
            let mut bytes = [0; 8];
            self.memory.buffer().read(Self::offset(place) + SIZE, &mut bytes);
            same("message", u64::from_le_bytes(bytes), (round << 32) | place as u64)?;
        }
        Ok(())
    }

    fn disconnect(&self, context: &Context) -> Result<()> {
        self.eps.iter().try_for_each(|ep| ep.disconnect(Close::Graceful))?;
        for _ in &self.eps {
            connection(&context.next(&self.evd)?, ConnectionEvent::Disconnected)?;
        }
        Ok(())
    }
}

/// Runs as another process: connects, and sends messages for so many rounds, or without an end.
pub fn caller(context: &Context, port: u64, connections: i64, rounds: Option<u64>) -> Result<()> {
    let connections = usize::try_from(connections)?;
    let mut clients = Clients::new(context, connections)?;
    clients.connect(context, port, connections)?;
    (0..rounds.unwrap_or(u64::MAX)).try_for_each(|round| clients.round(context, round))?;
    clients.disconnect(context)?;
    println!("echoed");
    Ok(())
}

fn served(context: &Context, way: &str) -> Result<()> {
    let connections = connections(context);
    let (port, device) = (context.port(), context.server.device.clone());
    let arguments = [&device, &port.to_string()[..], &connections.to_string(), way];
    let mut server = Plain::start(&context.server, "kdapl-echo-server", &arguments)?;
    server.says("listening")?;
    let mut clients = Clients::new(context, connections)?;
    clients.connect(context, port, connections)?;
    (0..ROUNDS).try_for_each(|round| clients.round(context, round))?;
    clients.disconnect(context)?;
    let (status, rest) = server.ends()?;
    ensure!(status.success(), "the server has ended with {status}");
    let messages = ROUNDS * connections as u64;
    same("output", rest.trim_end(), &format!("{connections} connections, {messages} messages"))
}

fn by_a_ring(context: &Context) -> Result<()> {
    served(context, "ring")
}

fn by_waits(context: &Context) -> Result<()> {
    served(context, "waits")
}
