// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest transaction`: sends, RDMA Writes and RDMA Reads of random sizes over many
//! connections. The receiving side verifies every byte.

use crate::cli::TransactionArgs;
use crate::client::{finish, Target};
use crate::pattern;
use crate::protocol::{Command, Mode, Request, Verb, COMMAND_BYTES};
use crate::side::{successful, Plan, Side};
use crate::threads;
use anyhow::{bail, ensure, Context, Result};
use fastrand::Rng;
use libkdapl::{CompletionFlags, DtoOperation, Segment};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Instant;
use toolkit::limit::Limit;
use toolkit::output::{self, say};
use toolkit::progress::Progress;
use toolkit::report::{self, grouped};
use toolkit::stop;

/// Maximum number of local segments of an operation.
const SEGMENTS_MAX: usize = 4;

/// Number of transactions of each type.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub struct Counts {
    pub send_receive: u64,
    pub rdma_write: u64,
    pub rdma_read: u64,
    pub bytes_verified: u64,
}

#[derive(Debug, JsonSchema, Serialize)]
pub struct Outcome {
    server: String,
    device: String,
    threads: u32,
    eps_per_thread: u32,
    seed: u64,
    seconds: f64,
    /// A signal ended the measurement early.
    stopped: bool,
    #[serde(flatten)]
    counts: Counts,
}

pub fn run(args: &TransactionArgs, as_json: bool) -> Result<()> {
    let target = Target::open(&args.client)?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let start = Instant::now();
    let counts = run_threads(&target, args, seed)
        .with_context(|| format!("with seed {seed} (repeat with --seed {seed})"))?;
    let outcome = Outcome {
        server: target.address.to_string(),
        device: target.device.clone(),
        threads: args.threads,
        eps_per_thread: args.eps,
        seed,
        seconds: start.elapsed().as_secs_f64(),
        stopped: stop::requested(),
        counts,
    };
    if as_json {
        return output::json(&outcome);
    }
    show(&outcome)
}

fn show(outcome: &Outcome) -> Result<()> {
    let counts = &outcome.counts;
    say(format!(
        "{} connections in {} threads to {}, {:.1} s, seed {}: all {} bytes correct.",
        outcome.threads * outcome.eps_per_thread,
        outcome.threads,
        outcome.server,
        outcome.seconds,
        outcome.seed,
        grouped(counts.bytes_verified),
    ))?;
    let rows = [
        ["", "transactions"].map(String::from).to_vec(),
        vec!["send and receive".into(), grouped(counts.send_receive)],
        vec!["RDMA write".into(), grouped(counts.rdma_write)],
        vec!["RDMA read".into(), grouped(counts.rdma_read)],
    ];
    say(report::table(&rows))
}

fn run_threads(target: &Target, args: &TransactionArgs, seed: u64) -> Result<Counts> {
    let limit = Limit::new(args.iterations, args.duration);
    let eps = u64::from(args.threads) * u64::from(args.eps);
    let progress = Progress::new("transactions", limit.total().map(|each| eps * each));
    let run = fastrand::u64(..);
    let counts = threads::run(args.threads, "--threads", |thread| {
        let rng = Rng::with_seed(seed.wrapping_add(thread.into()));
        Worker { target, args, limit, run, progress: &progress }.work(rng)
    })?;
    Ok(counts.into_iter().fold(Counts::default(), Counts::plus))
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            send_receive: self.send_receive + other.send_receive,
            rdma_write: self.rdma_write + other.rdma_write,
            rdma_read: self.rdma_read + other.rdma_read,
            bytes_verified: self.bytes_verified + other.bytes_verified,
        }
    }
}

/// A thread with its own connections.
struct Worker<'a> {
    target: &'a Target,
    args: &'a TransactionArgs,
    limit: Limit,
    run: u64,
    progress: &'a Progress,
}

impl Worker<'_> {
    fn work(&self, mut rng: Rng) -> Result<Counts> {
        let mut counts = Counts::default();
        let Some(mut peers) = stop::forgive(self.connect())? else { return Ok(counts) };
        let mut done = 0;
        while !self.limit.reached(done) {
            for peer in &mut peers {
                let outcome = peer.transact(&mut rng, &mut counts);
                stop::forgive(outcome.map_err(|error| peer.side.explain(error)))?;
            }
            done += 1;
            self.progress.add(self.args.eps.into());
        }
        peers.iter_mut().try_for_each(|peer| finish(&mut peer.side, Ok(())))?;
        Ok(counts)
    }

    fn connect(&self) -> Result<Vec<Peer>> {
        let connections = self.args.threads * self.args.eps;
        let size = self.args.size as usize;
        (0..self.args.eps)
            .map(|_| Peer::connect(self.target, size, self.run, connections, false))
            .collect()
    }
}

/// A connection to a server in [`Mode::Serve`].
pub struct Peer {
    pub side: Side,
    remote: Segment,
    size: usize,
    /// Maximum number of local segments of an RDMA Read; 1 over iWARP.
    read_segments: usize,
}

impl Peer {
    /// Layout of the local memory: an outgoing command with its payload, an incoming one, and the
    /// memory for RDMA.
    const OUT: usize = 0;

    fn incoming(&self) -> usize {
        COMMAND_BYTES + self.size
    }

    fn region(&self) -> usize {
        2 * self.incoming()
    }

    pub fn connect(
        target: &Target,
        size: usize,
        run: u64,
        connections: u32,
        record: bool,
    ) -> Result<Self> {
        let message = COMMAND_BYTES + size;
        let plan = Plan {
            receives: 2,
            requests: 4,
            memory: 2 * message + size,
            one_queue: true,
            poll: false,
            record,
            timeout: target.timeout,
        };
        let request = Request {
            mode: Mode::Serve,
            poll: false,
            depth: 2,
            message_size: message as u32,
            region_size: size as u32,
            pause_us: 0,
            run,
            connections,
        };
        let (side, remote) = target
            .connect(&plan, &request, |side| side.receive(side.lmr.segment(message, message), 0))?;
        let read_segments = side.ep.query()?.raw.attr.max_rdma_read_iov as usize;
        Ok(Self { side, remote, size, read_segments })
    }

    fn transact(&mut self, rng: &mut Rng, counts: &mut Counts) -> Result<()> {
        let (seed, length) = (rng.u64(..), rng.usize(1..=self.size));
        let offset = rng.usize(0..=self.size - length);
        match rng.u8(0..3) {
            0 => {
                self.send_receive(seed, length, rng)?;
                counts.send_receive += 1;
                counts.bytes_verified += length as u64;
            }
            1 => {
                self.write(seed, offset, length, rng)?;
                counts.rdma_write += 1;
            }
            _ => {
                self.read(seed, offset, length, rng)?;
                counts.rdma_read += 1;
            }
        }
        counts.bytes_verified += length as u64;
        Ok(())
    }

    /// Sends a pattern, which the server checks, and checks the reply.
    pub fn send_receive(&mut self, seed: u64, length: usize, rng: &mut Rng) -> Result<()> {
        let command = Command { verb: Verb::Echo, seed, offset: 0, length: length as u64 };
        let answer = self.ask(&command, &pattern::bytes(seed, length), rng)?;
        let wrong = pattern::first_wrong(seed.wrapping_add(1), &answer);
        ensure!(answer.len() == length, "received {} bytes instead of {length}", answer.len());
        wrong.map_or(Ok(()), |at| bail!("byte {at} of the reply is wrong"))
    }

    /// Writes a pattern to the server's memory, which the server then checks.
    pub fn write(&mut self, seed: u64, offset: usize, length: usize, rng: &mut Rng) -> Result<()> {
        let at = self.region() + offset;
        self.side.lmr.buffer().write(at, &pattern::bytes(seed, length));
        let local = self.pieces(at, length, SEGMENTS_MAX, rng);
        let remote = self.remote_piece(offset, length);
        self.side.ep.post_rdma_write(&local, remote, seed, CompletionFlags::default())?;
        self.finished(DtoOperation::RdmaWrite, seed, length)?;
        let (offset, length) = (offset as u64, length as u64);
        self.ask(&Command { verb: Verb::Verify, seed, offset, length }, &[], rng)?;
        Ok(())
    }

    /// Reads a pattern that the server has written to its memory, and checks it.
    pub fn read(&mut self, seed: u64, offset: usize, length: usize, rng: &mut Rng) -> Result<()> {
        let fill = Command { verb: Verb::Fill, seed, offset: offset as u64, length: length as u64 };
        self.ask(&fill, &[], rng)?;
        let at = self.region() + offset;
        self.side.lmr.buffer().fill(at, length, 0);
        let local = self.pieces(at, length, self.read_segments, rng);
        let remote = self.remote_piece(offset, length);
        self.side.ep.post_rdma_read(&local, remote, seed, CompletionFlags::default())?;
        self.finished(DtoOperation::RdmaRead, seed, length)?;
        pattern::first_wrong(seed, &self.side.lmr.buffer().to_vec(at, length))
            .map_or(Ok(()), |at| bail!("byte {at} of the memory that was read is wrong"))
    }

    fn remote_piece(&self, offset: usize, length: usize) -> Segment {
        let Segment { address, context, .. } = self.remote;
        Segment { address: address + offset as u64, length: length as u32, context }
    }

    /// Splits `length` bytes at `at` into a random number of segments, at most `most`.
    fn pieces(&self, at: usize, length: usize, most: usize, rng: &mut Rng) -> Vec<Segment> {
        let count = rng.usize(1..=most.clamp(1, SEGMENTS_MAX)).min(length);
        let step = length / count;
        (0..count)
            .map(|piece| {
                let start = piece * step;
                let end = if piece + 1 == count { length } else { start + step };
                self.side.lmr.segment(at + start, end - start)
            })
            .collect()
    }

    fn finished(&mut self, operation: DtoOperation, cookie: u64, length: usize) -> Result<()> {
        let dto = successful(&self.side.next()?)?;
        ensure!(
            dto.operation == operation && dto.cookie == cookie && dto.length == length as u64,
            "expected the completion of {operation} of {length} bytes, got {} of {} with cookie \
             {:#x} instead of {cookie:#x}",
            dto.operation,
            dto.length,
            dto.cookie
        );
        Ok(())
    }

    /// Sends a command and returns the payload of the reply.
    fn ask(&mut self, command: &Command, payload: &[u8], rng: &mut Rng) -> Result<Vec<u8>> {
        let buffer = self.side.lmr.buffer().clone();
        buffer.write(Self::OUT, &command.encode());
        buffer.write(Self::OUT + COMMAND_BYTES, payload);
        let length = COMMAND_BYTES + payload.len();
        let pieces = self.pieces(Self::OUT, length, SEGMENTS_MAX, rng);
        self.side.ep.post_send(&pieces, command.seed, CompletionFlags::default())?;
        let answer = self.answer(command.seed, length)?;
        let decoded = Command::decode(&answer)?;
        match decoded.verb {
            Verb::Done => Ok(answer[COMMAND_BYTES..].to_vec()),
            Verb::Wrong => {
                bail!("{:?}: the server found byte {} wrong", command.verb, decoded.offset)
            }
            other => bail!("the server answers {other:?}"),
        }
    }

    /// Waits for the completion of the send and for the reply, which arrive in any order.
    fn answer(&mut self, cookie: u64, length: usize) -> Result<Vec<u8>> {
        let (mut sent, mut received) = (false, None);
        while !sent || received.is_none() {
            let dto = successful(&self.side.next()?)?;
            match dto.operation {
                DtoOperation::Send if !sent => {
                    ensure!(dto.cookie == cookie, "a send completed twice");
                    ensure!(dto.length == length as u64, "{} of {length} bytes sent", dto.length);
                    sent = true;
                }
                DtoOperation::Receive if received.is_none() => received = Some(dto.length as usize),
                other => bail!("unexpected completion of {other}"),
            }
        }
        let (incoming, message) = (self.incoming(), self.incoming());
        let bytes = self.side.lmr.buffer().to_vec(incoming, received.unwrap_or(0));
        self.side.receive(self.side.lmr.segment(incoming, message), 0)?;
        Ok(bytes)
    }
}
