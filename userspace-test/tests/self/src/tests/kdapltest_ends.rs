// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ends of `kdapltest` before its measurement is complete: signals, a lost peer, a removed device,
//! a closed pipe, a full disk.

use super::kdapltest::SHORT;
use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::machine::{command, DeviceGuard};
use anyhow::{ensure, Context as _, Result};
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

tests! {
    #![Output]
    closed_pipe, 60, "kdapltest ends quietly when the reader of its output has closed the pipe";
    full_disk, 60, "kdapltest reports an output that cannot be written in one sentence";
    signal, 120, "The first SIGINT or SIGTERM ends each mode of kdapltest with its results so far";
    second_signal, 30, "The second SIGINT ends kdapltest at once";
    server_killed, 120, "A client of kdapltest names the server that was killed";
    client_killed, 120, "kdapltest server --once reports a client that was killed, and fails";
    clients_killed, 120, "kdapltest server outlives clients that are killed while they connect";
    busy_server, 120, "kdapltest server answers two hundred requests that come while it is stopped";
    device_removed, 120, "Client and server of kdapltest name the device that was removed";
    unknown_device, 20, "kdapltest names the devices that are present in place of an unknown one";
    downed_device, 20, "kdapltest says that its device is down, and how to bring it up";
    completions, 20, "kdapltest prints completions for bash, zsh and fish";
}

/// Exit statuses, as `kdapltest --help` lists them.
const FAILED: Option<i32> = Some(1);
const NO_DEVICE: Option<i32> = Some(3);
const INTERRUPTED: Option<i32> = Some(128 + Signal::SIGINT as i32);
const TERMINATED: Option<i32> = Some(128 + Signal::SIGTERM as i32);
const CLOSED_PIPE: Option<i32> = Some(141);

/// Number of packets of a client that measures; a connection takes fewer.
const PACKETS: u64 = 200;

/// Clients that measure for minutes.
const ENDLESS: [&[&str]; 7] = [
    &["ping", "-n", "100000000"],
    &["ping", "--poll", "-n", "100000000"],
    &["bandwidth", "-n", "100000000"],
    &["bandwidth", "-o", "write", "-D", "600"],
    &["connect", "-n", "100000", "--parallel", "8", "--data", "64"],
    &["stream", "-n", "100000000"],
    &["transaction", "-n", "100000000"],
];

/// Commands that print without a server.
const ALONE: [&[&str]; 4] = [&["--help"], &["ping", "--help"], &["--version"], &["devices"]];

/// Returns the options for the device and for a port of this test. Skips the test if client and
/// server are two hosts.
fn place(context: &Context) -> Result<Vec<String>> {
    if context.client.device != context.server.device {
        return skip("the test needs a server on the same host");
    }
    let port = context.port().to_string();
    Ok(["--device", &context.client.device, "--port", &port].map(String::from).to_vec())
}

/// A running `kdapltest`. It is killed when dropped.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    errors: ChildStderr,
}

/// The end of a `kdapltest`.
#[derive(Debug)]
struct Ended {
    status: Option<i32>,
    output: String,
    errors: String,
}

impl Running {
    fn start(arguments: &[&str], place: &[String]) -> Result<Self> {
        let mut child = Command::new("kdapltest")
            .args(arguments)
            .args(place)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().context("no pipe")?);
        let errors = child.stderr.take().context("no pipe")?;
        Ok(Self { child, output, errors })
    }

    /// Starts a server, and waits until it listens.
    fn server(arguments: &[&str], place: &[String]) -> Result<Self> {
        let mut server = Self::start(&[&["server"], arguments].concat(), place)?;
        let mut line = String::new();
        server.output.read_line(&mut line)?;
        ensure!(line.starts_with("Serving on"), "the server printed {line:?}");
        Ok(server)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.child.id() as i32), signal)?)
    }

    /// Stops the process, and waits until its client waits for it.
    fn freeze(&self) -> Result<()> {
        self.signal(Signal::SIGSTOP)?;
        std::thread::sleep(Duration::from_millis(200));
        Ok(())
    }

    fn end(mut self) -> Result<Ended> {
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output)?;
        self.errors.read_to_string(&mut errors)?;
        Ok(Ended { status: self.child.wait()?.code(), output, errors })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `kdapltest` with `output`, both as text and as JSON. Passes its status and errors to
/// `check`.
fn with_output(
    output: impl Fn() -> Result<Stdio>,
    arguments: &[&str],
    place: &[String],
    check: impl Fn(Option<i32>, &str) -> bool,
) -> Result<()> {
    for json in [&[][..], &["--json"]] {
        let mut command = Command::new("kdapltest");
        command.args(arguments).args(json).args(place).stdout(output()?);
        let ended = command.stderr(Stdio::piped()).spawn()?.wait_with_output()?;
        let (status, errors) = (ended.status.code(), String::from_utf8_lossy(&ended.stderr));
        ensure!(check(status, &errors), "{arguments:?} {json:?}: {status:?}: {errors}");
    }
    Ok(())
}

/// Runs all commands with `output`.
fn each_with_output(
    context: &Context,
    output: impl Fn() -> Result<Stdio>,
    check: impl Fn(Option<i32>, &str) -> bool,
) -> Result<()> {
    let (at, mut elsewhere) = (place(context)?, place(context)?);
    let _server = Running::server(&[], &at)?;
    for client in SHORT {
        with_output(&output, client, &at, &check)?;
    }
    for arguments in ALONE {
        with_output(&output, arguments, &[], &check)?;
    }
    with_output(&output, &["completions", "bash"], &[], &check)?;
    with_output(&output, &["demo", "-n", "10", "-o", "5"], &elsewhere, &check)?;
    elsewhere = place(context)?;
    with_output(&output, &["server", "--once"], &elsewhere, &check)
}

fn closed_pipe(context: &Context) -> Result<()> {
    let pipe = || {
        let (_reader, writer) = nix::unistd::pipe()?;
        Ok(writer.into())
    };
    each_with_output(context, pipe, |status, errors| status == CLOSED_PIPE && errors.is_empty())
}

fn full_disk(context: &Context) -> Result<()> {
    let full = || Ok(OpenOptions::new().write(true).open("/dev/full")?.into());
    each_with_output(context, full, |status, errors| {
        status == FAILED && errors.contains("No space left") && errors.lines().count() == 1
    })
}

/// Sends a signal, and checks that the process ends within a second.
fn ends_soon(context: &Context, running: Running, signal: Signal) -> Result<Ended> {
    running.signal(signal)?;
    let start = Instant::now();
    let ended = running.end()?;
    let (time, limit) = (start.elapsed(), context.scaled(Duration::from_secs(1)));
    ensure!(time < limit, "it ended after {time:?}: {ended:?}");
    Ok(ended)
}

/// Returns the number of packets that the device has sent, if it counts them.
fn packets(context: &Context) -> Option<u64> {
    let device = &context.client.device;
    let file = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/sent_pkts");
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Starts a client, and waits until it transfers data.
fn busy_client(context: &Context, arguments: &[&str], place: &[String]) -> Result<Running> {
    let before = packets(context);
    let client = Running::start(arguments, place)?;
    match before {
        Some(before) => context.until("the client transfers data", || {
            Ok(packets(context).is_some_and(|now| now > before + PACKETS))
        })?,
        None => std::thread::sleep(context.scaled(Duration::from_millis(300))),
    }
    Ok(client)
}

fn signal(context: &Context) -> Result<()> {
    let at = place(context)?;
    let server = Running::server(&[], &at)?;
    let signals = [(Signal::SIGINT, INTERRUPTED), (Signal::SIGTERM, TERMINATED)];
    for (client, (signal, status)) in ENDLESS.iter().zip(signals.into_iter().cycle()) {
        let client = busy_client(context, &[*client, &["--json"]].concat(), &at)?;
        let ended = ends_soon(context, client, signal)?;
        ensure!(ended.status == status, "{ended:?}");
        ensure!(ended.output.contains("\"stopped\":true"), "{ended:?}");
    }
    // A server that does not answer does not delay the end.
    let client = busy_client(context, &["ping", "-n", "100000000"], &at)?;
    server.freeze()?;
    let ended = ends_soon(context, client, Signal::SIGINT)?;
    ensure!(ended.status == INTERRUPTED && ended.output.contains("round trips"), "{ended:?}");
    server.signal(Signal::SIGCONT)?;
    let ended = ends_soon(context, server, Signal::SIGINT)?;
    ensure!(ended.status == Some(0), "{ended:?}");
    demo_stops(context)
}

fn demo_stops(context: &Context) -> Result<()> {
    let arguments = ["demo", "-n", "100000000", "--json"];
    // More packets than those before the round trips, which show the events.
    let demo = busy_client(context, &arguments, &place(context)?)?;
    let ended = ends_soon(context, demo, Signal::SIGINT)?;
    ensure!(ended.status == INTERRUPTED && ended.output.contains("client_events"), "{ended:?}");
    Ok(())
}

fn second_signal(context: &Context) -> Result<()> {
    let at = place(context)?;
    let _server = Running::server(&[], &at)?;
    // The first signal is not enough: nobody reads the output.
    let (_reader, writer) = nix::unistd::pipe2(OFlag::O_NONBLOCK)?;
    while nix::unistd::write(&writer, &[0; 4096]).is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty()))?;
    let arguments = ["ping", "-n", "100000000"];
    let mut client = Command::new("kdapltest").args(arguments).args(&at).stdout(writer).spawn()?;
    let id = Pid::from_raw(client.id() as i32);
    std::thread::sleep(context.scaled(Duration::from_millis(100)));
    kill(id, Signal::SIGINT)?;
    std::thread::sleep(Duration::from_millis(1200));
    ensure!(client.try_wait()?.is_none(), "it has printed to a full pipe");
    kill(id, Signal::SIGINT)?;
    let start = Instant::now();
    let (status, time) = (client.wait()?.code(), start.elapsed());
    ensure!(status == INTERRUPTED, "{status:?}");
    ensure!(time < context.scaled(Duration::from_millis(200)), "it ended after {time:?}");
    Ok(())
}

fn server_killed(context: &Context) -> Result<()> {
    let name = format!("lost the server at {}", context.server_address());
    // Is still connecting when the server is killed.
    let connecting: &[&str] = &["transaction", "--eps", "200", "-n", "100000000"];
    for arguments in ENDLESS.into_iter().chain([connecting]) {
        let at = place(context)?;
        let server = Running::server(&[], &at)?;
        let client = busy_client(context, arguments, &at)?;
        server.signal(Signal::SIGKILL)?;
        let ended = client.end()?;
        ensure!(ended.status == FAILED, "{arguments:?}: {ended:?}");
        ensure!(ended.errors.contains(&name), "{arguments:?}: {ended:?}");
    }
    Ok(())
}

fn client_killed(context: &Context) -> Result<()> {
    let name = format!("lost the client at {}", context.client.address);
    for arguments in ENDLESS {
        let at = place(context)?;
        let server = Running::server(&["--once", "--timeout", "1"], &at)?;
        let client = busy_client(context, arguments, &at)?;
        client.signal(Signal::SIGKILL)?;
        let ended = server.end()?;
        ensure!(ended.status == FAILED, "{arguments:?}: {ended:?}");
        ensure!(ended.output.contains(&name), "{arguments:?}: {ended:?}");
    }
    Ok(())
}

fn clients_killed(context: &Context) -> Result<()> {
    let at = place(context)?;
    let server = Running::server(&["--timeout", "1"], &at)?;
    let arguments = ["connect", "-n", "100000", "--parallel", "8", "--data", "64"];
    for round in 0..10 {
        let client = busy_client(context, &arguments, &at)?;
        std::thread::sleep(Duration::from_millis(13 * round));
        client.signal(Signal::SIGKILL)?;
    }
    let client = Running::start(&["ping", "-n", "5"], &at)?.end()?;
    ensure!(client.status == Some(0), "{client:?}");
    server.signal(Signal::SIGINT)?;
    let ended = server.end()?;
    ensure!(ended.status == Some(0) && ended.output.contains("lost the client"), "{ended:?}");
    Ok(())
}

fn busy_server(context: &Context) -> Result<()> {
    let place = place(context)?;
    let server = Running::server(&["--once"], &place)?;
    server.freeze()?;
    let client = Running::start(&["connect", "-n", "200", "--parallel", "200"], &place)?;
    // The requests are queued meanwhile.
    std::thread::sleep(Duration::from_secs(2));
    server.signal(Signal::SIGCONT)?;
    let (client, server) = (client.end()?, server.end()?);
    ensure!(client.status == Some(0) && server.status == Some(0), "{client:?}, {server:?}");
    Ok(())
}

fn device_removed(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let device = format!("device '{}' of this machine was removed", context.client.device);
    for arguments in ENDLESS {
        let at = place(context)?;
        let server = Running::server(&[], &at)?;
        let client = busy_client(context, arguments, &at)?;
        guard.delete()?;
        for ended in [client.end()?, server.end()?] {
            ensure!(ended.status == FAILED, "{arguments:?}: {ended:?}");
            ensure!(ended.errors.contains(&device), "{arguments:?}: {ended:?}");
        }
        if libkdapl::devices()?.is_empty() {
            no_device(&at)?;
        }
        guard.add()?;
    }
    let devices = Running::start(&["devices"], &[])?.end()?;
    ensure!(devices.status == Some(0), "{devices:?}");
    Ok(())
}

/// Checks the exit status of commands on a machine without a device.
fn no_device(at: &[String]) -> Result<()> {
    let commands = [(&["devices"][..], &[][..]), (&["devices", "--json"], &[]), (&["ping"], at)];
    for (arguments, at) in commands {
        let ended = Running::start(arguments, at)?.end()?;
        ensure!(ended.status == NO_DEVICE, "{arguments:?}: {ended:?}");
        ensure!(ended.errors.contains("rdma link add"), "{arguments:?}: {ended:?}");
        ensure!(!arguments.contains(&"--json") || ended.output == "[]\n", "{ended:?}");
    }
    Ok(())
}

fn unknown_device(context: &Context) -> Result<()> {
    let ended = Running::start(&["ping", "--json", "--device", "no_such_device"], &[])?.end()?;
    ensure!(ended.status == FAILED, "{ended:?}");
    let device = context.client.device.as_str();
    for words in ["'no_such_device' not found", "devices present", device, "rdma link add"] {
        ensure!(ended.errors.contains(words), "{words}: {ended:?}");
    }
    // The error as JSON.
    for words in ["\"command\":\"ping\"", "\"version\":", "not found", "\"exit_status\":1"] {
        ensure!(ended.output.contains(words), "{words}: {ended:?}");
    }
    Ok(())
}

fn downed_device(context: &Context) -> Result<()> {
    // Only where the network device is the test's own.
    let _guard = DeviceGuard::new(context)?;
    let (netdev, device) = (&context.client.netdev, &context.client.device);
    command(&format!("ip link set {netdev} down"))?;
    let ended = Running::start(&["ping", "--device", device], &[])?.end();
    command(&format!("ip link set {netdev} up"))?;
    let ended = ended?;
    for words in [device.as_str(), "down", &format!("'ip link set {netdev} up'")] {
        ensure!(ended.errors.contains(words) && ended.status == FAILED, "{words}: {ended:?}");
    }
    Ok(())
}

fn completions(_context: &Context) -> Result<()> {
    for shell in ["bash", "zsh", "fish"] {
        let ended = Running::start(&["completions", shell], &[])?.end()?;
        ensure!(ended.status == Some(0) && ended.output.contains("bandwidth"), "{ended:?}");
    }
    Ok(())
}
