// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A server of 1,000 connections in one thread, by one io_uring, compared with waits on its EVD.
//!
//! The server is `docs/samples/echo_server.rs`. This program sends a message on each connection,
//! and waits until all have come back. The clock includes both programs and the driver.

use crate::benchmark::Sink;
use crate::ends::{arrived, established, Ends, PATIENCE};
use crate::sample::Sample;
use anyhow::{ensure, Context, Result};
use libkdapl::{
    Buffer, Close, DtoOperation, Ep, EpAttr, EpConfig, Evd, EvdFlags, Event, Lmr, Privileges,
};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 1000;
const ROUNDS: u32 = 20;
const SIZE: usize = 64;
/// Number of connects at once.
const WAVE: usize = 50;
const PORT: u64 = 7190;

/// Clients of the server, with a message and its echo for each.
struct Clients {
    eps: Vec<Ep>,
    evd: Evd,
    memory: Lmr,
}

/// Starts the server, which has a thread, and waits until it listens.
fn serve(ends: &Ends, port: u64, way: &str) -> Result<Child> {
    let device = ends.ia.query()?.adapter_name;
    let mut server = Command::new("kdapl-echo-server")
        .args([&device, &port.to_string()[..], &CONNECTIONS.to_string(), way])
        .stdout(Stdio::piped())
        .spawn()
        .context("kdapl-echo-server")?;
    let mut line = String::new();
    let output = server.stdout.as_mut().context("no output")?;
    BufReader::new(output).read_line(&mut line)?;
    ensure!(line.trim_end() == "listening", "the server says: {line}");
    Ok(server)
}

impl Clients {
    fn connect(ends: &Ends, port: u64) -> Result<Self> {
        let pz = ends.ia.create_pz()?;
        let flags = EvdFlags::DTO | EvdFlags::CONNECTION;
        let evd = ends.ia.create_evd(flags, 4 * CONNECTIONS as i32)?;
        let memory = ends.ia.register(&pz, Buffer::new(2 * SIZE)?, Privileges::ALL)?;
        let config = EpConfig {
            pz: Some(&pz),
            recv: Some(&evd),
            request: Some(&evd),
            connect: Some(&evd),
            attr: Some(EpAttr { max_recv_dtos: 2, max_request_dtos: 2, ..Default::default() }),
            ..Default::default()
        };
        let mut eps = Vec::new();
        while eps.len() < CONNECTIONS {
            for _ in 0..WAVE {
                let ep = ends.ia.create_ep_with(&config)?;
                ep.connect(ends.address, port, Some(PATIENCE), b"")?;
                eps.push(ep);
            }
            for _ in 0..WAVE {
                established(&evd.wait(Some(PATIENCE), 1)?.0)?;
            }
        }
        Ok(Self { eps, evd, memory })
    }

    /// Sends a message on each connection, and waits for all echoes. Returns the time.
    fn round(&self) -> Result<Duration> {
        let start = Instant::now();
        let (sent, received) = (self.memory.segment(0, SIZE), self.memory.segment(SIZE, SIZE));
        for ep in &self.eps {
            ep.post_recv(&[received], 1, Default::default())?;
            ep.post_send(&[sent], 0, Default::default())?;
        }
        let mut echoes = 0;
        for _ in 0..2 * self.eps.len() {
            let event = self.evd.wait(Some(PATIENCE), 1)?.0;
            let operation = match &event {
                Event::Dto(dto) if dto.cookie == 1 => DtoOperation::Receive,
                _ => DtoOperation::Send,
            };
            echoes += arrived(&event, operation)?;
        }
        ensure!(echoes == self.eps.len() as u64, "{echoes} echoes");
        Ok(start.elapsed())
    }
}

/// Returns the nanoseconds of a message and its echo.
fn echo(ends: &Ends, port: u64, way: &str) -> Result<f64> {
    let mut server = serve(ends, port, way)?;
    let clients = Clients::connect(ends, port)?;
    clients.round()?;
    let mut time = Duration::ZERO;
    for _ in 0..ROUNDS {
        time += clients.round()?;
    }
    clients.eps.iter().try_for_each(|ep| ep.disconnect(Close::Abrupt))?;
    let status = server.wait()?;
    ensure!(status.success(), "the server has ended with {status}");
    Ok(time.as_secs_f64() * 1e9 / (f64::from(ROUNDS) * CONNECTIONS as f64))
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let ring = echo(&ends, PORT, "ring")?;
    let waits = echo(&ends, PORT + 1, "waits")?;
    let what = "echo of 64 bytes, 1,000 connections, one thread: io_uring beside EVD waits";
    let sample = Sample::alone("uring", what, "ns", ring, None);
    sink(Sample { peer: Some(waits), ..sample })
}
