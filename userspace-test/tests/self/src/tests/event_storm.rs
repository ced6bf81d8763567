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
//! event that is brought about.

mod consumers;
mod disturbers;
mod field;
mod ledger;
mod producers;

use super::tests;
use super::wait::interruptible;
use crate::context::Context;
use crate::expect::empty;
use crate::harness::skip;
use crate::threads::Joined;
use anyhow::{ensure, Result};
use consumers::Taker;
use field::{Field, OF_CALLED};
use ledger::{Ledger, CALLED};
use producers::{overflow, post_software, Player, MORE};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

tests! {
    each_event_once, 300,
        "In a storm of events of all kinds and changing EVDs, with signals, each is taken once";
}

const POSTERS: usize = 3;
/// Numbers of connections: those that carry messages all the time, and those that are repeated.
const STEADY: usize = 2;
const FLEETING: usize = 2;

/// Starts a part of the storm.
fn go<'scope>(
    scope: &'scope Scope<'scope, '_>,
    field: &'scope Field,
    part: impl FnOnce() -> Result<()> + Send + 'scope,
) -> Part<'scope> {
    scope.spawn(move || field.run(part))
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
    interruptible();
    let qualifiers: Vec<_> = (0..STEADY + FLEETING).map(|_| context.port()).collect();
    let each = context.count(300_000);
    let ledger = Ledger::new(POSTERS, each + MORE, &qualifiers, context.client.is_iwarp());
    let field = &Field::new(context, ledger)?;
    let called = &field.ends[CALLED].ia;
    let requests = &field.queues[OF_CALLED[0]].evd;
    let listen = |qualifier: &u64| -> Result<_> { Ok(called.create_psp(*qualifier, requests)?) };
    let _listeners = qualifiers.iter().map(listen).collect::<Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let takers = takers(context, scope, field);
        let producers = producers(context, scope, field);
        let posters = (0..POSTERS).map(|poster| {
            let rng = context.rng();
            go(scope, field, move || post_software(field, poster, each, rng))
        });
        let posters = posters.collect();
        let posted = join(posters);
        field.end_posting();
        field.run(|| {
            field.until("the last events", || {
                // Waiters for more events than will arrive have to check again.
                field.shake()?;
                std::thread::sleep(Duration::from_millis(2));
                Ok(all_are_over(&producers) && field.ledger.all_software_is_taken())
            })
        });
        field.end();
        while !all_are_over(&takers) {
            field.shake()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        posted.and(join(producers)).and(join(takers))
    })?;
    field.outcome()?;
    field.nothing_is_wrong()?;
    field.queues.iter().try_for_each(|queue| empty(&queue.evd))?;
    tell(field)
}

/// Starts the threads that take events, and those that disturb them.
fn takers<'scope>(
    context: &Context,
    scope: &'scope Scope<'scope, '_>,
    field: &'scope Field,
) -> Vec<Part<'scope>> {
    let owners = (0..field.queues.len()).map(|queue| {
        let rng = context.rng();
        go(scope, field, move || Taker::new(field, rng).own(queue))
    });
    let answerers = field.bells.iter().enumerate().map(|(number, bell)| {
        let (rng, polls) = (context.rng(), number % 2 == 1);
        go(scope, field, move || Taker::new(field, rng).answer(bell, polls))
    });
    let (one, two) = (context.rng(), context.rng());
    let disturbers = [
        go(scope, field, move || disturbers::change(field, one)),
        go(scope, field, move || disturbers::signal(field, two)),
    ];
    owners.chain(answerers).chain(disturbers).collect()
}

/// Starts the threads that cause events as long as software events are posted.
fn producers<'scope>(
    context: &Context,
    scope: &'scope Scope<'scope, '_>,
    field: &'scope Field,
) -> Vec<Part<'scope>> {
    let (address, nobody) = (context.server_address(), context.port());
    let players = (0..field.ledger.lines.len()).map(|line| {
        let rng = context.rng();
        go(scope, field, move || {
            let player = Player::new(field, line, address, rng)?;
            if line < STEADY {
                player.send()
            } else {
                player.reconnect()
            }
        })
    });
    let overflows = go(scope, field, move || overflow(field, address, nobody));
    players.chain([overflows]).collect()
}

/// Prints the counts of the storm. None may be 0.
fn tell(field: &Field) -> Result<()> {
    let counts = field.weather.counts();
    let text: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    println!("{} events; {}", field.ledger.events(), text.join(", "));
    for (name, count) in counts {
        ensure!(count > 0, "there were no {name}");
    }
    Ok(())
}
