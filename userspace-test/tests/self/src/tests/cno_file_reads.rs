// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Reads of triggers from a file of a notification object (CNO).

use super::cno::evd;
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, same};
use crate::raw::{Page, BAD_ADDRESS};
use crate::records::{now, read_at, word, Edge};
use crate::software::take;
use crate::tests::wait::{interrupt, interruptible};
use crate::threads::Worker;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, Cno, CnoFile, DtoOperation, Handle, Ia};
use std::sync::Arc;
use std::time::Duration;

tests! {
    order, 20, "A read returns the triggers of a CNO in the order of a wait, as many as fit, each once";
    no_trigger, 20, "A read without a trigger fails with EAGAIN if the file is non-blocking, one that is too short with EINVAL";
    faults, 20, "A trigger whose memory faults stays at the CNO, and those before it are read";
    sleeps, 60, "A read sleeps until a completion, a software event or the consumer triggers the CNO";
    edges, 60, "Edge-triggered epoll on a CNO's file is woken by each trigger after a read has found none";
    exclusive_polls, 60, "A trigger wakes a read although an exclusive poll for room came first";
    signals, 60, "A signal ends a sleeping read of triggers, and no trigger is lost";
    ends, 20, "A free of the CNO and a close of its IA end a sleeping read";
    each_trigger_once, 120, "Readers and waiters of a CNO get each trigger of the consumer's EVDs, none sleeps on one";
}

/// Size of a trigger in bytes.
const TRIGGER: usize = size_of::<libkdapl::sys::kdapl_trigger>();

/// Creates a CNO with a non-blocking file.
fn with_file(ia: &Ia) -> Result<(Cno, CnoFile)> {
    let cno = ia.create_cno(None)?;
    let file = cno.file()?;
    file.set_nonblocking(true)?;
    Ok((cno, file))
}

/// Reads triggers. Returns the errno of an error.
fn read(file: &CnoFile, most: usize) -> Result<Vec<Option<Handle>>, i32> {
    file.read(most).map_err(|error| error.errno().unwrap_or(0))
}

fn order(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (cno, file) = with_file(&ia)?;
    let evds = (0..4).map(|_| evd(&ia, &cno)).collect::<Result<Vec<_>>>()?;
    let handle = |number: usize| Some(evds[number].handle());
    cno.trigger()?;
    [2, 0, 2, 3, 1].iter().try_for_each(|number| evds[*number].post_se(0))?;
    same("two", read(&file, 2), Ok(vec![handle(2), handle(0)]))?;
    same("a wait", cno.wait(Some(Duration::ZERO))?, handle(3))?;
    // Those that were returned and hold events trigger again, after the others.
    let again = vec![handle(1), handle(2), handle(0), handle(3), None];
    same("the others", read(&file, 10), Ok(again))?;
    for evd in &evds {
        take(evd)?;
    }
    take(&evds[2])?;
    same("emptied", read(&file, 10), Err(libc::EAGAIN))?;
    // A freed EVD takes its trigger along.
    evds[1].post_se(1)?;
    evds[2].post_se(1)?;
    evds[1].free()?;
    same("without the freed one", read(&file, 10), Ok(vec![handle(2)]))
}

fn no_trigger(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (cno, file) = with_file(&ia)?;
    let evd = evd(&ia, &cno)?;
    same("without a trigger", read(&file, 1), Err(libc::EAGAIN))?;
    evd.post_se(1)?;
    let mut memory = [0_u8; TRIGGER];
    for length in [0, 1, TRIGGER - 1] {
        let outcome = read_at(&file, memory.as_mut_ptr() as u64, length);
        same("too short", outcome, Err(libc::EINVAL))?;
    }
    same("poll", now(&file)?, libc::POLLIN)?;
    same("a trigger", read(&file, 1), Ok(vec![Some(evd.handle())]))?;
    take(&evd)?;
    same("poll", now(&file)?, 0)
}

fn faults(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (cno, file) = with_file(&ia)?;
    let evds = (0..3).map(|_| evd(&ia, &cno)).collect::<Result<Vec<_>>>()?;
    let page = Page::before_nothing()?;
    evds.iter().try_for_each(|evd| evd.post_se(1))?;
    cno.trigger()?;
    same("nowhere", read_at(&file, BAD_ADDRESS, 64), Err(libc::EFAULT))?;
    same("half of one", read_at(&file, page.end() - 4, 64), Err(libc::EFAULT))?;
    same("one and a half", read_at(&file, page.end() - 12, 64), Ok(TRIGGER))?;
    let mut first = [0; TRIGGER];
    page.buffer.read(4096 - 12, &mut first);
    same("the first", word(&first), evds[0].handle().0)?;
    take(&evds[0])?;
    let others = vec![Some(evds[1].handle()), Some(evds[2].handle()), None];
    same("the others", read(&file, 10), Ok(others))
}

/// Starts a thread that reads, and sleeps.
fn reader(
    context: &Context,
    file: &Arc<CnoFile>,
) -> Result<Worker<Result<Vec<Option<Handle>>, i32>>> {
    let file = file.clone();
    let worker = Worker::start(move || read(&file, 4))?;
    worker.asleep_in(context, libc::SYS_read)?;
    Ok(worker)
}

fn sleeps(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (recv, ia) = (&pair.server.recv, &pair.server.ia);
    let (cno, file) = with_file(ia)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    recv.modify_cno(Some(&cno))?;
    let software = evd(ia, &cno)?;
    for round in 0..context.count(50).max(3) {
        pair.server.receive(0, 64, round)?;
        let worker = reader(context, &file)?;
        pair.client.send(0, 64, round)?;
        same("by a completion", worker.join()?, Ok(vec![Some(recv.handle())]))?;
        done(&context.next(recv)?, DtoOperation::Receive, 64, round)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, round)?;
        let worker = reader(context, &file)?;
        software.post_se(round)?;
        same("by an event", worker.join()?, Ok(vec![Some(software.handle())]))?;
        take(&software)?;
        let worker = reader(context, &file)?;
        cno.trigger()?;
        same("by the consumer", worker.join()?, Ok(vec![None]))?;
    }
    Ok(())
}

fn edges(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let recv = &pair.server.recv;
    let (cno, file) = with_file(&pair.server.ia)?;
    recv.modify_cno(Some(&cno))?;
    let edge = Edge::of(&file, libc::EPOLLIN)?;
    for round in 0..context.count(100).max(3) {
        same("edge before", edge.next(Duration::ZERO)?, 0)?;
        pair.server.receive(0, 64, round)?;
        pair.client.send(0, 64, round)?;
        same("edge", edge.in_time(context.patience())?, libc::EPOLLIN)?;
        same("trigger", read(&file, 4), Ok(vec![Some(recv.handle())]))?;
        done(&context.next(recv)?, DtoOperation::Receive, 64, round)?;
        same("another read", read(&file, 4), Err(libc::EAGAIN))?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, round)?;
    }
    Ok(())
}

fn exclusive_polls(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (cno, file) = with_file(&ia)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    // A CNO has no room, so only its end wakes this poll.
    let edge = Edge::of(&*file, libc::EPOLLOUT | libc::EPOLLEXCLUSIVE)?;
    let poll = Worker::start(move || edge.next(Duration::from_secs(3600)))?;
    poll.asleep_in(context, libc::SYS_epoll_wait)?;
    for _ in 0..3 {
        let reads = file.clone();
        let worker = Worker::start(move || read(&reads, 1))?;
        worker.asleep_in(context, libc::SYS_read)?;
        cno.trigger()?;
        context.until("the read returns", || Ok(worker.finished()))?;
        same("a trigger", worker.join()?, Ok(vec![None]))?;
    }
    ensure!(!poll.finished(), "a trigger has ended a poll for room");
    cno.free()?;
    same("poll", poll.join()?? & libc::EPOLLHUP, libc::EPOLLHUP)
}

fn signals(context: &Context) -> Result<()> {
    interruptible(0);
    let ia = context.open()?;
    let (cno, file) = with_file(&ia)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    for _ in 0..context.count(50).max(3) {
        let worker = reader(context, &file)?;
        interrupt(worker.tid);
        same("an interrupted read", worker.join()?, Err(libc::EINTR))?;
        let worker = reader(context, &file)?;
        cno.trigger()?;
        interrupt(worker.tid);
        let triggers = match worker.join()? {
            Err(libc::EINTR) => read(&file, 4),
            outcome => outcome,
        };
        same("trigger", triggers, Ok(vec![None]))?;
    }
    Ok(())
}

fn ends(context: &Context) -> Result<()> {
    let ends: [fn(&Ia, &Cno) -> Result<()>; 2] =
        [|_, cno| Ok(cno.free()?), |ia, _| Ok(ia.close(Close::Abrupt)?)];
    for end in ends {
        let ia = context.open()?;
        let (cno, file) = with_file(&ia)?;
        file.set_nonblocking(false)?;
        let file = Arc::new(file);
        let workers = [reader(context, &file)?, reader(context, &file)?];
        end(&ia, &cno)?;
        for worker in workers {
            same("the end", worker.join()?, Ok(Vec::new()))?;
        }
        same("another read", read(&file, 1), Ok(Vec::new()))?;
        same("poll", now(&*file)?, libc::POLLHUP)?;
    }
    Ok(())
}

fn each_trigger_once(context: &Context) -> Result<()> {
    const EVDS: u64 = 8;
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evds = (0..EVDS).map(|_| evd(&ia, &cno)).collect::<Result<Vec<_>>>()?;
    let each = context.count(2_000);
    let taken = std::thread::scope(|scope| -> Result<u64> {
        let (evds, cno, patience) = (&evds, &cno, context.patience());
        let emptied = |handle: Handle| -> Result<u64> {
            let evd = evds.iter().find(|evd| evd.handle() == handle);
            let mut taken = 0;
            while take(evd.context("an unknown EVD")?).is_ok() {
                taken += 1;
            }
            Ok(taken)
        };
        // A thread that begins late finds the CNO gone.
        let files = (0..3).map(|_| cno.file()).collect::<libkdapl::Result<Vec<_>>>()?;
        let readers: Vec<_> = files
            .into_iter()
            .map(|file| {
                scope.spawn(move || -> Result<u64> {
                    let mut taken = 0;
                    loop {
                        let triggers = file.read(2)?;
                        if triggers.is_empty() {
                            return Ok(taken);
                        }
                        for handle in triggers.into_iter().flatten() {
                            taken += emptied(handle)?;
                        }
                    }
                })
            })
            .collect();
        let waiter = scope.spawn(move || -> Result<u64> {
            let mut taken = 0;
            while let Ok(Some(handle)) = cno.wait(None) {
                taken += emptied(handle)?;
            }
            Ok(taken)
        });
        let post = move |evd: &libkdapl::Evd| -> Result<()> {
            crate::software::post_all(evd, 0, each, patience)
        };
        let posted: Vec<_> = evds.iter().map(|evd| scope.spawn(move || post(evd))).collect();
        let posted: Vec<_> = posted.into_iter().map(|poster| poster.join()).collect();
        let queued =
            || -> Result<u32> { evds.iter().try_fold(0, |sum, evd| Ok(sum + evd.query()?.queued)) };
        let emptied = context.until("all events are taken", || Ok(queued()? == 0));
        ia.close(Close::Abrupt)?;
        let mut total = waiter.join().ok().context("the waiter has panicked")??;
        for reader in readers {
            total += reader.join().ok().context("a reader has panicked")??;
        }
        for poster in posted {
            poster.ok().context("a poster has panicked")??;
        }
        emptied?;
        Ok(total)
    })?;
    ensure!(taken == EVDS * each, "{taken} of {} events were taken", EVDS * each);
    Ok(())
}
