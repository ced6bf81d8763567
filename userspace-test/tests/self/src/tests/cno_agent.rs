// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Triggers of a CNO for an agent, which are independent of those for waiters.

use super::cno::evd;
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::eventfd::EventFd;
use crate::expect::{empty, refused, same};
use crate::raw;
use crate::software::take;
use anyhow::{ensure, Result};
use libkdapl::raw::call;
use libkdapl::sys::{kdapl_cno_wait, kdapl_hdr, KDAPL_FLAG_ABSOLUTE, KDAPL_FLAG_AGENT};
use libkdapl::{Cno, Evd, Handle, Ia, Type};
use std::time::Duration;

tests! {
    agent_and_wait_take_same_trigger, 20,
        "A trigger is taken once by the agent and once by a wait, in either order";
    each_trigger_is_taken, 20,
        "The agent takes each trigger of an EVD, also one that was withdrawn, and each by the consumer";
    untaken_by_waiters, 20,
        "An event after the agent has taken a trigger is reported to it, although no wait took the EVD";
    completions, 60, "A completion triggers agent and waiters";
    replaced_agent, 20, "A new agent takes the first pending trigger, and none of the last agent";
    leaving_evd, 20, "An EVD that is freed or leaves the CNO takes its triggers for the agent along";
    no_sleep, 10, "A take for the agent does not sleep, and refuses a time-out";
}

/// A CNO with an eventfd.
struct Watched {
    ia: Ia,
    cno: Cno,
    eventfd: EventFd,
}

fn watched(context: &Context) -> Result<Watched> {
    let ia = context.open()?;
    let eventfd = EventFd::new()?;
    let cno = ia.create_cno(Some(eventfd.fd()))?;
    Ok(Watched { ia, cno, eventfd })
}

/// Takes all triggers for the agent.
fn all(cno: &Cno) -> Result<Vec<Option<Handle>>> {
    let mut taken = Vec::new();
    loop {
        match cno.take_for_agent() {
            Ok(evd) => taken.push(evd),
            Err(error) if error.is_empty() => return Ok(taken),
            Err(error) => return Err(error.into()),
        }
    }
}

fn some(evds: &[&Evd]) -> Vec<Option<Handle>> {
    evds.iter().map(|evd| Some(evd.handle())).collect()
}

fn now(cno: &Cno) -> Result<Option<Handle>> {
    Ok(cno.wait(Some(Duration::ZERO))?)
}

fn agent_and_wait_take_same_trigger(context: &Context) -> Result<()> {
    let Watched { ia, cno, eventfd } = watched(context)?;
    let (one, two) = (evd(&ia, &cno)?, evd(&ia, &cno)?);
    for agent_first in [true, false, true] {
        two.post_se(1)?;
        one.post_se(2)?;
        same("signals", eventfd.signals()?, 2)?;
        let wait = || -> Result<()> {
            for evd in [&two, &one] {
                same("the wait's EVD", now(&cno)?, Some(evd.handle()))?;
                take(evd)?;
                empty(evd)?;
            }
            context.untriggered(&cno)
        };
        let agent = || same("the agent's EVDs", all(&cno)?, some(&[&two, &one]));
        if agent_first {
            agent()?;
            wait()?;
        } else {
            wait()?;
            agent()?;
        }
    }
    same("signals", eventfd.signals()?, 0)
}

fn each_trigger_is_taken(context: &Context) -> Result<()> {
    let Watched { ia, cno, eventfd } = watched(context)?;
    let (one, two) = (evd(&ia, &cno)?, evd(&ia, &cno)?);
    for number in 0..3 {
        one.post_se(number)?;
        // The EVD is found empty, which withdraws its trigger from the waiters.
        take(&one)?;
        empty(&one)?;
    }
    cno.trigger()?;
    cno.trigger()?;
    two.post_se(1)?;
    two.post_se(2)?;
    same("signals", eventfd.signals()?, 6)?;
    let mut expected = some(&[&one, &two, &one, &one]);
    expected.extend([None, None]);
    same("the agent's triggers", all(&cno)?, expected)?;
    same("the wait's EVD", now(&cno)?, Some(two.handle()))
}

fn untaken_by_waiters(context: &Context) -> Result<()> {
    let Watched { ia, cno, eventfd } = watched(context)?;
    let evd = evd(&ia, &cno)?;
    for number in 0..5 {
        evd.post_se(number)?;
        same("signals", eventfd.signals()?, 1)?;
        // A second event before the agent has taken the first is no news.
        evd.post_se(number)?;
        same("signals", eventfd.signals()?, 0)?;
        same("the agent's EVDs", all(&cno)?, some(&[&evd]))?;
    }
    same("queued", evd.query()?.queued, 10)?;
    same("triggered", cno.query()?.triggered, 1)
}

fn completions(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let eventfd = EventFd::new()?;
    let cno = pair.server.ia.create_cno(Some(eventfd.fd()))?;
    let recv = &pair.server.recv;
    recv.modify_cno(Some(&cno))?;
    for round in 0..20 {
        pair.server.receive(0, 64, round)?;
        pair.client.send(0, 64, round)?;
        same("the wait's EVD", cno.wait(Some(context.patience()))?, Some(recv.handle()))?;
        same("signals", eventfd.signals()?, 1)?;
        same("the agent's EVDs", all(&cno)?, some(&[recv]))?;
        context.next(recv)?;
        empty(recv)?;
        context.next(&pair.client.request)?;
    }
    Ok(())
}

fn replaced_agent(context: &Context) -> Result<()> {
    let Watched { ia, cno, .. } = watched(context)?;
    let (one, two) = (evd(&ia, &cno)?, evd(&ia, &cno)?);
    let new = EventFd::new()?;
    two.post_se(1)?;
    one.post_se(1)?;
    cno.modify_agent(None)?;
    same("triggers without an agent", all(&cno)?, vec![])?;
    cno.modify_agent(Some(new.fd()))?;
    same("signals", new.signals()?, 1)?;
    same("the agent's EVDs", all(&cno)?, some(&[&two]))?;
    // The next event of the other EVD is reported.
    one.post_se(2)?;
    same("signals", new.signals()?, 1)?;
    same("the agent's EVDs", all(&cno)?, some(&[&one]))?;
    for evd in [&two, &one] {
        same("the wait's EVD", now(&cno)?, Some(evd.handle()))?;
    }
    Ok(())
}

fn leaving_evd(context: &Context) -> Result<()> {
    let Watched { ia, cno, .. } = watched(context)?;
    let evds = (0..4).map(|_| evd(&ia, &cno)).collect::<Result<Vec<_>>>()?;
    for evd in &evds {
        evd.post_se(1)?;
        take(evd)?;
        empty(evd)?;
    }
    evds[1].free()?;
    evds[2].modify_cno(None)?;
    // A new EVD takes a slot that is free again.
    let new = evd(&ia, &cno)?;
    same("the agent's EVDs", all(&cno)?, some(&[&evds[0], &evds[3]]))?;
    new.post_se(1)?;
    same("the agent's EVDs", all(&cno)?, some(&[&new]))
}

fn no_sleep(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    // A CNO without an eventfd keeps no triggers for an agent.
    cno.trigger()?;
    refused(cno.take_for_agent(), Type::QUEUE_EMPTY)?;
    for more in [0, KDAPL_FLAG_ABSOLUTE] {
        for (timeout_ns, errno) in
            [(0, None), (1, Some(libc::EINVAL)), (u64::MAX, Some(libc::EINVAL))]
        {
            let mut message = kdapl_cno_wait {
                hdr: kdapl_hdr { flags: KDAPL_FLAG_AGENT | more, ..Default::default() },
                handle: cno.handle().0,
                timeout_ns,
                ..Default::default()
            };
            let outcome = raw::call(ia.device(), call::CNO_WAIT, &mut message);
            let error = outcome.err();
            ensure!(error.is_some(), "a trigger");
            same("errno", error.and_then(|error| error.errno()), errno)?;
        }
    }
    same("the wait's trigger", now(&cno)?, None)
}
