// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Agent of a CNO, and many concurrent threads around a CNO.

use super::cno::evd;
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::eventfd::EventFd;
use crate::expect::{done, empty, same};
use crate::threads::Joined;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{DtoOperation, Type};
use std::time::Duration;

tests! {
    each_trigger_signals_agent, 20,
        "Each trigger signals a CNO's eventfd, and a pending trigger signals a new eventfd at once";
    poll_and_wait_find_filled_evd, 60,
        "Concurrent polls of a CNO's file and waits on it all find an EVD that is never emptied";
    each_event_once, 120, "Many threads post to many EVDs and wait on one CNO: every event is taken once";
}

fn each_trigger_signals_agent(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (one, two) = (EventFd::new()?, EventFd::new()?);
    let cno = pair.server.ia.create_cno(Some(one.fd()))?;
    ensure!(cno.query()?.has_agent, "no agent");
    pair.server.recv.modify_cno(Some(&cno))?;
    for round in 0..4 {
        pair.server.receive(0, 64, round)?;
        pair.client.send(0, 64, round)?;
        context.until("the eventfd is signalled", || Ok(one.signals()? == 1))?;
        // The EVD must be emptied: no thread waits on the CNO.
        done(&pair.server.recv.dequeue()?.0, DtoOperation::Receive, 64, round)?;
        empty(&pair.server.recv)?;
        same("triggered", cno.query()?.triggered, 0)?;
        context.next(&pair.client.request)?;
    }
    cno.modify_agent(None)?;
    cno.trigger()?;
    cno.modify_agent(Some(two.fd()))?;
    same("signals", (one.signals()?, two.signals()?), (0, 1))?;
    cno.trigger()?;
    same("signals", two.signals()?, 1)
}

fn poll_and_wait_find_filled_evd(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (file, cno) = ia.create_cno_fd()?;
    let evd = evd(&ia, &cno)?;
    (0..2).try_for_each(|number| evd.post_se(number))?;
    let rounds = context.count(20_000);
    let poll = || {
        (0..rounds).try_for_each(|_| same("poll", super::cno_file::input_now(&file)?, libc::POLLIN))
    };
    let wait = || {
        let once = || cno.wait(Some(Duration::ZERO));
        (0..rounds).try_for_each(|_| same("EVD", once()?, Some(evd.handle())))
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(poll), scope.spawn(poll)];
        let threads = threads.into_iter().chain([scope.spawn(wait), scope.spawn(wait)]);
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| thread.join().or_panicked()?)
    })
}

fn each_event_once(context: &Context) -> Result<()> {
    const THREADS: u64 = 3;
    const EVDS: usize = 8;
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evds = (0..EVDS).map(|_| evd(&ia, &cno)).collect::<Result<Vec<_>>>()?;
    let each = context.count(20_000);
    let patience = context.patience();
    let taken = std::thread::scope(|scope| -> Result<u64> {
        let posters: Vec<_> = (0..THREADS)
            .map(|_| {
                let (evds, cno, mut rng) = (&evds, &cno, context.rng());
                scope.spawn(move || -> Result<()> {
                    for number in 0..each {
                        let evd = &evds[rng.usize(0..EVDS)];
                        while let Err(error) = evd.post_se(number) {
                            ensure!(error.kind() == Some(Type::QUEUE_FULL), "{error}");
                            // A disabled EVD would stay full.
                            evd.enable()?;
                            std::thread::yield_now();
                        }
                        match rng.u8(..) {
                            0 => evd.disable()?,
                            1..=3 => evd.enable()?,
                            4 => evd.modify_cno(Some(cno))?,
                            _ => {}
                        }
                    }
                    evds.iter().try_for_each(|evd| Ok(evd.enable()?))
                })
            })
            .collect();
        let takers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (evds, cno, mut rng) = (&evds, &cno, context.rng());
                scope.spawn(move || -> Result<u64> {
                    let mut count = 0;
                    // A trigger by the consumer ends the loop.
                    while let Some(handle) = cno.wait(Some(patience))? {
                        let evd = evds.iter().find(|evd| evd.handle() == handle);
                        let evd = evd.context("an unknown EVD")?;
                        // Take some of the events, not always all.
                        for _ in 0..rng.u64(1..6) {
                            match evd.dequeue() {
                                Ok(_) => count += 1,
                                Err(error) if error.is_empty() => break,
                                Err(error) => return Err(error.into()),
                            }
                        }
                    }
                    Ok(count)
                })
            })
            .collect();
        for poster in posters {
            poster.join().or_panicked()??;
        }
        context.until("every event is taken", || {
            Ok(evds.iter().try_fold(0, |sum, evd| evd.query().map(|evd| sum + evd.queued))? == 0)
        })?;
        let mut taken = 0;
        for taker in takers {
            while !taker.is_finished() {
                cno.trigger()?;
                std::thread::sleep(Duration::from_millis(1));
            }
            taken += taker.join().or_panicked()??;
        }
        Ok(taken)
    })?;
    same("events", taken, THREADS * each)
}
