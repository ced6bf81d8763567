// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Checks the wake-ups of waiters: one context switch from a completion to its waiter, and no lost
//! wake-up.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, done, empty, same};
use crate::threads::{tid, Joined};
use crate::trace::{Recording, Sleep, Waker};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{AsyncEvent, ConnectionEvent, DtoOperation, Error, Evd, EvdFlags, Event};
use observe::Waiter;
use std::time::{Duration, Instant};

tests! {
    #[Long]
    completion_wakes_directly, 120, "A completion wakes its waiter directly: one wake-up, one context switch, no thread in between";
    #[Address, Long]
    connection_event_wakes_directly, 120, "A connection event wakes its waiter directly: one wake-up, one context switch, no thread in between";
    #[Long]
    software_event_wakes_directly, 60, "A software event wakes its waiter directly, from the thread that posts it";
    #[Long]
    cno_trigger_wakes_directly, 120, "A completion wakes the waiter of a CNO directly: one wake-up, one context switch, no thread in between";
    #[Long]
    overflow_wakes_once, 60, "The overflow of an EVD is reported with one wake-up of the asynchronous EVD's waiter, and the EVD works again";
    #[Long]
    threshold_wakes_once, 120, "A waiter with a threshold of eight completions is woken once, not eight times";
    no_lost_wakeup, 1200, "No wake-up is lost in ping-pongs with random pauses on both sides";
    #[Link, Transport]
    no_lost_event_at_timeout, 300, "Time-outs that race with completions lose no event";
}

/// Starts a thread that waits on an EVD on demand.
fn waits_on(evd: &Evd, patience: Duration) -> Result<Waiter<Event, Error>> {
    let evd = evd.clone();
    Waiter::with(move |threshold| evd.wait(Some(patience), threshold).map(|(event, _)| event))
}

/// Checks that every sleep ended with one wake-up, from the completion's own context or the
/// poster's.
fn direct(sleeps: &[Sleep], rounds: u64, poster: i32) -> Result<()> {
    direct_from(sleeps, rounds, |waker| waker.is_direct(poster))
}

/// Checks that every sleep ended with one wake-up, from a waker that `is_direct` accepts.
fn direct_from(sleeps: &[Sleep], rounds: u64, is_direct: impl Fn(&Waker) -> bool) -> Result<()> {
    let finished: Vec<_> = sleeps.iter().filter(|sleep| sleep.over).collect();
    ensure!(
        finished.len() as u64 == rounds,
        "{} sleeps for {rounds} events: {finished:?}",
        finished.len()
    );
    for sleep in finished {
        ensure!(sleep.wakers.len() == 1, "expected one wake-up: {sleep:?}");
        let waker = &sleep.wakers[0];
        ensure!(is_direct(waker), "a thread in between woke the waiter: {waker:?}");
    }
    Ok(())
}

/// Sends messages that each wake the waiter. `check` gets each result and its round.
fn messages<T: Send + 'static>(
    context: &Context,
    pair: &Pair,
    waiter: &Waiter<T, Error>,
    check: impl Fn(T, u64) -> Result<()>,
) -> Result<()> {
    let rounds = context.count(50).max(10);
    let recording = Recording::start()?;
    for round in 0..rounds {
        pair.server.receive(0, 64, round)?;
        waiter.asleep(context, 1)?;
        pair.client.send(0, 64, round)?;
        check(waiter.event()?, round)?;
        context.next(&pair.client.request)?;
    }
    direct(&recording.sleeps(waiter.tid())?, rounds, tid())
}

fn completion_wakes_directly(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let waiter = waits_on(&pair.server.recv, context.patience())?;
    messages(context, &pair, &waiter, |event, round| done(&event, DtoOperation::Receive, 64, round))
}

fn connection_event_wakes_directly(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let server = End::new(&server_ia, Shape::default())?;
    let client = End::new(&client_ia, Shape::default())?;
    let waiter = waits_on(&client.connect, context.patience())?;
    let requests = waits_on(&listener.evd, context.patience())?;
    let rounds = context.count(20).max(10);
    let eps = |end: &End| -> Result<Vec<_>> { (0..rounds).map(|_| end.another_ep()).collect() };
    let (clients, servers) = (eps(&client)?, eps(&server)?);
    let recording = Recording::start()?;
    for (client, server) in clients.iter().zip(&servers) {
        waiter.asleep(context, 1)?;
        requests.asleep(context, 1)?;
        client.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
        let Event::ConnectionRequest { mut cr, .. } = requests.event()? else {
            anyhow::bail!("expected a request, got another event");
        };
        cr.accept(server, &[])?;
        connection(&waiter.event()?, ConnectionEvent::Established)?;
    }
    let requested = recording.sleeps(requests.tid())?;
    direct(&requested, rounds, tid()).context("the request")?;
    direct(&recording.sleeps(waiter.tid())?, rounds, tid()).context("ESTABLISHED")
}

fn software_event_wakes_directly(context: &Context) -> Result<()> {
    let evd = context.open()?.create_evd(EvdFlags::SOFTWARE, 4)?;
    let waiter = waits_on(&evd, context.patience())?;
    let rounds = context.count(50).max(10);
    let recording = Recording::start()?;
    for round in 0..rounds {
        waiter.asleep(context, 1)?;
        evd.post_se(round)?;
        waiter.event()?;
    }
    direct(&recording.sleeps(waiter.tid())?, rounds, tid())
}

fn cno_trigger_wakes_directly(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (recv, patience) = (&pair.server.recv, context.patience());
    let cno = pair.server.ia.create_cno(None)?;
    recv.modify_cno(Some(&cno))?;
    let waiter = Waiter::with(move |_| cno.wait(Some(patience)))?;
    messages(context, &pair, &waiter, |triggered, round| {
        same("EVD that triggered", triggered, Some(recv.handle()))?;
        done(&recv.dequeue()?.0, DtoOperation::Receive, 64, round)?;
        // The empty EVD triggers again with the next completion.
        empty(recv)
    })
}

/// One event more than the shortest ring has slots.
pub const BEYOND_SHORTEST_RING: usize = 9;

fn overflow_wakes_once(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let short = end.ia.create_evd(EvdFlags::CONNECTION, 1)?;
    let ep = || end.ia.create_ep(&end.pz, &end.recv, &end.request, &short, None);
    let eps = (0..BEYOND_SHORTEST_RING).map(|_| ep()).collect::<Result<Vec<_>, _>>()?;
    let waiter = waits_on(end.ia.async_evd(), context.patience())?;
    let (rounds, patience) = (context.count(20), Some(context.patience()));
    let recording = Recording::start()?;
    for _ in 0..rounds {
        waiter.asleep(context, 1)?;
        for ep in &eps {
            // There is no listener.
            ep.connect(context.server_address(), context.port(), patience, &[])?;
        }
        match waiter.event()? {
            Event::Async { event: AsyncEvent::EvdOverflow, object, .. } => {
                same("EVD that overflowed", object, short.handle())?;
            }
            other => anyhow::bail!("expected an overflow, got {other}"),
        }
        // The EVD recovers: its queued events are intact, and it has room again.
        for _ in 1..BEYOND_SHORTEST_RING {
            match short.dequeue()?.0 {
                Event::Connection { ep, .. } => {
                    ensure!(
                        eps.iter().any(|known| known.handle() == ep),
                        "the endpoint is unknown"
                    );
                }
                other => anyhow::bail!("expected a reject, got {other}"),
            }
        }
        empty(&short)?;
        eps.iter().try_for_each(|ep| ep.reset())?;
    }
    // Over iWARP a kernel thread makes the connect, and reports its failure itself.
    let iwarp = context.client.is_iwarp();
    let connects = |waker: &Waker| iwarp && waker.comm == "kdapl_connect";
    let poster = tid();
    direct_from(&recording.sleeps(waiter.tid())?, rounds, |waker| {
        connects(waker) || waker.is_direct(poster)
    })
}

fn threshold_wakes_once(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let waiter = waits_on(&pair.server.recv, context.patience())?;
    let rounds = context.count(20).max(10);
    let recording = Recording::start()?;
    for _ in 0..rounds {
        (0..8).try_for_each(|number| pair.server.receive(0, 64, number))?;
        waiter.asleep(context, 8)?;
        for number in 0..8 {
            pair.client.send(0, 64, number)?;
            // Each message completes before the next is sent: eight chances to wake too early.
            context.next(&pair.client.request)?;
        }
        done(&waiter.event()?, DtoOperation::Receive, 64, 0)?;
        for number in 1..8 {
            done(&pair.server.recv.dequeue()?.0, DtoOperation::Receive, 64, number)?;
        }
    }
    let sleeps = recording.sleeps(waiter.tid())?;
    let woken: usize = sleeps.iter().map(|sleep| sleep.wakers.len()).sum();
    ensure!(woken as u64 == rounds, "{woken} wake-ups for {rounds} waits");
    Ok(())
}

/// Pauses for no time, for a few microseconds, or in a sleep.
fn pause(rng: &mut fastrand::Rng) {
    match rng.u8(..) {
        0..=127 => {}
        128..=239 => {
            let (start, time) = (Instant::now(), Duration::from_nanos(rng.u64(0..30_000)));
            while start.elapsed() < time {
                std::hint::spin_loop();
            }
        }
        240..=254 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(rng.u64(1..100))),
    }
}

fn bounce(
    end: &End,
    rounds: u64,
    serves: bool,
    mut rng: fastrand::Rng,
    patience: Duration,
) -> Result<()> {
    for round in 0..rounds {
        if serves {
            end.send(0, 8, round)?;
        }
        pause(&mut rng);
        let (event, _) = end
            .recv
            .wait(Some(patience), 1)
            .with_context(|| format!("round {round}: {:?}", end.recv.query()))?;
        done(&event, DtoOperation::Receive, 8, event_slot(round))?;
        end.receive(64, 8, event_slot(round + 4))?;
        pause(&mut rng);
        if !serves {
            end.send(0, 8, round)?;
        }
        let (event, _) = end
            .request
            .wait(Some(patience), 1)
            .with_context(|| format!("send {round}: {:?}", end.request.query()))?;
        done(&event, DtoOperation::Send, 8, round)?;
    }
    Ok(())
}

fn event_slot(round: u64) -> u64 {
    0xabcd_0000 + round
}

/// Pairs that run at the same time, each with a thread on each side.
const PAIRS: u64 = 8;

fn no_lost_wakeup(context: &Context) -> Result<()> {
    // Over a spoilt link each round takes as long as its packets.
    let fewer = if context.link_is_spoilt() { 10 } else { 1 };
    // With --stress 5 times the scale, these are a million.
    let (all, patience) = (context.count(200_000 / fewer).min(1_000_000), context.patience());
    let all = if context.settings.effort > 1.0 { all } else { all.min(50_000) };
    let rounds = all.div_ceil(PAIRS);
    println!("{} ping-pongs", rounds * PAIRS);
    let pairs = (0..PAIRS).map(|_| Pair::new(context, Shape::default()));
    let pairs = pairs.collect::<Result<Vec<_>>>()?;
    for end in pairs.iter().flat_map(|pair| [&pair.client, &pair.server]) {
        (0..4).try_for_each(|round| end.receive(64, 8, event_slot(round)))?;
    }
    std::thread::scope(|scope| {
        let play = |end, serves| {
            let rng = fastrand::Rng::with_seed(context.rng().u64(..));
            scope.spawn(move || bounce(end, rounds, serves, rng, patience))
        };
        let players: Vec<_> = pairs
            .iter()
            .flat_map(|pair| {
                [("client", play(&pair.client, true)), ("server", play(&pair.server, false))]
            })
            .collect();
        players
            .into_iter()
            .try_for_each(|(name, player)| player.join().or_panicked()?.context(name))
    })
}

fn no_lost_event_at_timeout(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let mut timeouts = 0;
    let (enough, most) = (context.count(5000), 100_000);
    for round in 0..most {
        // Some waits must time out, however short the run.
        if round >= enough && timeouts > 0 {
            break;
        }
        pair.server.receive(0, 8, round)?;
        pair.client.send(0, 8, round)?;
        let start = Instant::now();
        // Time-outs of about the duration of a message.
        let event = loop {
            let time = Duration::from_micros(context.rng().u64(0..60));
            match pair.server.recv.wait(Some(time), 1) {
                Ok((event, _)) => break event,
                Err(error) if error.is_timeout() => timeouts += 1,
                Err(error) => return Err(error.into()),
            }
            ensure!(start.elapsed() < context.patience(), "round {round}: the event was lost");
        };
        done(&event, DtoOperation::Receive, 8, round)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 8, round)?;
    }
    ensure!(timeouts > 0, "no wait timed out, so the race was not tested");
    Ok(())
}
