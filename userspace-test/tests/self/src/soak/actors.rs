// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Processes of the soak test. They end by themselves or are killed at random, and are replaced.

use crate::context::Context;
use crate::machine::NOBODY;
use anyhow::Result;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Work of a process.
#[derive(Clone, Copy)]
enum Part {
    /// Plays a part with another process, at the same port.
    Play(&'static str),
    /// Runs one of these tests, by its identifier. Its result is ignored: a device may be removed
    /// meanwhile.
    Test(&'static [&'static str]),
    /// Attacks the listeners.
    Hostile,
}

/// Tests of shared receive queues.
const SRQS: &[&str] = &[
    "srq_traffic.ends_in_traffic",
    "srq_traffic.closed_in_traffic",
    "srq_traffic.lengthened",
    "srq_traffic.many_endpoints",
    "srq_ends.under_load",
];
/// Tests of remote regions.
const RMRS: &[&str] = &[
    "rmr.protection",
    "rmr.context_ends",
    "rmr.freed_beside_bind",
    "rmr.freed_with_full_evd",
    "rmr.closed_while_bound",
    "read_to_rmr.follows_bind",
];
/// Tests of event files.
const FILES: &[&str] = &[
    "evd_file.threads.each_event_once",
    "evd_file.threads.writers",
    "evd_file.hostile.vanishing_memory",
    "evd_file.hostile.frees",
    "evd_file.hostile.kills",
];
/// Tests of commands of io_uring.
const COMMANDS: &[&str] = &[
    "uring.ends.kill_under_events",
    "uring.ends.shared_ring",
    "uring.cancel.beside_events",
    "uring.stream.many_events",
    "uring.hostile.unmapped_in_flight",
];
/// Tests of mapped events.
const MAPPED: &[&str] = &[
    "mapped_events.every_taker",
    "mapped_events.scribbled",
    "mapped_events.outlives",
    "mapped_empty.nothing_is_lost",
    "unprivileged.index_beside_writer",
];

/// At any time, one process of each runs.
const PARTS: [Part; 13] = [
    Part::Play("Server"),
    Part::Play("Client"),
    Part::Test(&["ep_model.random_calls"]),
    Part::Test(&["ep_races.all_calls"]),
    Part::Test(&["many_connections.connect_storms"]),
    Part::Test(&["event_storm.each_event_once"]),
    Part::Test(&["faults.transfers"]),
    Part::Test(SRQS),
    Part::Test(RMRS),
    Part::Test(FILES),
    Part::Test(COMMANDS),
    Part::Test(MAPPED),
    Part::Hostile,
];

/// Returns a random time between two numbers of seconds.
pub fn between(context: &Context, least: f64, most: f64) -> Duration {
    Duration::from_secs_f64(least + context.rng().f64() * (most - least))
}

struct ActorProcess {
    child: Child,
    part: Part,
    /// Time at which it is killed, unless it has ended before.
    until: Instant,
}

/// All processes.
pub struct Actors<'a> {
    context: &'a Context,
    port: u64,
    lives: Vec<ActorProcess>,
    started: u64,
    killed: u64,
}

impl<'a> Actors<'a> {
    pub fn new(context: &'a Context) -> Result<Self> {
        let mut actors =
            Self { context, port: context.port(), lives: Vec::new(), started: 0, killed: 0 };
        PARTS.into_iter().try_for_each(|part| actors.start(part))?;
        Ok(actors)
    }

    /// Replaces processes that have ended, and kills and replaces those whose time is over.
    pub fn go_on(&mut self) -> Result<()> {
        for mut life in std::mem::take(&mut self.lives) {
            if life.child.try_wait()?.is_some() {
                self.start(life.part)?;
            } else if Instant::now() > life.until {
                kill(&mut life)?;
                self.killed += 1;
                self.start(life.part)?;
            } else {
                self.lives.push(life);
            }
        }
        Ok(())
    }

    /// Kills all processes. Returns how many were started and how many were killed.
    pub fn end(mut self) -> Result<(u64, u64)> {
        for mut life in std::mem::take(&mut self.lives) {
            kill(&mut life)?;
            self.killed += 1;
        }
        Ok((self.started, self.killed))
    }

    fn start(&mut self, part: Part) -> Result<()> {
        let mut command = self.command(part)?;
        // Its errors after a device removal do not matter.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let child = self.context.client.inside(|| command.spawn())??;
        let until = Instant::now() + between(self.context, 0.5, 15.0);
        self.started += 1;
        self.lives.push(ActorProcess { child, part, until });
        Ok(())
    }

    fn command(&self, part: Part) -> Result<Command> {
        let settings = &self.context.settings;
        let seed = self.context.rng().u64(..).to_string();
        let mut command = Command::new(std::env::current_exe()?);
        match part {
            Part::Hostile => return Ok(self.hostile(&seed)),
            Part::Play(part) => command.args(["--play", &format!("{part} {} -1", self.port)]),
            Part::Test(ids) => {
                let id = ids[self.context.rng().usize(..ids.len())];
                command.args(["--run-one", id, "--stress", "0.3"])
            }
        };
        command.args(["--seed", &seed]).args(settings.layout.arguments());
        command.env("KDAPL_SELFTEST_SCALE", settings.scale.to_string());
        Ok(command)
    }

    /// Attacks as an ordinary user.
    fn hostile(&self, seed: &str) -> Command {
        let mut command = Command::new("rdmacm-hostile");
        let (address, port) = (self.context.server_address().to_string(), self.port.to_string());
        command.args(["--address", &address, "--port", &port, "--seed", seed]);
        command.args(["--port", &libkdapl::sys::KDAPL_SHARED_PORT.to_string()]);
        command.uid(NOBODY).gid(NOBODY);
        command
    }
}

/// Kills a process and all its children.
fn kill(life: &mut ActorProcess) -> Result<()> {
    // SAFETY: the group is the one that `process_group(0)` made for this child.
    unsafe { libc::kill(-(life.child.id() as i32), libc::SIGKILL) };
    life.child.wait()?;
    Ok(())
}

impl Drop for Actors<'_> {
    fn drop(&mut self) {
        for life in &mut self.lives {
            let _ = kill(life);
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn each_test_of_the_soak_exists() {
        let all: Vec<_> = crate::tests::all().iter().map(|test| test.id.to_string()).collect();
        for part in PARTS {
            let Part::Test(ids) = part else { continue };
            for id in ids {
                assert!(all.iter().any(|known| known == id), "{id}");
            }
        }
    }
}
