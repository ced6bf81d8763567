// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events of all kinds at once, on EVDs that are changed under their waiters, and waiters that are
//! interrupted. Each event is taken exactly once, and no waiter sleeps while one is queued.
//!
//! ```text
//!   software posters --+        +--> owners: wait on an EVD, or leave it to its CNO
//!   messages ----------+-> EVDs |
//!   connections -------+   CNOs +--> takers: wait on a CNO, or poll its file; then dequeue
//!   overflows ---------+     ^
//!                            +------ resized, disabled, unwaitable, triggered, signals
//! ```
//!
//! The owner of an EVD waits with random thresholds and time-outs. A wait with the longest time-out
//! of the test must not expire while events arrive: that would be a lost wake-up. The [`ledger`]
//! has an entry for each expected event.

mod consumers;
mod disturbers;
mod ledger;
mod producers;
mod storm;

use super::tests;
use super::wait::interruptible;
use crate::context::Context;
use crate::expect::empty;
use crate::harness::skip;
use crate::threads::Joined;
use anyhow::{ensure, Result};
use consumers::Taker;
use ledger::{Ledger, CALLED};
use producers::{overflow, post_software, ConnectedPair, MAX_EXTRA_EVENTS};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;
use storm::{Storm, CALLED_EVDS};

tests! {
    each_event_once, 300,
        "In a storm of events of all kinds and changing EVDs, with signals, each is taken once";
}

const POSTERS: usize = 3;
/// Numbers of connections: those that carry messages all the time, and those that are repeated.
const STEADY_CONNECTIONS: usize = 2;
const REPEATED_CONNECTIONS: usize = 2;

/// Starts a part of the storm.
fn go<'scope>(
    scope: &'scope Scope<'scope, '_>,
    storm: &'scope Storm,
    part: impl FnOnce() -> Result<()> + Send + 'scope,
) -> Part<'scope> {
    scope.spawn(move || storm.run(part))
}

type Part<'scope> = ScopedJoinHandle<'scope, ()>;

fn join(parts: Vec<Part<'_>>) -> Result<()> {
    parts.into_iter().try_for_each(|part| part.join().or_panicked())
}

fn all_are_over(parts: &[Part<'_>]) -> bool {
    parts.iter().all(|part| part.is_finished())
}

fn each_event_once(context: &Context) -> Result<()> {
    if context.link_is_spoilt() {
        return skip("ib_cm does not repeat a reject or a disconnect that gets lost");
    }
    interruptible(0);
    let qualifiers: Vec<_> =
        (0..STEADY_CONNECTIONS + REPEATED_CONNECTIONS).map(|_| context.port()).collect();
    let each = context.count(300_000);
    let ledger =
        Ledger::new(POSTERS, each + MAX_EXTRA_EVENTS, &qualifiers, context.client.is_iwarp());
    let storm = &Storm::new(context, ledger)?;
    let called = &storm.ends[CALLED].ia;
    let requests = &storm.queues[CALLED_EVDS[0]].evd;
    let listen = |qualifier: &u64| -> Result<_> { Ok(called.create_psp(*qualifier, requests)?) };
    let _listeners = qualifiers.iter().map(listen).collect::<Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let takers = takers(context, scope, storm);
        let producers = producers(context, scope, storm);
        let posters = (0..POSTERS).map(|poster| {
            let rng = context.rng();
            go(scope, storm, move || post_software(storm, poster, each, rng))
        });
        let posters = posters.collect();
        let posted = join(posters);
        storm.end_posting();
        storm.run(|| {
            storm.until("the last events", || {
                // Waiters for more events than will arrive have to check again.
                storm.shake()?;
                std::thread::sleep(Duration::from_millis(2));
                Ok(all_are_over(&producers) && storm.ledger.all_software_is_taken())
            })
        });
        storm.end();
        while !all_are_over(&takers) {
            storm.shake()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        posted.and(join(producers)).and(join(takers))
    })?;
    storm.outcome()?;
    storm.nothing_is_wrong()?;
    storm.queues.iter().try_for_each(|queue| empty(&queue.evd))?;
    tell(storm)
}

/// Starts the threads that take events, and those that disturb them.
fn takers<'scope>(
    context: &Context,
    scope: &'scope Scope<'scope, '_>,
    storm: &'scope Storm,
) -> Vec<Part<'scope>> {
    let owners = (0..storm.queues.len()).map(|queue| {
        let rng = context.rng();
        go(scope, storm, move || Taker::new(storm, rng).own(queue))
    });
    let answerers = storm.notifiers.iter().enumerate().map(|(number, notifier)| {
        let (rng, polls) = (context.rng(), number % 2 == 1);
        go(scope, storm, move || Taker::new(storm, rng).answer(notifier, polls))
    });
    let (one, two) = (context.rng(), context.rng());
    let disturbers = [
        go(scope, storm, move || disturbers::change(storm, one)),
        go(scope, storm, move || disturbers::signal(storm, two)),
    ];
    owners.chain(answerers).chain(disturbers).collect()
}

/// Starts the threads that cause events as long as software events are posted.
fn producers<'scope>(
    context: &Context,
    scope: &'scope Scope<'scope, '_>,
    storm: &'scope Storm,
) -> Vec<Part<'scope>> {
    let (address, nobody) = (context.server_address(), context.port());
    let pairs = (0..storm.ledger.lines.len()).map(|line| {
        let rng = context.rng();
        go(scope, storm, move || {
            let pair = ConnectedPair::new(storm, line, address, rng)?;
            if line < STEADY_CONNECTIONS {
                pair.send()
            } else {
                pair.reconnect()
            }
        })
    });
    let overflows = go(scope, storm, move || overflow(storm, address, nobody));
    pairs.chain([overflows]).collect()
}

/// Prints the counts of the storm. None may be 0.
fn tell(storm: &Storm) -> Result<()> {
    let counts = storm.conditions.counts();
    let text: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    println!("{} events; {}", storm.ledger.events(), text.join(", "));
    for (name, count) in counts {
        ensure!(count > 0, "there were no {name}");
    }
    Ok(())
}
