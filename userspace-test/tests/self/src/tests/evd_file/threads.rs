// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Many threads that read, poll, call and take mapped events at once.

use super::with_file;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, same};
use crate::records::{poll, read_at, read_events, Edge, EVENT};
use crate::software::{post_all, take};
use crate::tests::tests;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::MappedEvents;
use libkdapl::{DtoEvent, DtoOperation, Evd, EvdFile, Event};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

tests! {
    each_event_once, 240, "Readers that sleep, poll and use epoll, calls and mapped memory get each event once, in order";
    no_lost_wakeup, 240, "Readers that sleep get all completions, of which each read takes one, and none sleeps on an event";
    writers, 120, "Writers that sleep post each event once, in order, to readers of a short queue";
}

/// A way to take events.
#[derive(Clone, Copy, Debug)]
enum Taker {
    Sleeping,
    Polling,
    Edge,
    Calls,
    Mapped,
}

const TAKERS: [Taker; 7] = [
    Taker::Sleeping,
    Taker::Sleeping,
    Taker::Polling,
    Taker::Edge,
    Taker::Calls,
    Taker::Mapped,
    Taker::Edge,
];

const POLL: Duration = Duration::from_millis(200);

/// Reads without sleeping, until nothing is left.
fn read_all(file: &EvdFile, taken: &mut Vec<u64>) -> Result<()> {
    loop {
        match read_events(file, 5) {
            Ok(events) if events.is_empty() => return Ok(()),
            Ok(events) => taken.extend(events),
            Err(errno) => return same("errno", errno, libc::EAGAIN),
        }
    }
}

impl Taker {
    /// Opens what the taker needs of the EVD, which may be freed once it has begun.
    fn prepare(self, evd: &Evd) -> Result<(EvdFile, MappedEvents)> {
        let file = evd.file()?;
        file.set_nonblocking(!matches!(self, Self::Sleeping))?;
        Ok((file, MappedEvents::new(evd.device(), evd.handle().0)?))
    }

    /// Takes events until there are no more.
    fn run(
        self,
        evd: &Evd,
        (file, mapped): (EvdFile, MappedEvents),
        over: &AtomicBool,
    ) -> Result<Vec<u64>> {
        let mut taken = Vec::new();
        let edge =
            matches!(self, Self::Edge).then(|| Edge::of(&file, libc::EPOLLIN)).transpose()?;
        while !over.load(Ordering::Acquire) {
            match self {
                // The free of the EVD ends it.
                Self::Sleeping => match read_events(&file, 3) {
                    Ok(events) if events.is_empty() => break,
                    Ok(events) => taken.extend(events),
                    Err(errno) => same("errno of a sleeping read", errno, 0)?,
                },
                Self::Polling => {
                    poll(&file, libc::POLLIN, POLL)?;
                    read_all(&file, &mut taken)?;
                }
                Self::Edge => {
                    edge.as_ref().context("it has one")?.next(POLL)?;
                    read_all(&file, &mut taken)?;
                }
                // Leaves events behind, which are handed over.
                Self::Calls => match take(evd) {
                    Ok(event) => taken.push(event),
                    Err(_) => std::thread::yield_now(),
                },
                Self::Mapped => match mapped.pop() {
                    Some(event) => {
                        taken.push(event.cookie);
                        if mapped.calls_only() {
                            let _ = evd.query();
                        }
                    }
                    None => std::thread::yield_now(),
                },
            }
        }
        Ok(taken)
    }
}

/// Checks that takers have got each event of the posters once, each in the order of its poster.
fn each_once(takers: Vec<Vec<u64>>, posters: u64, each: u64) -> Result<()> {
    for taken in &takers {
        for poster in 0..posters {
            let own: Vec<_> = taken.iter().filter(|word| **word >> 32 == poster).collect();
            ensure!(own.is_sorted(), "events of poster {poster} are not in order");
        }
    }
    let mut all = takers.concat();
    all.sort_unstable();
    let expected =
        (0..posters).flat_map(|poster| (0..each).map(move |number| (poster << 32) | number));
    same("all events", all == expected.collect::<Vec<_>>(), true)
}

fn each_event_once(context: &Context) -> Result<()> {
    const POSTERS: u64 = 2;
    let each = context.count(10_000);
    let (evd, _file) = with_file(context, 64)?;
    let (over, patience) = (AtomicBool::new(false), context.patience());
    let prepared: Vec<_> = TAKERS.iter().map(|taker| taker.prepare(&evd)).collect::<Result<_>>()?;
    let takers = std::thread::scope(|scope| -> Result<_> {
        let (evd, over) = (&evd, &over);
        let takers: Vec<_> = TAKERS
            .iter()
            .zip(prepared)
            .map(|(taker, with)| scope.spawn(move || taker.run(evd, with, over)))
            .collect();
        let posters: Vec<_> = (0..POSTERS)
            .map(|poster| scope.spawn(move || post_all(evd, poster, each, patience)))
            .collect();
        let posted: Vec<_> = posters.into_iter().map(|poster| poster.join()).collect();
        let emptied = context.until("all are taken", || Ok(evd.query()?.queued == 0));
        over.store(true, Ordering::Release);
        evd.free()?;
        let taken: Vec<_> = takers.into_iter().map(|taker| taker.join()).collect();
        for poster in posted {
            poster.ok().context("a poster has panicked")??;
        }
        emptied?;
        taken.into_iter().map(|taken| taken.ok().context("a taker has panicked")?).collect()
    })?;
    each_once(takers, POSTERS, each)
}

fn no_lost_wakeup(context: &Context) -> Result<()> {
    const READERS: usize = 4;
    const BURST: u64 = 16;
    let pair = Pair::new(context, Shape { receives: 64, ..Default::default() })?;
    let taken = AtomicU64::new(0);
    let recv = &pair.server.recv;
    let rounds = context.count(200).max(10);
    std::thread::scope(|scope| -> Result<()> {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let taken = &taken;
                scope.spawn(move || -> Result<()> {
                    let file = recv.file()?;
                    // One event by each read: the others need other readers, or further reads.
                    while let Some(event) = file.read(1)?.first() {
                        let ok = matches!(event, Event::Dto(DtoEvent { length: 64, .. }));
                        ensure!(ok, "unexpected event {event}");
                        taken.fetch_add(1, Ordering::AcqRel);
                        std::thread::yield_now();
                    }
                    Ok(())
                })
            })
            .collect();
        let traffic = || -> Result<()> {
            for round in 0..rounds {
                (0..BURST).try_for_each(|number| pair.server.receive(0, 64, number))?;
                for number in 0..BURST {
                    pair.client.send(0, 64, number)?;
                    let event = context.next(&pair.client.request)?;
                    done(&event, DtoOperation::Send, 64, number)?;
                }
                let all = (round + 1) * BURST;
                let arrived = || Ok(taken.load(Ordering::Acquire) == all);
                context.until("the readers have taken all", arrived)?;
            }
            Ok(())
        };
        let outcome = traffic();
        // Ends the readers.
        pair.server.ia.close(libkdapl::Close::Abrupt)?;
        for reader in readers {
            let _ = reader.join().ok().context("a reader has panicked")?;
        }
        outcome
    })
}

fn writers(context: &Context) -> Result<()> {
    const WRITERS: u64 = 3;
    let each = context.count(3_000);
    let (evd, file) = with_file(context, 8)?;
    file.set_nonblocking(false)?;
    let takers = std::thread::scope(|scope| -> Result<_> {
        let (evd, file) = (&evd, &file);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || -> Result<Vec<u64>> {
                    let mut taken = Vec::new();
                    let mut memory = [0_u8; 3 * EVENT];
                    loop {
                        let length = read_at(file, memory.as_mut_ptr() as u64, memory.len());
                        match length.map_err(|errno| anyhow::anyhow!("errno {errno}"))? {
                            0 => return Ok(taken),
                            length => {
                                taken.extend(crate::records::cookies(&memory[..length], EVENT));
                            }
                        }
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || -> Result<()> {
                    let words: Vec<_> = (0..each).map(|number| (writer << 32) | number).collect();
                    let mut rest = words.as_slice();
                    while !rest.is_empty() {
                        let most = rest.len().min(13);
                        rest = &rest[file.write(&rest[..most])?..];
                    }
                    Ok(())
                })
            })
            .collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        let emptied = context.until("all are taken", || Ok(evd.query()?.queued == 0));
        evd.free()?;
        let taken: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        for writer in written {
            writer.ok().context("a writer has panicked")??;
        }
        emptied?;
        taken.into_iter().map(|taken| taken.ok().context("a reader has panicked")?).collect()
    })?;
    each_once(takers, WRITERS, each)
}
