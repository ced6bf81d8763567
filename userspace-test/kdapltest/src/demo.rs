// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest demo`: runs two processes on one machine and explains their events.

use crate::bandwidth::Case;
use crate::cli::{ClientArgs, DemoArgs, DeviceArgs, Operation, PingArgs};
use crate::client::{disconnect, Target};
use crate::record::{Line, Recorder};
use crate::server::{Listening, Served};
use crate::transaction::Peer;
use crate::{bandwidth, ping};
use anyhow::{bail, ensure, Context, Result};
use fastrand::Rng;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use toolkit::output::{self, say};
use toolkit::report::{self, grouped};
use toolkit::status::Report;
use toolkit::stop;

/// Size of the message and of each RDMA operation, in bytes.
const MESSAGE: usize = 4096;
const REGION: usize = 65_536;
const PASSED: &str =
    "\nPASSED: all events, and all bytes that were compared, were correct on both sides.";
/// Number of connections: one to show the events, one for latency, three for bandwidth.
const CLIENTS: u64 = 5;

#[derive(Default, JsonSchema, Serialize)]
pub struct Outcome {
    server: Vec<Served>,
    client_events: Vec<Line>,
    ping: Option<ping::Outcome>,
    bandwidth: Vec<bandwidth::Outcome>,
}

pub fn run(args: &DemoArgs, as_json: bool) -> Result<()> {
    let client = ClientArgs::on_this_machine(&args.device);
    let target = Target::open(&client)?;
    let mut server = Server::start(&args.device)?;
    if !as_json {
        introduce(&target, &server)?;
    }
    let mut outcome = Outcome::default();
    let passed = stop::forgive(outcome.fill(&mut server, &target, &client, args, as_json))?;
    if stop::requested() {
        return if as_json { output::json(&outcome) } else { Ok(()) };
    }
    server.end()?;
    if as_json {
        return output::json(&outcome);
    }
    passed.map_or(Ok(()), |()| say(PASSED))
}

impl Outcome {
    /// Takes one measurement after the other, and shows each. An error leaves the earlier ones.
    fn fill(
        &mut self,
        server: &mut Server,
        target: &Target,
        client: &ClientArgs,
        args: &DemoArgs,
        as_json: bool,
    ) -> Result<()> {
        self.client_events = show_transfers(target).context("the transfers")?;
        self.server.push(server.served()?);
        if !as_json {
            show_events(&self.client_events, &self.server[0])?;
        }
        let ping = ping::measure(target, &ping_args(client, args)).context("the latency")?;
        let ping = self.ping.insert(ping);
        self.server.push(server.served()?);
        if !as_json {
            show_latency(ping, &self.server[1])?;
        }
        for operation in [Operation::Send, Operation::Write, Operation::Read] {
            if stop::requested() {
                break;
            }
            self.bandwidth.push(bandwidth::measure(target, &bandwidth_case(operation, args))?);
            self.server.push(server.served()?);
        }
        if as_json {
            return Ok(());
        }
        show_bandwidth(&self.bandwidth)
    }
}

fn ping_args(client: &ClientArgs, args: &DemoArgs) -> PingArgs {
    PingArgs {
        client: client.clone(),
        iterations: args.iterations,
        duration: None,
        size: 64,
        poll: false,
        pause: 0,
        histogram: false,
        svg: None,
    }
}

/// Returns the parameters of a measurement of bandwidth.
fn bandwidth_case(operation: Operation, args: &DemoArgs) -> Case {
    Case {
        operation,
        size: 65_536,
        depth: 16,
        connections: 1,
        iterations: args.operations.into(),
        duration: None,
    }
}

/// Executes a send, an RDMA Write and an RDMA Read, and compares every byte. Returns the client's
/// events.
fn show_transfers(target: &Target) -> Result<Vec<Line>> {
    let mut peer = Peer::connect(target, REGION, fastrand::u64(..), 1, true)?;
    let mut rng = Rng::new();
    peer.send_receive(rng.u64(..), MESSAGE, &mut rng).context("send and receive")?;
    peer.write(rng.u64(..), 0, REGION, &mut rng).context("RDMA write")?;
    peer.read(rng.u64(..), 0, REGION, &mut rng).context("RDMA read")?;
    disconnect(&mut peer.side).context("disconnect")?;
    let lines = std::mem::replace(&mut peer.side.recorder, Recorder::new(false)).into_lines();
    let last = lines.last().map(|line| line.event.as_str());
    ensure!(last == Some("DISCONNECTED"), "the last event is {last:?}");
    Ok(lines)
}

fn introduce(target: &Target, server: &Server) -> Result<()> {
    say(format!(
        "kDAPL on {}: process {} is the server, process {} connects to {} through /dev/kdapl.\n",
        target.device,
        server.child.id(),
        std::process::id(),
        target.address,
    ))
}

fn show_events(client: &[Line], served: &Served) -> Result<()> {
    say(format!(
        "1. A message of {MESSAGE} bytes in each direction, an RDMA Write and an RDMA Read of \
         {REGION} bytes.\n   The receiving side compared every byte with a pattern."
    ))?;
    say("\n   Events of the client:")?;
    say(event_table(client))?;
    say("   Events of the server (its program takes no part in RDMA):")?;
    say(format!("{}\n", event_table(&served.events)))
}

fn event_table(lines: &[Line]) -> comfy_table::Table {
    let mut rows = vec![["at", "event", "meaning"].map(String::from).to_vec()];
    for line in lines {
        let at = format!("{} us", grouped(line.at_us));
        rows.push(vec![at, line.event.clone(), line.meaning.clone()]);
    }
    report::text_table(&rows)
}

fn show_latency(ping: &ping::Outcome, served: &Served) -> Result<()> {
    say(format!(
        "2. {} round trips of {} bytes; both processes sleep in dat_evd_wait while they wait:",
        grouped(ping.iterations),
        ping.size
    ))?;
    say(report::latency_table(&[("round trip", &ping.round_trip_us)]))?;
    say(format!(
        "   Context switches per wake-up: client {:.2}, server {:.2}; a thread that sleeps needs 1.\n",
        ping.switches_per_wakeup,
        served.switches as f64 / served.wakeups.max(1) as f64,
    ))
}

fn show_bandwidth(outcomes: &[bandwidth::Outcome]) -> Result<()> {
    say("3. Many operations in flight; the data were compared afterwards:")?;
    say(bandwidth::table(outcomes))
}

/// The server process and its standard output.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(device: &DeviceArgs) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program again")?;
        let mut command = Command::new(program);
        command.args(["--json", "server", "--with-parent", "--clients", &CLIENTS.to_string()]);
        command.args(["--port", &device.port.to_string()]);
        if let Some(name) = &device.device {
            command.args(["--device", name]);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start a server")?;
        let output = child.stdout.take().map(BufReader::new).context("no pipe")?;
        let mut server = Self { child, output };
        let _: Listening = serde_json::from_str(&server.line()?)?;
        Ok(server)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            // The server has printed the cause to the standard error output, which it inherits.
            bail!("the server process ended early");
        }
        if let Ok(Report { error, .. }) = serde_json::from_str(&line) {
            bail!("the server process ended: {error}");
        }
        Ok(line)
    }

    /// Returns the result of the connection that has just ended, or the server's error.
    fn served(&mut self) -> Result<Served> {
        let served: Served = serde_json::from_str(&self.line()?)?;
        match &served.error {
            None => Ok(served),
            Some(error) => bail!("the server reports: {error}"),
        }
    }

    fn end(mut self) -> Result<()> {
        let status = self.child.wait()?;
        ensure!(status.success(), "the server process ended with {status}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After an error of the client the server would wait for further clients.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
