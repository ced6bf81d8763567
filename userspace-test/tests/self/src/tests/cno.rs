// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Notification objects (CNO): one wait for the events of many EVDs.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, empty, refused, refused_as, same};
use crate::machine;
use crate::repeat::unheard;
use crate::software::take;
use crate::threads::{Joined, Worker};
use crate::timeouts;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Close, Cno, CnoQuery, DtoOperation, Error, Evd, EvdFlags, Handle, Ia, Subtype, Type,
};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Barrier;
use std::time::Duration;

tests! {
    create_query_free, 10,
        "A CNO can be created, queried and freed, but not freed while an EVD is linked to it";
    bad_handles, 10,
        "A CNO call refuses a freed CNO, another adapter's CNO, and a file that is no eventfd";
    trigger_is_kept, 10, "A trigger is kept until a wait takes it, and is taken once";
    evds_in_trigger_order, 10, "A CNO wait returns EVDs in the order in which they triggered, each once";
    unemptied_evd_triggers_again, 20, "A CNO wait returns an EVD again if it was not emptied, and not if it was";
    wait_times_out, 20,
        "A CNO wait without a trigger ends with QUEUE_EMPTY in time, and consumes no trigger";
    trigger_wakes_one_waiter, 30, "Each trigger wakes one of several waiters";
    each_stream_triggers, 60,
        "Completions, connection requests and connection events trigger the CNO of their EVD";
    drain_triggers_once, 60, "Draining completions does not trigger the CNO a second time";
    evd_waiter_takes_event_first, 30,
        "A waiter on the EVD itself takes the event, and remaining events trigger the CNO";
    disabled_evd_does_not_trigger, 20,
        "A disabled EVD does not trigger its CNO, and its queued events trigger once it is enabled";
    trigger_moves_with_evd, 20, "An EVD that moves to another CNO takes its trigger along";
    consumer_trigger, 20, "A trigger by the consumer wakes one waiter of the CNO, without an EVD";
    close_ends_waits, 20, "A close of the IA, or freeing the last EVD, ends the waits on a CNO";
    evds_freed_beside_modify, 60,
        "An EVD that is freed while it gets another CNO leaves none of its places at a CNO";
    signal_interrupts_wait, 30, "A signal ends a CNO wait with INTERRUPTED_CALL and loses no trigger";
}

const SOFTWARE: EvdFlags = EvdFlags::SOFTWARE;

/// Creates an EVD for software events that triggers `cno`.
pub fn evd(ia: &Ia, cno: &Cno) -> Result<Evd> {
    let evd = ia.create_evd(SOFTWARE, 64)?;
    evd.modify_cno(Some(cno))?;
    Ok(evd)
}

fn next(context: &Context, cno: &Cno) -> Result<Handle> {
    let handle = cno.wait(Some(context.patience())).context("no EVD has triggered")?;
    handle.context("a trigger without an EVD")
}

/// Checks which EVD triggers next.
fn triggered_by(context: &Context, cno: &Cno, evd: &Evd) -> Result<()> {
    same("EVD", next(context, cno)?, evd.handle())
}

/// As [`triggered_by`], for events that the driver or the link may add to.
fn notified_by(context: &Context, cno: &Cno, evd: &Evd) -> Result<()> {
    let (found, expected) = (next(context, cno)?, evd.handle());
    if found != expected {
        unheard!("{found} has triggered the CNO, expected {expected}");
    }
    Ok(())
}

fn create_query_free(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let of = |evds, triggered| CnoQuery { has_agent: false, evds, triggered };
    same("CNO", cno.query()?, of(0, 0))?;
    let evd = evd(&ia, &cno)?;
    same("the EVD's CNO", evd.query()?.cno, Some(cno.handle()))?;
    same("CNO", cno.query()?, of(1, 0))?;
    evd.post_se(1)?;
    evd.post_se(2)?;
    same("CNO", cno.query()?, of(1, 1))?;
    refused_as(cno.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_CNO_IN_USE)?;
    evd.modify_cno(None)?;
    same("CNO", cno.query()?, of(0, 0))?;
    same("the EVD's CNO", evd.query()?.cno, None)?;
    same("CNOs", machine::count_of("cno")?, 1)?;
    cno.free()?;
    context.until("the CNO's memory is freed", || Ok(machine::count_of("cno")? == 0))
}

fn bad_handles(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let invalid = |outcome: Result<(), Error>| {
        refused_as(outcome, Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_CNO)
    };
    let freed = ia.create_cno(None)?;
    freed.free()?;
    let evd = ia.create_evd(SOFTWARE, 4)?;
    invalid(evd.modify_cno(Some(&freed)))?;
    invalid(freed.trigger())?;
    invalid(freed.wait(Some(Duration::ZERO)).map(drop))?;
    invalid(freed.query().map(drop))?;
    invalid(freed.modify_agent(None))?;
    // A CNO of another adapter.
    let other = context.open()?.create_cno(None)?;
    invalid(evd.modify_cno(Some(&other)))?;
    same("the EVD's CNO", evd.query()?.cno, None)?;
    let file = File::open("/dev/null")?;
    let no_eventfd = (Type::INVALID_PARAMETER, Subtype::INVALID_ARG2);
    refused_as(ia.create_cno(Some(file.as_fd())), no_eventfd.0, no_eventfd.1)?;
    let cno = ia.create_cno(None)?;
    refused_as(cno.modify_agent(Some(file.as_fd())), no_eventfd.0, no_eventfd.1)
}

fn trigger_is_kept(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = evd(&ia, &cno)?;
    evd.post_se(1)?;
    evd.post_se(2)?;
    triggered_by(context, &cno, &evd)?;
    same("event", take(&evd)?, 1)?;
    same("event", take(&evd)?, 2)?;
    context.untriggered(&cno)?;
    evd.post_se(3)?;
    triggered_by(context, &cno, &evd)
}

fn evds_in_trigger_order(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evds = (0..40).map(|_| evd(&ia, &cno)).collect::<Result<Vec<_>>>()?;
    let mut order: Vec<_> = (0..evds.len()).collect();
    context.rng().shuffle(&mut order);
    for n in &order {
        (0..3).try_for_each(|number| evds[*n].post_se(number))?;
    }
    // A freed EVD is not returned. The others keep their order.
    let gone = order.remove(order.len() / 2);
    evds[gone].free()?;
    for n in order {
        triggered_by(context, &cno, &evds[n])?;
        (0..3).try_for_each(|number| same("event", take(&evds[n])?, number))?;
        empty(&evds[n])?;
    }
    context.untriggered(&cno)
}

fn unemptied_evd_triggers_again(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let (one, two) = (evd(&ia, &cno)?, evd(&ia, &cno)?);
    (0..3).try_for_each(|number| one.post_se(number))?;
    for number in 0..3 {
        // One event for each wait.
        triggered_by(context, &cno, &one)?;
        same("event", take(&one)?, number)?;
    }
    context.untriggered(&cno)?;
    // The EVD comes after one that triggered meanwhile.
    (0..2).try_for_each(|number| one.post_se(number))?;
    triggered_by(context, &cno, &one)?;
    two.post_se(9)?;
    triggered_by(context, &cno, &two)?;
    triggered_by(context, &cno, &one)
}

fn wait_times_out(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = evd(&ia, &cno)?;
    let time = Duration::from_millis(20);
    timeouts::after(time, |time| {
        refused_as(cno.wait(Some(time)), Type::QUEUE_EMPTY, Subtype::NO_SUBTYPE)
    })?;
    refused_as(cno.wait(Some(Duration::ZERO)), Type::QUEUE_EMPTY, Subtype::NO_SUBTYPE)?;
    evd.post_se(1)?;
    same("EVD", cno.wait(Some(Duration::ZERO))?, Some(evd.handle()))
}

/// Starts a thread that waits once.
fn waiter(context: &Context, cno: &Cno) -> Result<Worker<Result<Option<Handle>, Error>>> {
    let (theirs, patience) = (cno.clone(), context.patience());
    let worker = Worker::start(move || theirs.wait(Some(patience)))?;
    worker.asleep(context)?;
    Ok(worker)
}

fn trigger_wakes_one_waiter(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evds = (0..4).map(|_| evd(&ia, &cno)).collect::<Result<Vec<_>>>()?;
    let mut waiters = (0..4).map(|_| waiter(context, &cno)).collect::<Result<Vec<_>>>()?;
    refused_as(cno.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_CNO_IN_USE)?;
    for (left, evd) in (0..4).rev().zip(&evds) {
        evd.post_se(1)?;
        context.until("one waiter has returned", || {
            Ok(waiters.iter().filter(|waiter| !waiter.finished()).count() == left)
        })?;
        let back = waiters.iter().position(Worker::finished).context("no waiter has returned")?;
        same("EVD", waiters.remove(back).join()??, Some(evd.handle()))?;
        std::thread::sleep(Duration::from_millis(5));
        same("others", waiters.iter().filter(|waiter| waiter.finished()).count(), 0)?;
    }
    Ok(())
}

fn each_stream_triggers(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (client, server) = (&pair.client, &pair.server);
    let cno = server.ia.create_cno(None)?;
    for evd in [&server.recv, &server.connect, &pair.listener.evd] {
        evd.modify_cno(Some(&cno))?;
    }
    for round in 0..context.count(200) {
        server.receive(0, 64, round)?;
        client.send(0, 64, round)?;
        notified_by(context, &cno, &server.recv)?;
        done(&server.recv.dequeue()?.0, DtoOperation::Receive, 64, round)?;
        context.next(&client.request)?;
    }
    context.untriggered(&cno)?;
    // Several completions trigger once. Those that are not taken trigger again.
    for cookie in 0..3 {
        server.receive(0, 64, cookie)?;
        client.send(0, 64, cookie)?;
        context.next(&client.request)?;
    }
    for cookie in 0..3 {
        notified_by(context, &cno, &server.recv)?;
        done(&server.recv.dequeue()?.0, DtoOperation::Receive, 64, cookie)?;
    }
    let other = client.another_ep()?;
    other.connect(context.server_address(), pair.listener.port, Some(context.patience()), &[])?;
    notified_by(context, &cno, &pair.listener.evd)?;
    let mut cr = pair.listener.request(context)?;
    let ep = server.another_ep()?;
    cr.accept(&ep, &[])?;
    notified_by(context, &cno, &server.connect)?;
    context.next(&server.connect)?;
    other.disconnect(Close::Abrupt)?;
    notified_by(context, &cno, &server.connect)
}

fn drain_triggers_once(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (client, server) = (&pair.client, &pair.server);
    let cno = server.ia.create_cno(None)?;
    server.recv.modify_cno(Some(&cno))?;
    for cookie in 0..2 {
        server.receive(0, 64, cookie)?;
        client.send(0, 64, cookie)?;
        context.next(&client.request)?;
    }
    triggered_by(context, &cno, &server.recv)?;
    // The watch of the connection drains the CQ once a second.
    context.until("both are drained", || Ok(server.recv.query()?.queued == 2))?;
    std::thread::sleep(context.scaled(Duration::from_millis(20)));
    same("triggered", cno.query()?.triggered, 0)?;
    for cookie in 0..2 {
        done(&server.recv.dequeue()?.0, DtoOperation::Receive, 64, cookie)?;
    }
    context.untriggered(&cno)
}

fn evd_waiter_takes_event_first(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = evd(&ia, &cno)?;
    let (theirs, patience) = (evd.clone(), context.patience());
    let worker = Worker::start(move || theirs.wait(Some(patience), 2))?;
    worker.asleep(context)?;
    evd.post_se(1)?;
    same("triggered", cno.query()?.triggered, 0)?;
    evd.post_se(2)?;
    let (_, left) = worker.join()??;
    same("left", left, 1)?;
    triggered_by(context, &cno, &evd)?;
    same("event", take(&evd)?, 2)?;
    context.untriggered(&cno)
}

fn disabled_evd_does_not_trigger(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = evd(&ia, &cno)?;
    ensure!(evd.query()?.enabled, "an EVD begins disabled");
    evd.disable()?;
    ensure!(!evd.query()?.enabled, "still enabled");
    evd.post_se(1)?;
    context.untriggered(&cno)?;
    evd.enable()?;
    triggered_by(context, &cno, &evd)?;
    same("event", take(&evd)?, 1)?;
    // Waits on the EVD itself still work.
    evd.disable()?;
    evd.post_se(2)?;
    ensure!(evd.wait(Some(Duration::ZERO), 1).is_ok(), "a disabled EVD cannot be waited on");
    evd.enable()?;
    context.untriggered(&cno)
}

fn trigger_moves_with_evd(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (one, two) = (ia.create_cno(None)?, ia.create_cno(None)?);
    let evd = evd(&ia, &one)?;
    evd.post_se(1)?;
    evd.modify_cno(Some(&two))?;
    same("triggered", (one.query()?.triggered, two.query()?.triggered), (0, 1))?;
    triggered_by(context, &two, &evd)?;
    // It was returned, not emptied, and moved: the new CNO checks it again.
    evd.modify_cno(Some(&one))?;
    triggered_by(context, &one, &evd)?;
    same("event", take(&evd)?, 1)?;
    context.untriggered(&one)?;
    context.untriggered(&two)
}

fn consumer_trigger(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    cno.trigger()?;
    cno.trigger()?;
    same("EVD", cno.wait(Some(Duration::ZERO))?, None)?;
    context.untriggered(&cno)?;
    let worker = waiter(context, &cno)?;
    cno.trigger()?;
    same("EVD", worker.join()??, None)
}

fn close_ends_waits(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = evd(&ia, &cno)?;
    let worker = waiter(context, &cno)?;
    evd.free()?;
    refused_as(worker.join()?, Type::ABORT, Subtype::NO_SUBTYPE)?;
    // The CNO has no EVD. A wait is allowed, since one may be linked later.
    let worker = waiter(context, &cno)?;
    ia.close(Close::Abrupt)?;
    refused_as(worker.join()?, Type::ABORT, Subtype::NO_SUBTYPE)
}

fn signal_interrupts_wait(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = evd(&ia, &cno)?;
    super::wait::interruptible(0);
    let worker = waiter(context, &cno)?;
    super::wait::interrupt(worker.tid);
    refused_as(worker.join()?, Type::INTERRUPTED_CALL, Subtype::NO_SUBTYPE)?;
    evd.post_se(1)?;
    triggered_by(context, &cno, &evd)
}

fn evds_freed_beside_modify(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    for round in 0..context.count(4000) {
        let evd = ia.create_evd(SOFTWARE, 1)?;
        let begin = Barrier::new(2);
        let modified = std::thread::scope(|scope| {
            let modify = scope.spawn(|| {
                begin.wait();
                evd.modify_cno(Some(&cno))
            });
            begin.wait();
            // The free overtakes the other call, or follows it, by some time.
            (0..round % 64 * 16).for_each(|_| std::hint::spin_loop());
            evd.free()?;
            modify.join().or_panicked()
        })?;
        if let Err(error) = modified {
            refused(Err::<(), _>(error), Type::INVALID_HANDLE)?;
        }
        same(&format!("EVDs of the CNO after round {round}"), cno.query()?.evds, 0)?;
    }
    Ok(())
}
