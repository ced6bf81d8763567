// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Waits on an EVD.

use super::tests;
use crate::context::Context;
use crate::expect::{refused, refused_as, same};
use crate::fork::{end_of, fork, kill};
use crate::software::{number, software};
use crate::threads::{tid, Worker};
use crate::timeouts::{self, on_time};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, Error, Evd, EvdFlags, Event, Subtype, Type};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

tests! {
    timeout_exact, 20, "A wait of ten milliseconds ends by a timer that is set to ten milliseconds after its begin, and not much later";
    short_timeouts, 20, "Waits of microseconds end after microseconds, and a wait of zero at once";
    timeout_after_longer_ones, 60, "A time-out is obeyed after longer ones that did not expire";
    takes_queued_event, 10, "A wait takes a queued event, even with a time-out of zero";
    threshold, 20, "A waiter with a threshold of N sleeps until N events are queued, and gets the first of them";
    threshold_timeout, 20, "A wait whose threshold is not reached in time loses no event";
    threshold_range, 10, "A threshold that is zero, negative or above the queue length is refused";
    second_waiter_is_refused, 20, "The second waiter of an EVD is refused, and the first waits on";
    dequeue_during_wait, 20, "An event that is dequeued during a wait does not count for its threshold";
    signal_interrupts, 30, "A signal ends a wait with INTERRUPTED_CALL and loses no event";
    unwaitable, 20, "An EVD that becomes unwaitable wakes its waiter with EVD_UNWAITABLE, and refuses others until it is waitable again";
    ia_close_ends_wait, 20, "An abrupt close of the IA ends the waits on its EVDs";
    evd_free_during_wait, 20, "Freeing an EVD with a waiter is refused, and the wait goes on";
    file_closed_during_wait, 20, "A file that is closed during a wait is released after the wait has ended";
    killed_waiter, 20, "A process that is killed during an endless wait exits at once";
    forked_child, 20, "A forked child may use the file, and its exit does not disturb the parent";
}

const MS: Duration = Duration::from_millis(1);

/// Waits on an empty EVD.
fn expires(evd: &Evd, time: Duration) -> Result<()> {
    refused(evd.wait(Some(time), 1), Type::TIMEOUT_EXPIRED)
}

/// Waits on an empty EVD. Returns how much longer than `time` it took.
fn overdue(evd: &Evd, time: Duration) -> Result<Duration> {
    let start = Instant::now();
    expires(evd, time)?;
    let took = start.elapsed();
    ensure!(took >= time, "a wait of {time:?} ended after {took:?}");
    Ok(took - time)
}

fn timeout_exact(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    timeouts::after(10 * MS, |time| expires(&evd, time))?;
    for _ in 0..context.count(5) {
        on_time(context.scaled(3 * MS), || overdue(&evd, 10 * MS))?;
    }
    Ok(())
}

fn short_timeouts(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    timeouts::after(Duration::from_micros(999), |time| expires(&evd, time))?;
    for us in [1, 50, 300, 999] {
        on_time(context.scaled(2 * MS), || overdue(&evd, Duration::from_micros(us)))
            .with_context(|| format!("{us} us"))?;
    }
    overdue(&evd, Duration::ZERO)?;
    Ok(())
}

fn timeout_after_longer_ones(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    for longer in [60_000, 3_000, 400] {
        let waiting = evd.clone();
        let worker = Worker::start(move || number(waiting.wait(Some(longer * MS), 1)))?;
        worker.asleep(context)?;
        evd.post_se(1)?;
        same("event", worker.join()??, (1, 0))?;
        for time in [700, 260, 20] {
            on_time(context.scaled(1_000 * MS), || overdue(&evd, time * MS))
                .with_context(|| format!("{time} ms behind {longer} ms"))?;
        }
    }
    Ok(())
}

fn takes_queued_event(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    for (pointer, more) in [(5, 2), (6, 1), (7, 0)] {
        if pointer == 5 {
            (5..8).try_for_each(|pointer| evd.post_se(pointer))?;
        }
        let got = number(evd.wait(Some(Duration::ZERO), 1))?;
        same("event and number of further events", got, (pointer, more))?;
    }
    Ok(())
}

fn threshold(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    for wanted in [1, 2, 5, 8_u32] {
        let waiting = evd.clone();
        let worker = Worker::start(move || number(waiting.wait(None, wanted as i32)))?;
        worker.asleep(context)?;
        for pointer in 0..u64::from(wanted) {
            std::thread::sleep(2 * MS);
            ensure!(!worker.finished(), "woken by {pointer} of {wanted} events");
            evd.post_se(pointer)?;
        }
        let got = worker.join()??;
        same("event and number of further events", got, (0, wanted - 1))?;
        for pointer in 1..u64::from(wanted) {
            same("event", number(evd.dequeue())?.0, pointer)?;
        }
    }
    Ok(())
}

fn threshold_timeout(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    (0..3).try_for_each(|pointer| evd.post_se(pointer))?;
    let start = Instant::now();
    refused(evd.wait(Some(20 * MS), 4), Type::TIMEOUT_EXPIRED)?;
    ensure!(start.elapsed() >= 20 * MS, "the wait ended early");
    same("events", evd.query()?.queued, 3)?;
    for pointer in 0..3 {
        same("event", number(evd.dequeue())?.0, pointer)?;
    }
    Ok(())
}

fn threshold_range(context: &Context) -> Result<()> {
    let evd = software(context, 6)?;
    let qlen = evd.query()?.qlen;
    evd.post_se(1)?;
    for threshold in [0, -1, i32::MIN, qlen + 1, i32::MAX] {
        refused(evd.wait(Some(MS), threshold), Type::INVALID_PARAMETER)?;
    }
    refused(evd.wait(Some(MS), qlen), Type::TIMEOUT_EXPIRED)?;
    same("event", number(evd.wait(Some(MS), 1))?, (1, 0))
}

fn second_waiter_is_refused(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let waiting = evd.clone();
    let worker = Worker::start(move || number(waiting.wait(None, 1)))?;
    worker.asleep(context)?;
    for timeout in [None, Some(Duration::ZERO), Some(10 * MS)] {
        let outcome = evd.wait(timeout, 1);
        refused_as(outcome, Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_WAITER)?;
    }
    // The refused waiters have not changed the first one's state.
    refused_as(evd.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_WAITER)?;
    ensure!(!worker.finished(), "the first waiter was disturbed");
    evd.post_se(77)?;
    same("event", worker.join()??, (77, 0))
}

fn dequeue_during_wait(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let waiting = evd.clone();
    let worker = Worker::start(move || number(waiting.wait(None, 2)))?;
    worker.asleep(context)?;
    evd.post_se(1)?;
    match evd.dequeue() {
        Ok((Event::Software { pointer: 1 }, _)) => evd.post_se(2)?,
        // The dequeue may be refused as well. Then the event is still queued.
        Err(error) if error.subtype() == Some(Subtype::INVALID_STATE_EVD_WAITER) => {}
        other => bail!("a dequeue during a wait returned {other:?}"),
    }
    std::thread::sleep(10 * MS);
    ensure!(!worker.finished(), "one event woke the waiter");
    evd.post_se(3)?;
    same("further events", worker.join()??.1, 1)
}

extern "C" fn ignore(_: libc::c_int) {}

/// Installs a handler for SIGUSR1 that does nothing, with these flags of `sigaction`. With 0 it
/// interrupts every system call.
pub fn interruptible(flags: libc::c_int) {
    // SAFETY: the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

/// Sends SIGUSR1 to a thread of this process.
pub fn interrupt(tid: i32) {
    // SAFETY: signals a thread of this process.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
}

fn signal_interrupts(context: &Context) -> Result<()> {
    interruptible(0);
    let evd = software(context, 4)?;
    for round in 0..context.count(200) {
        let waiting = evd.clone();
        let worker = Worker::start(move || waiting.wait(None, 2).map(|(_, nmore)| nmore))?;
        worker.asleep(context)?;
        evd.post_se(round)?;
        interrupt(worker.tid);
        match worker.join()? {
            Err(error) if error.is_interrupted() => {}
            other => bail!("expected an interrupted wait, got {other:?}"),
        }
        same("event", number(evd.dequeue())?, (round, 0))?;
    }
    Ok(())
}

fn unwaitable(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let told = |outcome: Result<(Event, u32), Error>| {
        refused_as(outcome, Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_UNWAITABLE)
    };
    for threshold in [1, 2] {
        ensure!(evd.query()?.waitable, "the EVD is not waitable");
        let waiting = evd.clone();
        let worker = Worker::start(move || waiting.wait(None, threshold))?;
        worker.asleep(context)?;
        evd.set_unwaitable()?;
        told(worker.join()?)?;
        ensure!(!evd.query()?.waitable, "the EVD is still waitable");
        evd.post_se(7)?;
        told(evd.wait(Some(MS), 1))?;
        same("event", number(evd.dequeue())?, (7, 0))?;
        evd.clear_unwaitable()?;
        evd.post_se(8)?;
        same("event", number(evd.wait(Some(MS), 1))?, (8, 0))?;
    }
    Ok(())
}

fn ia_close_ends_wait(context: &Context) -> Result<()> {
    for threshold in [1, 3] {
        let ia = context.open()?;
        let evd = ia.create_evd(EvdFlags::SOFTWARE | EvdFlags::DTO, 4)?;
        let waiting = evd.clone();
        let worker = Worker::start(move || waiting.wait(None, threshold))?;
        worker.asleep(context)?;
        ia.close(Close::Abrupt)?;
        refused(worker.join()?, Type::ABORT)?;
        refused(evd.wait(None, 1), Type::INVALID_HANDLE)?;
    }
    Ok(())
}

fn evd_free_during_wait(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let waiting = evd.clone();
    let worker = Worker::start(move || waiting.wait(None, 1))?;
    worker.asleep(context)?;
    refused_as(evd.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_WAITER)?;
    evd.post_se(5)?;
    same("event", number(worker.join()?)?, (5, 0))
}

fn file_closed_during_wait(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    let waiting = evd.clone();
    let worker = Worker::start(move || waiting.wait(Some(300 * MS), 1))?;
    worker.asleep(context)?;
    // SAFETY: the descriptor is closed without the library, whose later calls fail.
    unsafe { libc::close(ia.device().as_raw_fd()) };
    refused(worker.join()?, Type::TIMEOUT_EXPIRED)?;
    std::mem::forget((ia, evd));
    crate::machine::no_objects_left(context.settings.scale)
}

fn killed_waiter(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let pid = fork(|| {
        ensure!(evd.wait(None, 1).is_err(), "a wait has returned an event");
        Ok(())
    })?;
    std::thread::sleep(context.scaled(50 * MS));
    let start = Instant::now();
    kill(pid)?;
    let status = end_of(pid)?;
    ensure!(libc::WIFSIGNALED(status), "the child ended with {status:#x}");
    ensure!(start.elapsed() < context.scaled(1000 * MS), "took {:?}", start.elapsed());
    evd.post_se(1)?;
    same("event", number(evd.wait(Some(Duration::ZERO), 1))?, (1, 0))
}

fn forked_child(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let parent = tid();
    let pid = fork(|| {
        ensure!(tid() != parent, "this is the parent");
        Ok(evd.post_se(9)?)
    })?;
    same("status of the child", end_of(pid)?, 0)?;
    same("event", number(evd.wait(Some(Duration::ZERO), 1))?, (9, 0))
}
