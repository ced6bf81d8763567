// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Kills one side of a pair at a random moment, again and again. Afterwards the statistics name no
//! adapter of the dead process, no object is left, and the other side has been told.

use super::program::{Pair, Serves};
use crate::context::Context;
use crate::kernel_memory::Watch;
use crate::machine::{count_of, no_objects_left, stacks};
use crate::tests::udapl_pairs::{NON_PEER_REJECTED, PAIR_TRIES};
use crate::udapl::{judge, Program};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::sys::kdapl_ia_stat;
use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Kills of each side.
const TIMES: u64 = 1000;
/// The kill comes within this time from the start, or within the time of a short client.
const WINDOW: Duration = Duration::from_millis(100);
/// After the connection is established, within this.
const AMID: Duration = Duration::from_millis(10);
/// A server without a client waits for ever. It is given so long to end by itself.
const GRACE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// What became of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It has said that it lost its peer.
    Told,
    /// It had done its work before.
    Complete,
    /// It has no connection, and waits for one.
    Waiting,
    /// It serves the next client.
    Serving,
}

/// Kills each side of the pair a thousand times, times the effort.
pub fn each_side(context: &Context, pair: &Pair) -> Result<()> {
    let window = complete(context, pair)?.min(WINDOW);
    for side in [Side::Client, Side::Server] {
        let rounds = Rounds { context, pair, side, window };
        rounds.run().with_context(|| format!("the killed side is the {side:?}"))?;
        complete(context, pair).with_context(|| format!("after kills of the {side:?}"))?;
    }
    Ok(())
}

/// Runs the pair without a kill. Returns the time that the client took. Debian's programs publish
/// their addresses before they listen there, and a faster client is rejected.
fn complete(context: &Context, pair: &Pair) -> Result<Duration> {
    for _ in 0..PAIR_TRIES {
        let mut server = pair.start_server(context)?;
        let start = Instant::now();
        let (status, output) = pair.start_short(context)?.ends(context.patience() * 2)?;
        let time = start.elapsed();
        if output.contains(NON_PEER_REJECTED) {
            continue;
        }
        judge("the client", status, &output, &[pair.complete[0]])?;
        if pair.serves == Serves::One {
            server.passes(context.patience(), &[pair.complete[1]])?;
        } else {
            server.kill()?;
        }
        no_objects_left(context.settings.scale)?;
        return Ok(time);
    }
    bail!("the server never listened in time")
}

/// Returns the statistics of the adapter of a process.
fn stat_of(program: &Program) -> Result<Option<kdapl_ia_stat>> {
    let mut all = libkdapl::ia_stats()?.into_iter();
    Ok(all.find(|stat| stat.pid == Some(program.id())).map(|stat| stat.raw))
}

fn is_connected(program: &Program) -> Result<bool> {
    Ok(stat_of(program)?.is_some_and(|stat| stat.connections > 0))
}

/// Runs rounds until a thousand of them, times the effort, have killed a program. Each gets a
/// function that sleeps until the random moment.
pub fn moments(
    context: &Context,
    mut round: impl FnMut(u64, &dyn Fn()) -> Result<bool>,
) -> Result<()> {
    let times = context.count_at_any_scale(TIMES);
    let mut memory = Watch::new(times)?;
    let most = WINDOW.as_micros() as u64;
    let mut kills = 0;
    for number in 0.. {
        if kills == times {
            break;
        }
        ensure!(number < times * 5, "of {number} programs {kills} were killed: the others ended");
        memory.round(kills)?;
        let time = Duration::from_micros(context.rng().u64(0..most));
        let killed = round(number, &|| std::thread::sleep(time))
            .with_context(|| format!("round {number}, after {time:?}"))?;
        kills += u64::from(killed);
    }
    memory.end(context)
}

struct Rounds<'a> {
    context: &'a Context,
    pair: &'a Pair,
    side: Side,
    /// Time from the start of the client within which it is killed.
    window: Duration,
}

impl Rounds<'_> {
    fn run(&self) -> Result<()> {
        let (context, pair) = (self.context, self.pair);
        let times = context.count_at_any_scale(TIMES);
        let mut memory = Watch::new(times)?;
        let (mut kills, mut connected) = (0, 0);
        let mut fates = BTreeMap::new();
        let mut server = None;
        for round in 0.. {
            if kills == times {
                break;
            }
            memory.round(kills)?;
            ensure!(round < times * 5, "of {round} programs {kills} were killed: the others ended");
            let serves = match server.take() {
                Some(server) => server,
                None => pair.start_server(context)?,
            };
            let (killed, was_connected, fate, survivor) =
                self.round(serves).with_context(|| format!("round {round}"))?;
            kills += u64::from(killed);
            connected += u64::from(killed && was_connected);
            *fates.entry(fate).or_insert(0) += u64::from(killed);
            server = survivor;
        }
        println!("killed {:?} {kills} times, {connected} connected; others: {fates:?}", self.side);
        if let Some(mut server) = server {
            // The same process has outlived all clients.
            let client = pair.start_short(context)?;
            let outcome = client.passes(context.patience() * 2, &[pair.complete[0]]);
            outcome.with_context(|| server.output())?;
            server.kill()?;
            no_objects_left(context.settings.scale)?;
        }
        memory.end(context)
    }

    /// Starts a client, and kills a side. Returns whether that side was still running, whether it
    /// was connected, the fate of the other side, and the server if it goes on.
    fn round(&self, mut server: Program) -> Result<(bool, bool, Fate, Option<Program>)> {
        let Self { context, pair, side, .. } = *self;
        let idle = stat_of(&server)?;
        let mut client = pair.start_client(context)?;
        self.moment(&mut client)?;
        let victim = if side == Side::Client { &mut client } else { &mut server };
        let connected = is_connected(victim)?;
        let killed = victim.ended()?.is_none();
        victim.kill()?;
        let (victim, mut survivor) =
            if side == Side::Client { (client, server) } else { (server, client) };
        let fate = self.fate(&mut survivor, idle, connected)?;
        ensure!(stat_of(&victim)?.is_none(), "the statistics name the dead process");
        if fate == Fate::Serving {
            context.until("the server's is the only adapter", || {
                Ok(libkdapl::ia_stats()?.len() == 1 && count_of("ia")? == 1)
            })?;
            return Ok((killed, connected, fate, Some(survivor)));
        }
        survivor.kill()?;
        no_objects_left(context.settings.scale)?;
        Ok((killed, connected, fate, None))
    }

    /// Waits until the random moment: half of the time from the start, half of the time after the
    /// connection is established.
    fn moment(&self, client: &mut Program) -> Result<()> {
        let mut most = self.window;
        if self.context.rng().bool() {
            most = most.min(AMID);
            self.context.until("the client is connected or ends", || {
                Ok(is_connected(client)? || client.ended()?.is_some())
            })?;
        }
        let most = most.as_micros().max(1) as u64;
        std::thread::sleep(Duration::from_micros(self.context.rng().u64(0..most)));
        Ok(())
    }

    /// Waits until the survivor has noticed the end of the other side, which was `connected`.
    fn fate(
        &self,
        survivor: &mut Program,
        idle: Option<kdapl_ia_stat>,
        connected: bool,
    ) -> Result<Fate> {
        let may_wait = match self.pair.serves {
            Serves::One => self.pair.many || !connected,
            Serves::Some => true,
            Serves::All => false,
        };
        let start = Instant::now();
        let is_server = self.side == Side::Client;
        let mut quiet_since = None;
        loop {
            if let Some(status) = survivor.ended()? {
                return self.judge(status, &survivor.output());
            }
            if is_server && self.pair.serves == Serves::All && is_idle(survivor, idle)? {
                return Ok(Fate::Serving);
            }
            if is_server && may_wait && is_alone(survivor)? {
                let since = *quiet_since.get_or_insert_with(Instant::now);
                if since.elapsed() > GRACE {
                    return Ok(Fate::Waiting);
                }
            } else {
                quiet_since = None;
            }
            if start.elapsed() > self.context.patience() {
                let (stacks, output) = (stacks(survivor.id()), survivor.output());
                let now = stat_of(survivor)?;
                bail!("the other side neither ends nor waits: {now:?}\n{stacks}\n{output}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn judge(&self, status: ExitStatus, output: &str) -> Result<Fate> {
        let place = usize::from(self.side == Side::Client);
        let has = |words: &&str| !words.is_empty() && output.contains(*words);
        if self.pair.lost[place].iter().any(has) {
            return Ok(Fate::Told);
        }
        let complete = self.pair.complete[place];
        ensure!(
            has(&complete) && (self.pair.serves == Serves::One || place == 0),
            "the other side ended with {status}, and does not say why:\n{output}"
        );
        Ok(Fate::Complete)
    }
}

/// Returns whether a server has no connection, and no request.
fn is_alone(server: &Program) -> Result<bool> {
    let stat = stat_of(server)?;
    Ok(stat
        .is_some_and(|stat| (stat.connections, stat.crs, stat.requests_outstanding) == (0, 0, 0)))
}

/// Returns whether a server has no more of a connection than before its client came. It may keep
/// the queues for its clients.
fn is_idle(server: &Program, before: Option<kdapl_ia_stat>) -> Result<bool> {
    let (Some(before), Some(now)) = (before, stat_of(server)?) else { return Ok(false) };
    let counts =
        |stat: &kdapl_ia_stat| (stat.connections, stat.crs, stat.eps, stat.requests_outstanding);
    Ok(counts(&now) == counts(&before))
}
