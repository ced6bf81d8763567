// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Plain `rdma_cm` programs without kDAPL: `rdmacm-peer` and `rping`.

use crate::context::Context;
use crate::end::End;
use crate::expect::{done, same};
use crate::harness::skip;
use crate::hosts::Host;
use crate::machine::NOBODY;
use crate::repeat::unheard;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{DtoOperation, Segment};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A running program whose output is read.
pub struct Plain {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Plain {
    /// Starts `rdmacm-peer listen` on `port` of the server's host. Returns when it listens.
    pub fn listen(context: &Context, port: u64, arguments: &[&str]) -> Result<Self> {
        // On all addresses, siw would listen twice if it has two devices.
        let (address, port) = (context.server_address().to_string(), port.to_string());
        let at = ["listen", "--address", &address, "--port", &port];
        let arguments = [&at, arguments].concat();
        let mut plain = Self::peer(context, &context.server, &arguments)?;
        plain.says(&format!("listening {port}"))?;
        Ok(plain)
    }

    /// Starts `rdmacm-peer connect` to `port` of the server's host, from the client's host.
    pub fn connect(context: &Context, port: u64, arguments: &[&str]) -> Result<Self> {
        let (address, port) = (context.server_address().to_string(), port.to_string());
        let to = ["connect", "--address", &address, "--port", &port];
        Self::peer(context, &context.client, &[&to, arguments].concat())
    }

    fn peer(context: &Context, host: &Host, arguments: &[&str]) -> Result<Self> {
        let seconds = context.patience().as_secs().to_string();
        Self::start(host, "rdmacm-peer", &[arguments, &["--timeout", &seconds]].concat())
    }

    pub fn start(host: &Host, program: &str, arguments: &[&str]) -> Result<Self> {
        Self::start_command(host, program, Command::new(program).args(arguments))
    }

    /// Starts a program as an ordinary user without capabilities.
    pub fn start_unprivileged(host: &Host, program: &str, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        Self::start_command(host, program, command.args(arguments).uid(NOBODY).gid(NOBODY))
    }

    fn start_command(host: &Host, program: &str, command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = match host.inside(|| command.spawn())? {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return skip(format!("there is no program '{program}'"));
            }
            other => other?,
        };
        let output = child.stdout.take().map(BufReader::new).context("no pipe")?;
        Ok(Self { child, output })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Checks that its next line is `expected`.
    pub fn says(&mut self, expected: &str) -> Result<()> {
        let mut line = String::new();
        // It has printed the reason on standard error, which it shares with the test.
        if self.output.read_line(&mut line)? == 0 {
            unheard!("the plain program ended before it printed '{expected}'");
        }
        same("output of the plain program", line.trim_end(), expected)
    }

    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits for its end. Returns its status and the rest of its output.
    pub fn ends(mut self) -> Result<(ExitStatus, String)> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        Ok((self.child.wait()?, rest))
    }

    /// Checks that it ends with status 0 and prints no more.
    pub fn succeeds(self) -> Result<()> {
        let (status, rest) = self.ends()?;
        if !status.success() || !rest.is_empty() {
            unheard!("the plain program ended with {status} and printed '{rest}'");
        }
        Ok(())
    }

    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Length of a message of the exchange, and of the memory for RDMA.
const MESSAGE: usize = 64;
const REGION: usize = 16_384;
/// Number of receives that are kept posted. They start at the beginning of the memory.
const RECEIVES: usize = 2;
/// Offsets of the sent message, of the target of the peer's writes, and of the source of ours.
const SENT: usize = RECEIVES * MESSAGE;
const TARGET: usize = 4096;
const SOURCE: usize = TARGET + REGION;

/// The peer's exchange (`tests/interop/exchange.c`), run by an endpoint.
pub struct Exchange<'a> {
    pub context: &'a Context,
    pub end: &'a End,
    /// This side connected, so it sends first.
    pub first: bool,
    /// The peer's messages have their round as immediate data as well.
    pub immediate: bool,
}

impl Exchange<'_> {
    /// Posts the receives, before the connection: no message may arrive without one.
    pub fn prepare(&self) -> Result<()> {
        (0..RECEIVES as u64).try_for_each(|slot| self.receive(slot))
    }

    fn receive(&self, slot: u64) -> Result<()> {
        self.end.receive(slot as usize * MESSAGE, MESSAGE, slot)
    }

    /// Runs all `rounds`, and checks every byte.
    pub fn run(&self, rounds: u32) -> Result<()> {
        if self.first {
            self.say(0)?;
            self.finished(1)?;
        }
        for round in 0..rounds + u32::from(!self.first) {
            let (remote, slot) = self.hear(round)?;
            // Before the first message, the peer wrote nothing.
            if self.first || round > 0 {
                self.check(round)?;
            }
            if !self.first && round == rounds {
                // The peer may have disconnected already.
                break;
            }
            self.receive(slot)?;
            let answer = round + u32::from(self.first);
            self.write(answer, remote)?;
            self.say(answer)?;
            self.finished(2)?;
        }
        Ok(())
    }

    fn say(&self, round: u32) -> Result<()> {
        let target = self.end.lmr.remote_segment(TARGET, REGION);
        let mut message = encode(target);
        message.extend(round.to_be_bytes());
        message.resize(MESSAGE, 0);
        self.end.lmr.buffer().write(SENT, &message);
        self.end.send(SENT, MESSAGE, 0)
    }

    /// Takes the next message. Returns the location of the peer's memory, and the slot that can
    /// receive again.
    fn hear(&self, round: u32) -> Result<(Segment, u64)> {
        let event = self.context.next(&self.end.recv)?;
        // Network byte order: the bytes are those of the peer's memory.
        let (operation, immed_data) = match self.immediate {
            true => (DtoOperation::RecvMsgImmed, Some(round.to_be())),
            false => (DtoOperation::Receive, None),
        };
        let dto = crate::expect::dto(&event, operation, libkdapl::DtoStatus::Success)?;
        same("immediate data", dto.immed_data, immed_data)?;
        same("length of the message", dto.length, MESSAGE as u64)?;
        let message = self.end.lmr.buffer().to_vec(dto.cookie as usize * MESSAGE, MESSAGE);
        same("round of the message", &message[16..20], &round.to_be_bytes()[..])?;
        Ok((decode(&message)?, dto.cookie))
    }

    fn write(&self, round: u32, remote: Segment) -> Result<()> {
        same("length of the peer's memory", remote.length as usize, REGION)?;
        self.end.lmr.buffer().write(SOURCE, &bytes(round, self.first));
        self.end.write(SOURCE, REGION, remote, 0)
    }

    fn check(&self, round: u32) -> Result<()> {
        let found = self.end.lmr.buffer().to_vec(TARGET, REGION);
        let right = bytes(round, !self.first);
        let wrong = found.iter().zip(&right).position(|(found, right)| found != right);
        ensure!(wrong.is_none(), "round {round}: byte {wrong:?} of the RDMA write is wrong");
        Ok(())
    }

    fn finished(&self, requests: u32) -> Result<()> {
        for _ in 0..requests {
            let event = self.context.next(&self.end.request)?;
            let libkdapl::Event::Dto(dto) = event else { bail!("expected a DTO, got {event}") };
            let length = if dto.operation == DtoOperation::Send { MESSAGE } else { REGION };
            done(&event, dto.operation, length as u64, 0)?;
        }
        Ok(())
    }
}

fn bytes(round: u32, first: bool) -> Vec<u8> {
    let salt = if first { 1 } else { 128 };
    (0..REGION).map(|i| (round as usize * 31 + i * 7 + (i >> 8) + salt) as u8).collect()
}

/// Encodes address, key and length in network byte order, as `rping` does.
pub fn encode(segment: Segment) -> Vec<u8> {
    let mut bytes = segment.address.to_be_bytes().to_vec();
    bytes.extend(segment.context.to_be_bytes());
    bytes.extend(segment.length.to_be_bytes());
    bytes
}

pub fn decode(bytes: &[u8]) -> Result<Segment> {
    let (Some(address), Some(context), Some(length)) = (
        bytes.first_chunk(),
        bytes.get(8..).and_then(|rest| rest.first_chunk()),
        bytes.get(12..).and_then(|rest| rest.first_chunk()),
    ) else {
        bail!("{} bytes are too few for a memory location", bytes.len());
    };
    Ok(Segment {
        address: u64::from_be_bytes(*address),
        context: u32::from_be_bytes(*context),
        length: u32::from_be_bytes(*length),
    })
}
