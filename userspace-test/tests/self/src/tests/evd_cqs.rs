// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! EVDs with more endpoints than one CQ has room for, and the completion vectors of their CQs.

use super::device_removal::catastrophic;
use super::ep_races::{ep_on, post};
use super::evd_full::no_overflow;
use super::evd_resize::{next, resize_on};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, dto, empty, refused_as, same};
use crate::harness::skip;
use crate::machine::DeviceGuard;
use crate::threads::{Joined, Worker};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, Evd, EvdFlags,
    Event, Handle, Subtype, Type,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

tests! {
    gets_another_cq, 60,
        "An EVD gets another CQ when its endpoints need more room, and keeps it for later ones";
    more_receives_than_longest_cq, 240,
        "More receives than the device's longest CQ holds report to one EVD, each once, in order";
    most_dtos_on_short_evd, 60,
        "An endpoint may have as many DTOs in flight as the device supports, on one short EVD";
    new_cq_wakes_waiter, 60, "A waiter on an EVD that gets another CQ is woken by its completions";
    new_cq_triggers_cno, 60, "A CNO is triggered by completions of a CQ that its EVD got later";
    #[Transport]
    completion_storm, 300,
        "Messages of many endpoints over several CQs of an EVD arrive once, in order, amid resizes";
    completion_vectors, 30,
        "An EVD uses the requested completion vector, by default the CPU's, and no unknown one";
}

tests! {
    REMOVAL:
    device_removal, 120,
        "Removing a device under an EVD with several CQs flushes all receives and frees the CQs";
}

/// Number of completions that the first CQ of a short EVD has room for.
const FIRST_CQ_ENTRIES: u32 = 1024;

fn plain() -> CompletionFlags {
    CompletionFlags::default()
}

fn queues(evd: &Evd) -> Result<u32> {
    Ok(evd.query()?.cqs)
}

fn gets_another_cq(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let evd = end.ia.create_evd(EvdFlags::DTO, 8)?;
    let attr = EpAttr { max_recv_dtos: 128, max_request_dtos: 128, ..Default::default() };
    let ep = || end.ia.create_ep(&end.pz, &evd, &evd, &end.connect, Some(attr));
    let mut eps: Vec<Ep> = Vec::new();
    same("at first", queues(&evd)?, 1)?;
    for count in 1..=24 {
        eps.push(ep()?);
        let needed = 256 * count;
        // Each CQ is four times as long as the one before.
        let expected =
            1 + u32::from(needed > FIRST_CQ_ENTRIES) + u32::from(needed > 5 * FIRST_CQ_ENTRIES);
        same("completion queues", queues(&evd)?, expected).with_context(|| format!("{count}"))?;
    }
    for ep in eps.drain(..12) {
        ep.free()?;
    }
    for _ in 0..12 {
        eps.push(ep()?);
    }
    same("with new endpoints", queues(&evd)?, 3)?;
    drop(eps);
    same("with no endpoint", queues(&evd)?, 3)?;
    let all = EpAttr { max_recv_dtos: 4096, max_request_dtos: 1, ..Default::default() };
    let large = end.ia.create_ep(&end.pz, &evd, &evd, &end.connect, Some(all))?;
    same("with a large endpoint", queues(&evd)?, 3)?;
    drop(large);
    evd.free()?;
    // An EVD without completions has no CQ.
    same("without completions", queues(&end.ia.create_evd(EvdFlags::SOFTWARE, 8)?)?, 0)
}

/// Takes `count` flushed receives. Checks that each endpoint's are in order.
fn take_flushed(context: &Context, evd: &Evd, count: u64) -> Result<HashMap<Handle, u64>> {
    let mut seen: HashMap<Handle, u64> = HashMap::new();
    for number in 0..count {
        let event = context.next(evd).with_context(|| format!("event {number} of {count}"))?;
        let dto = dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
        let due = seen.entry(dto.ep).or_default();
        same("cookie", dto.cookie, *due)?;
        *due += 1;
    }
    empty(evd)?;
    Ok(seen)
}

fn more_receives_than_longest_cq(context: &Context) -> Result<()> {
    const RECEIVES_OF_EACH_EP: u64 = 1024;
    let end = End::new(&context.open()?, Shape::default())?;
    let longest = u64::from(end.ia.query()?.raw.max_dto_per_ep);
    if longest > 40_000 {
        return skip("the CQs of this device hold more entries than the receives of this test");
    }
    let count = longest / RECEIVES_OF_EACH_EP + 4;
    let evd = end.ia.create_evd(EvdFlags::DTO, 64)?;
    let eps = (0..count)
        .map(|_| ep_on(&end, &evd, RECEIVES_OF_EACH_EP as u32))
        .collect::<Result<Vec<_>>>()?;
    ensure!(queues(&evd)? > 1, "one CQ for all endpoints");
    for ep in &eps {
        post(&end, ep, 0..RECEIVES_OF_EACH_EP)?;
    }
    println!("{} receives, {} CQs", count * RECEIVES_OF_EACH_EP, queues(&evd)?);
    let seen = std::thread::scope(|scope| {
        let ender = scope.spawn(|| eps.iter().try_for_each(|ep| ep.disconnect(Close::Abrupt)));
        let seen = take_flushed(context, &evd, count * RECEIVES_OF_EACH_EP);
        ender.join().or_panicked()??;
        seen
    })?;
    for ep in &eps {
        same(
            "receives of an endpoint",
            seen.get(&ep.handle()).copied(),
            Some(RECEIVES_OF_EACH_EP),
        )?;
    }
    no_overflow(&end)
}

fn most_dtos_on_short_evd(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let most = end.ia.query()?.raw.max_dto_per_ep.min(20_000);
    let evd = end.ia.create_evd(EvdFlags::DTO, 8)?;
    let attr = EpAttr { max_recv_dtos: most, max_request_dtos: most, ..Default::default() };
    let ep = end.ia.create_ep(&end.pz, &evd, &evd, &end.connect, Some(attr))?;
    post(&end, &ep, 0..most.into())?;
    std::thread::scope(|scope| {
        let ender = scope.spawn(|| ep.disconnect(Close::Abrupt));
        let seen = take_flushed(context, &evd, most.into());
        ender.join().or_panicked()??;
        same("endpoints", seen?.len(), 1)
    })?;
    no_overflow(&end)
}

/// Creates an endpoint whose receives need a CQ of their own, and posts one.
fn large(end: &End, evd: &Evd) -> Result<Ep> {
    let before = queues(evd)?;
    let ep = ep_on(end, evd, 2 * FIRST_CQ_ENTRIES)?;
    same("completion queues", queues(evd)?, before + 1)?;
    post(end, &ep, 0..1)?;
    Ok(ep)
}

fn new_cq_wakes_waiter(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    for _ in 0..context.count(20).max(5) {
        let evd = end.ia.create_evd(EvdFlags::DTO, 8)?;
        let (waiting, patience) = (evd.clone(), context.patience());
        let worker =
            Worker::start(move || waiting.wait(Some(patience), 1).map(|(event, _)| event))?;
        worker.asleep(context)?;
        let ep = large(&end, &evd)?;
        ensure!(!worker.finished(), "woken by the new CQ");
        ep.disconnect(Close::Abrupt)?;
        dto(&worker.join()??, DtoOperation::Receive, DtoStatus::Flushed)?;
    }
    Ok(())
}

fn new_cq_triggers_cno(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    for _ in 0..context.count(20).max(5) {
        let evd = end.ia.create_evd(EvdFlags::DTO, 8)?;
        let cno = end.ia.create_cno(None)?;
        evd.modify_cno(Some(&cno))?;
        let (waiting, patience) = (cno.clone(), context.patience());
        let worker = Worker::start(move || waiting.wait(Some(patience)))?;
        worker.asleep(context)?;
        let ep = large(&end, &evd)?;
        ep.disconnect(Close::Abrupt)?;
        same("EVD that triggered", worker.join()??, Some(evd.handle()))?;
        let event = evd.dequeue()?.0;
        dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
    }
    Ok(())
}

/// Many endpoints whose completions use one EVD.
struct EpsOfOneEvd {
    end: End,
    evd: Evd,
    eps: Vec<Ep>,
}

/// Outstanding messages of each endpoint.
const OUTSTANDING_MESSAGES: u64 = 16;

impl EpsOfOneEvd {
    fn new(end: End, count: usize) -> Result<Self> {
        let evd = end.ia.create_evd(EvdFlags::DTO, 64)?;
        let attr = EpAttr { max_recv_dtos: 64, max_request_dtos: 64, ..Default::default() };
        let ep = |_| end.ia.create_ep(&end.pz, &evd, &evd, &end.connect, Some(attr));
        let eps = (0..count).map(ep).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { end, evd, eps })
    }

    fn place(&self, ep: Handle) -> Result<usize> {
        self.eps.iter().position(|other| other.handle() == ep).context("an unknown endpoint")
    }

    /// Takes the completions of `each` DTOs of each endpoint, in order. Calls `again` after each.
    fn take(
        &self,
        context: &Context,
        each: u64,
        operation: DtoOperation,
        mut again: impl FnMut(&Ep, u64) -> Result<()>,
    ) -> Result<()> {
        let (mut due, mut rng) = (vec![0; self.eps.len()], context.rng());
        for number in 0..each * self.eps.len() as u64 {
            let event = next(context, &self.evd, &mut rng)
                .with_context(|| format!("{operation} {number}: {:?}", self.evd.query()))?;
            let Event::Dto(found) = event else { bail!("unexpected {event}") };
            let place = self.place(found.ep)?;
            done(&event, operation, 64, due[place])?;
            due[place] += 1;
            again(&self.eps[place], due[place])?;
        }
        empty(&self.evd)
    }
}

fn completion_storm(context: &Context) -> Result<()> {
    const EPS: usize = 24;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let client = EpsOfOneEvd::new(End::new(&client_ia, Shape::default())?, EPS)?;
    let server = EpsOfOneEvd::new(End::new(&server_ia, Shape::default())?, EPS)?;
    for evd in [&client.evd, &server.evd] {
        ensure!(queues(evd)? > 1, "one CQ for all endpoints");
    }
    let each = context.count(2000).max(OUTSTANDING_MESSAGES);
    let receive = |ep: &Ep, cookie| {
        let segment = [server.end.lmr.segment(0, 64)];
        ep.post_recv(&segment, cookie, plain())
    };
    let send = |ep: &Ep, cookie| {
        let segment = [client.end.lmr.segment(0, 64)];
        ep.post_send(&segment, cookie, plain())
    };
    for (here, there) in client.eps.iter().zip(&server.eps) {
        (0..(2 * OUTSTANDING_MESSAGES).min(each)).try_for_each(|cookie| receive(there, cookie))?;
        let patience = Some(context.patience());
        here.connect(context.server_address(), listener.port, patience, &[])?;
        listener.request(context)?.accept(there, &[])?;
        for end in [&client.end, &server.end] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
    }
    let stop = AtomicBool::new(false);
    // Flow control: each message finds a posted receive.
    let credit = std::sync::Mutex::new(HashMap::<usize, u64>::new());
    let resized = std::thread::scope(|scope| -> Result<u64> {
        let resizers: Vec<_> = [&client.evd, &server.evd]
            .into_iter()
            .map(|evd| {
                let (stop, rng) = (&stop, context.rng());
                scope.spawn(move || resize_on(evd, rng, stop))
            })
            .collect();
        let (credit, server, receive) = (&credit, &server, &receive);
        let theirs = context.new_for_thread();
        let taker = scope.spawn(move || {
            server.take(&theirs, each, DtoOperation::Receive, |ep, taken| {
                let behind = taken - 1 + 2 * OUTSTANDING_MESSAGES;
                if behind < each {
                    receive(ep, behind)?;
                }
                let mut credit = credit.lock().or_else(|_| bail!("a thread panicked"))?;
                *credit.entry(server.place(ep.handle())?).or_default() = taken;
                Ok(())
            })
        });
        for ep in &client.eps {
            (0..OUTSTANDING_MESSAGES.min(each)).try_for_each(|cookie| send(ep, cookie))?;
        }
        let sent = client.take(context, each, DtoOperation::Send, |ep, taken| {
            let next = taken - 1 + OUTSTANDING_MESSAGES;
            if next >= each {
                return Ok(());
            }
            let place = client.place(ep.handle())?;
            context.until("the peer has taken enough messages", || {
                let credit = credit.lock().or_else(|_| bail!("a thread panicked"))?;
                Ok(next < credit.get(&place).copied().unwrap_or(0) + 2 * OUTSTANDING_MESSAGES)
            })?;
            Ok(send(ep, next)?)
        });
        let taken = taker.join().or_panicked()?;
        stop.store(true, Ordering::Relaxed);
        let mut resized = 0;
        for resizer in resizers {
            resized += resizer.join().or_panicked()??;
        }
        sent.context("client")?;
        taken.context("server")?;
        Ok(resized)
    })?;
    println!(
        "{} messages, {resized} resizes, {} and {} CQs",
        each * EPS as u64,
        queues(&client.evd)?,
        queues(&server.evd)?
    );
    no_overflow(&client.end)?;
    no_overflow(&server.end)
}

/// Binds the calling thread to a CPU. Returns whether that CPU exists.
fn bind_to(cpu: usize) -> bool {
    // SAFETY: a set of CPUs is plain bits, and the call reads one.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

fn completion_vectors(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let count = ia.query()?.raw.completion_vectors;
    ensure!(count >= 1, "no completion vector");
    println!("{count} completion vectors");
    for vector in 0..count {
        let evd = ia.create_evd_on(EvdFlags::DTO, 8, vector as i32)?;
        same("requested vector", evd.query()?.vector, vector)?;
    }
    for vector in [count as i32, i32::MAX, -2, i32::MIN] {
        let made = ia.create_evd_on(EvdFlags::DTO, 8, vector);
        refused_as(made, Type::INVALID_PARAMETER, Subtype::INVALID_ARG6)?;
    }
    let worker = Worker::start(move || -> Result<u32> {
        let mut found = 0;
        for cpu in (0..64).filter(|cpu| bind_to(*cpu)) {
            let evd = ia.create_evd(EvdFlags::DTO, 8)?;
            same("vector of this CPU", evd.query()?.vector, cpu as u32 % count)?;
            found += 1;
        }
        Ok(found)
    })?;
    ensure!(worker.join()?? >= 1, "no CPU was found");
    Ok(())
}

fn device_removal(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let end = End::new(&context.open()?, Shape::default())?;
    let evd = end.ia.create_evd(EvdFlags::DTO, 8192)?;
    let eps = (0..4).map(|_| ep_on(&end, &evd, 8192)).collect::<Result<Vec<_>>>()?;
    ensure!(queues(&evd)? > 1, "one CQ for all endpoints");
    for ep in &eps {
        post(&end, ep, 0..64)?;
    }
    guard.delete()?;
    catastrophic(context, &end.ia)?;
    same("completion queues", queues(&evd)?, 0)?;
    let seen = take_flushed(context, &evd, 4 * 64)?;
    same("endpoints", seen.len(), 4)?;
    drop((eps, end));
    guard.add()
}
