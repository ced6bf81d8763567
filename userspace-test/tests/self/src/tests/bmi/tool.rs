// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bmi`, and its server as a peer in another process.

use super::super::tests;
use super::{address, bytes, Side};
use crate::context::Context;
use crate::expect::same;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl_bmi::{Options, Peer};
use nix::sys::signal::{kill, Signal};
use nix::unistd::{pipe, Pid};
use serde_json::Value;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output};

tests! {
    #[Transport]
    measures, 240, "kdapl-bmi measures round trips, throughput and lists; for people and as JSON";
    #[Transport]
    left_at_the_end, 60, "kdapl-bmi reports the messages of a client that leaves before the last one";
    errors, 60, "kdapl-bmi says what is wrong with its arguments, its address and its peer";
    c_consumer, 120, "A C program makes each call of bmi.h, and gets the results that it documents";
    c_arguments, 60, "Each call of bmi.h refuses wrong arguments with BMI's number, before and after the library is initialized, too";
    completions, 20, "kdapl-bmi prints completions for bash, zsh and fish, and the schema of its output";
}

/// Kinds of requests.
const ECHO: u32 = 0;
const SINK: u32 = 1;

/// A server in a process of its own. It is killed when dropped.
pub struct Server {
    child: RefCell<Child>,
    /// Standard output and error: a failed client is reported in the latter.
    output: RefCell<BufReader<File>>,
}

impl Server {
    /// Starts a server, and waits until it listens.
    pub fn start(context: &Context, address: &str) -> Result<Self> {
        let mut command = Command::new("kdapl-bmi");
        command.args(["serve", address, "--with-parent", "--device", &context.server.device]);
        if context.loses_reads() {
            command.arg("--push");
        }
        let (reader, writer) = pipe()?;
        command.stdout(writer.try_clone()?).stderr(writer);
        let child = context.server.inside(|| command.spawn())??;
        // The output ends with the child, if this process has no writer.
        drop(command);
        let mut output = BufReader::new(File::from(reader));
        let mut line = String::new();
        output.read_line(&mut line)?;
        ensure!(line.starts_with("Listening at"), "the server printed {line:?}");
        Ok(Self { child: RefCell::new(child), output: RefCell::new(output) })
    }

    /// Returns the number of the process.
    pub fn process(&self) -> i32 {
        self.child.borrow().id() as i32
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.process()), signal)?)
    }

    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.child.borrow_mut().wait()?;
        Ok(())
    }

    /// Returns the next line of the output.
    fn line(&self) -> Result<String> {
        let mut line = String::new();
        self.output.borrow_mut().read_line(&mut line)?;
        Ok(line)
    }

    /// Lets the server return one message, and compares it.
    pub fn echo(&self, side: &Side, peer: &Peer, length: usize) -> Result<()> {
        let ready = side.context.receive(peer, 0, &[], 0)?;
        request(side, peer, ECHO, length)?;
        side.done(ready, 0)?;
        let (message, reply) = (side.bmi.alloc(length)?, side.bmi.alloc(length)?);
        message.buffer().fill(0, length, length as u8 | 1);
        let receive = side.context.receive(peer, 2, &[reply.whole()], 0)?;
        let send = side.context.send(peer, 1, &[message.whole()], 0)?;
        side.done(receive, length)?;
        side.done(send, length)?;
        let complete = side.context.receive(peer, 3, &[], 0)?;
        side.done(complete, 0)?;
        ensure!(bytes(&reply, length) == bytes(&message, length), "a wrong byte");
        let line = self.line()?;
        ensure!(line.contains("1 messages of"), "the server printed {line:?}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        // It may have ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Asks a server to return or to take one message.
fn request(side: &Side, peer: &Peer, kind: u32, length: usize) -> Result<()> {
    let mut request = b"KDAPLBM1".to_vec();
    for word in [kind, 1, length as u32, 0, 1, 0] {
        request.extend(word.to_le_bytes());
    }
    let memory = side.bmi.alloc(request.len())?;
    memory.buffer().write(0, &request);
    let sent = side.context.send_unexpected(peer, 0, &[memory.part(0, request.len())], 0)?;
    side.done(sent, request.len())
}

/// Runs the tool at the client's host.
fn run(context: &Context, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new("kdapl-bmi");
    Ok(context.client.inside(|| command.args(arguments).output())??)
}

/// Returns the output of a command that succeeds.
fn succeeds(context: &Context, arguments: &[&str]) -> Result<String> {
    let Output { status, stdout, stderr } = run(context, arguments)?;
    let errors = String::from_utf8_lossy(&stderr);
    ensure!(status.success(), "{arguments:?}: {status}: {errors}");
    Ok(String::from_utf8(stdout)?)
}

/// Checks that a command fails with this status, and says this.
fn fails(context: &Context, arguments: &[&str], status: i32, text: &str) -> Result<()> {
    let output = run(context, arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    same("status", output.status.code(), Some(status))
        .with_context(|| format!("{arguments:?}: {errors}"))?;
    ensure!(errors.contains(text), "{arguments:?} lacks '{text}': {errors}");
    Ok(())
}

fn measures(context: &Context) -> Result<()> {
    let address = address(context);
    let server = Server::start(context, &address)?;
    let device = context.client.device.as_str();
    let at = ["--device", device, address.as_str()];
    let ping = ["ping", "-n", "50"];
    let text = succeeds(context, &[&ping[..], &at].concat())?;
    ensure!(text.contains("50 round trips of 1024 bytes") && text.contains("p99"), "{text}");
    server.line()?;
    let size = if context.link_is_spoilt() { "20000" } else { "300000" };
    let push: &[&str] = if context.loses_reads() { &["--push"] } else { &[] };
    let bandwidth = ["bandwidth", "--json", "-n", "20", "-s", size];
    let text = succeeds(context, &[&bandwidth[..], &at, push].concat())?;
    let outcomes: Value = serde_json::from_str(&text)?;
    for (index, direction) in ["to", "from"].iter().enumerate() {
        let outcome = &outcomes[index];
        same("direction", outcome["direction"].as_str(), Some(*direction))?;
        ensure!(outcome["mib_per_second"].as_f64() > Some(0.0), "{outcome}");
        server.line()?;
    }
    let pattern = ["pattern", "--json", "-n", "16", "--region", "512"];
    let text = succeeds(context, &[&pattern[..], &at, push].concat())?;
    let outcome: Value = serde_json::from_str(&text)?;
    same("buffers", outcome["buffers"].as_u64(), Some(16))?;
    let line = server.line()?;
    ensure!(line.contains("16 messages of 32 KiB returned"), "the server printed {line:?}");
    server.signal(Signal::SIGINT)?;
    let status = server.child.borrow_mut().wait()?;
    same("status of the server after SIGINT", status.code(), Some(0))
}

/// The answer to the request takes the client's only credit, so the server cannot send its last
/// message. The message is too long for a buffer of the server, so its send ends after the server's
/// receive has got it: a short one that the server has not taken would be lost with the connection.
fn left_at_the_end(context: &Context) -> Result<()> {
    const LENGTH: usize = 20 << 10;
    let address = address(context);
    let server = Server::start(context, &address)?;
    let options = Options { window: 1, ..Options::default() };
    let client = Side::open(context, &context.client, &options)?;
    let peer = client.bmi.lookup(&address)?;
    request(&client, &peer, SINK, LENGTH)?;
    let message = client.random(context, LENGTH)?;
    let sent = client.context.send(&peer, 1, &[message.part(0, LENGTH)], 0)?;
    client.done(sent, LENGTH)?;
    peer.disconnect();
    let line = server.line()?;
    ensure!(line.ends_with(": 1 messages of 20 KiB received\n"), "the server printed {line:?}");
    Ok(())
}

fn errors(context: &Context) -> Result<()> {
    let nobody = address(context);
    let device = context.client.device.as_str();
    fails(context, &["ping"], 2, "required arguments")?;
    let malformed = ["ping", "--device", device, "tcp://10.0.0.1:1"];
    fails(context, &malformed, 1, "an address is kdapl://HOST:PORT")?;
    fails(context, &["ping", "--device", device, &nobody], 1, "does a BMI server listen")?;
    fails(context, &["ping", "--device", "nothing0", &nobody], 1, "no RDMA device with that name")?;
    let output = run(context, &["ping", "--json", "--device", device, &nobody])?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    same("status", report["exit_status"].as_u64(), Some(1))?;
    same("command", report["command"].as_str(), Some("ping"))
}

fn c_consumer(context: &Context) -> Result<()> {
    // The server is a child of the client.
    c_program(context, "bmi-consumer")
}

fn c_arguments(context: &Context) -> Result<()> {
    c_program(context, "bmi-arguments")
}

fn c_program(context: &Context, name: &str) -> Result<()> {
    let place = std::net::SocketAddr::new(context.client.address, context.port() as u16);
    let mut command = Command::new(name);
    command.arg(format!("kdapl://{place}")).env("KDAPL_BMI_ADAPTER", &context.client.device);
    let output = context.client.inside(|| command.output())??;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", output.status);
    same("output", &*String::from_utf8_lossy(&output.stdout), "done\n")
}

fn completions(context: &Context) -> Result<()> {
    for shell in ["bash", "zsh", "fish"] {
        let text = succeeds(context, &["completions", shell])?;
        ensure!(text.contains("bandwidth"), "{shell}: {text}");
    }
    let schema: Value = serde_json::from_str(&succeeds(context, &["schema"])?)?;
    for command in ["ping", "bandwidth", "pattern", "serve: first line", "error"] {
        if schema[command].is_null() {
            bail!("the schema lacks {command}");
        }
    }
    Ok(())
}
