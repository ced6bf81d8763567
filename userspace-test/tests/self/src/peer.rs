// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A second process, which transfers until it is killed.

use crate::context::{Context, Settings};
use crate::end::Listener;
use crate::repeat::unheard;
use crate::traffic::Traffic;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, Ia};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;

/// Steps at which the process may stop, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Step {
    Opened,
    Created,
    Received,
    Connecting,
    Established,
    Transferring,
    Transferred,
    Disconnecting,
}

pub const STEPS: [Step; 8] = [
    Step::Opened,
    Step::Created,
    Step::Received,
    Step::Connecting,
    Step::Established,
    Step::Transferring,
    Step::Transferred,
    Step::Disconnecting,
];

/// Role of the other process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Client,
    Server,
}

/// The other process.
pub struct Peer {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it. It stops at `stop` until it is killed, or transfers without end.
    pub fn start(context: &Context, part: Part, port: u64, stop: Option<Step>) -> Result<Self> {
        let stop = stop.map_or(-1, |step| step as i64);
        Self::play(context, &format!("{part:?} {port} {stop}"))
    }

    /// Starts it with a part: a word and two numbers.
    pub fn play(context: &Context, part: &str) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--play", part])
            .args(["--seed", &context.rng().u64(..).to_string()])
            .args(context.settings.layout.arguments())
            .env("KDAPL_SELFTEST_SCALE", context.settings.scale.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // It starts in the namespace in which this process started, wherever this thread is.
        let mut child = context.client.inside(|| command.spawn())??;
        let output = child.stdout.take().map(BufReader::new).context("no pipe")?;
        Ok(Self { child, output })
    }

    /// Waits until it reports that it has reached `step`.
    pub fn reaches(&mut self, step: Step) -> Result<()> {
        loop {
            if self.says()? == format!("{step:?}") {
                return Ok(());
            }
        }
    }

    /// Waits for its end, which must be successful.
    pub fn ends_well(mut self) -> Result<()> {
        let status = self.child.wait()?;
        ensure!(status.success(), "the other process: {status}");
        Ok(())
    }

    /// Ends its input.
    pub fn no_more_to_say(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for its next line.
    pub fn says(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            unheard!("the other process ended too early");
        }
        Ok(line.trim().to_string())
    }

    /// Checks whether it has ended by itself.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Runs the part of the other process.
pub fn play(part: &str, settings: &Settings) -> ExitCode {
    let outcome = Context::new_for_peer(settings).and_then(|context| {
        let words: Vec<_> = part.split(' ').collect();
        let [part, port, stop] = words[..] else { bail!("bad part {part}") };
        let (port, stop) = (port.parse()?, stop.parse()?);
        let player = Player { context: &context, port, stop };
        match part {
            "Client" => player.client(),
            "Server" => player.server(),
            "Stage" => crate::tests::kill_by_state::stage(&context, port),
            "Host" => crate::tests::kill_by_state::host(&context, port, stop),
            "Opens" => crate::tests::ia_stat::opens(&context),
            "Clock" => crate::tests::absolute_timeouts::child(&context),
            "Tenant" => crate::tests::user_limits::tenant(&context, port, stop),
            "Shares" => crate::tests::user_device_share::tenant(&context),
            "Reaches" => crate::tests::limits_reached::tenant(&context, stop),
            "Echo" => crate::tests::uring::echo_server::caller(&context, port, stop, Some(1)),
            "Echoes" => crate::tests::uring::echo_server::caller(&context, port, stop, None),
            "Silent" => crate::tests::iwarp::caller(&context, port as u32),
            "Sharing" => crate::tests::srq_traffic::sharing(&context, port),
            "Poor" => crate::tests::cgroup_charge::poor(&context, port),
            "Owner" => crate::tests::integrity::owner(&context, port),
            "Stranger" => crate::tests::protection::stranger(&context),
            "Target" => crate::tests::handoff_processes::target(&context, port, stop),
            _ => bail!("bad part {part}"),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the other process: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct Player<'a> {
    context: &'a Context,
    port: u64,
    stop: i64,
}

impl Player<'_> {
    fn at(&self, step: Step) {
        println!("{step:?}");
        if self.stop == step as i64 {
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        }
    }

    fn prepared(&self, ia: &Ia) -> Result<Traffic> {
        let traffic = Traffic::new(self.context, ia)?;
        self.at(Step::Created);
        traffic.post_receives()?;
        self.at(Step::Received);
        Ok(traffic)
    }

    fn client(&self) -> Result<()> {
        let ia = self.context.open()?;
        self.at(Step::Opened);
        let mut traffic = self.prepared(&ia)?;
        traffic.connect(self.context, self.port)?;
        self.at(Step::Connecting);
        self.transfer(&mut traffic)
    }

    fn server(&self) -> Result<()> {
        let ia = self.context.open_server()?;
        let listener = Listener::on(&ia, self.port)?;
        self.at(Step::Opened);
        let mut traffic = self.prepared(&ia)?;
        traffic.accept(self.context, &listener)?;
        self.at(Step::Connecting);
        self.transfer(&mut traffic)
    }

    fn transfer(&self, traffic: &mut Traffic) -> Result<()> {
        traffic.established(self.context)?;
        self.at(Step::Established);
        traffic.begin()?;
        self.at(Step::Transferring);
        let some = if self.stop < 0 { u64::MAX } else { 20 };
        let end = traffic.run(self.context, some)?;
        ensure!(end.is_none(), "the survivor ended the connection: {end:?}");
        self.at(Step::Transferred);
        traffic.end.ep.disconnect(Close::Abrupt)?;
        self.at(Step::Disconnecting);
        Ok(())
    }
}
