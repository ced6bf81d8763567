// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Completion flags: which a DTO may have, which endpoints may share an EVD, and who is woken.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, done, dto, empty, refused_as, same};
use crate::threads::Worker;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, Cno, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, EpChange,
    Error, Evd, EvdConfig, EvdFlags, Event, Segment, Subtype, Type,
};
use std::time::Duration;

tests! {
    of_dtos, 60, "Each operation takes the completion flags that it knows and its endpoint has, and no others";
    of_endpoints, 30, "An endpoint is configured for one kind of completions a direction, or refused";
    on_an_evd, 60, "Endpoints on one EVD have the same completion flags, and but for EVD_THRESHOLD nothing else comes there";
    changed, 60, "An endpoint changes its completion flags before receives are posted, and its EVD with it";
    changed_together, 60, "Both directions of an endpoint on one EVD change together, or neither does";
    suppressed_failure, 60, "A suppressed request that fails makes an event, and wakes";
    unsignalled_wakes_nobody, 60, "Unsignalled completions leave a waiter asleep, and the signalled one behind them wakes it for all";
    unsignalled_failure, 60, "An unsignalled DTO that fails wakes its waiter";
    unsignalled_receives, 60, "Unsignalled receives leave a waiter asleep until a signalled one completes";
    unsignalled_full, 60, "A waiter is woken when unsignalled events fill its EVD, in front of a signalled one";
    unsignalled_cno, 60, "Unsignalled completions trigger no CNO, the signalled one behind them does";
    unsignalled_storm, 300, "Signalled completions among unsignalled ones each wake a waiter, and nothing is lost";
    solicited_wakes, 60, "A waiter for solicited messages sleeps through the others, and gets all of them";
    solicited_cno, 60, "A CNO is triggered by a solicited message and not by the others";
    solicited_end, 60, "The end of its connection and what is flushed wake a waiter for solicited messages";
    solicited_storm, 300, "Solicited messages among others each wake a waiter, and nothing is lost";
    one_at_a_time, 60, "Who chooses what wakes waits for one event: a threshold above is refused with the EVD's configuration";
}

const PLAIN: CompletionFlags = CompletionFlags(0);
const SUPPRESS: CompletionFlags = CompletionFlags::SUPPRESS;
const SOLICITED: CompletionFlags = CompletionFlags::SOLICITED_WAIT;
const UNSIGNALLED: CompletionFlags = CompletionFlags::UNSIGNALLED;
const FENCE: CompletionFlags = CompletionFlags::BARRIER_FENCE;
const THRESHOLD: CompletionFlags = CompletionFlags::EVD_THRESHOLD;

/// For receives and for requests.
fn attr(recv: CompletionFlags, request: CompletionFlags) -> EpAttr {
    EpAttr {
        recv_completion_flags: recv.0,
        request_completion_flags: request.0,
        max_recv_dtos: 32,
        max_request_dtos: 32,
        ..Default::default()
    }
}

/// An end whose endpoint has these flags, and EVDs of its own for receives and requests.
struct Flagged {
    end: End,
    ep: Ep,
    recv: Evd,
    request: Evd,
}

impl Flagged {
    fn new(end: End, recv: CompletionFlags, request: CompletionFlags) -> Result<Self> {
        let evd = || end.ia.create_evd(EvdFlags::DTO, 32);
        let (receives, requests) = (evd()?, evd()?);
        let attr = Some(attr(recv, request));
        let ep = end.ia.create_ep(&end.pz, &receives, &requests, &end.connect, attr)?;
        Ok(Self { end, ep, recv: receives, request: requests })
    }

    fn segment(&self) -> [Segment; 1] {
        [self.end.lmr.segment(0, 64)]
    }

    fn receive(&self, cookie: u64, flags: CompletionFlags) -> Result<(), Error> {
        self.ep.post_recv(&self.segment(), cookie, flags)
    }

    fn send(&self, cookie: u64, flags: CompletionFlags) -> Result<(), Error> {
        self.ep.post_send(&self.segment(), cookie, flags)
    }
}

/// Two of them, connected; only the client's differ from the default in what they ask for.
struct FlaggedPair {
    client: Flagged,
    server: Flagged,
    _listener: Listener,
}

impl FlaggedPair {
    fn new(context: &Context, recv: CompletionFlags, request: CompletionFlags) -> Result<Self> {
        let (client_ia, server_ia) = context.open_both()?;
        let listener = Listener::new(context, &server_ia)?;
        let client = Flagged::new(End::new(&client_ia, Shape::default())?, recv, request)?;
        let server = Flagged::new(End::new(&server_ia, Shape::default())?, PLAIN, PLAIN)?;
        let patience = Some(context.patience());
        client.ep.connect(context.server_address(), listener.port, patience, &[])?;
        listener.request(context)?.accept(&server.ep, &[])?;
        for end in [&client.end, &server.end] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
        // Who accepted may not speak first over iWARP.
        server.receive(0, PLAIN)?;
        client.send(0, PLAIN)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 0)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 64, 0)?;
        Ok(Self { client, server, _listener: listener })
    }

    /// A message to the client, which has left the server when this returns.
    fn message(&self, context: &Context, cookie: u64, flags: CompletionFlags) -> Result<()> {
        self.server.send(cookie, flags)?;
        done(&context.next(&self.server.request)?, DtoOperation::Send, 64, cookie)
    }
}

fn parameter<T: std::fmt::Debug>(outcome: Result<T, Error>, subtype: Subtype) -> Result<()> {
    refused_as(outcome, Type::INVALID_PARAMETER, subtype)
}

/// Every word of the known flags, and one with an unknown flag.
fn words() -> impl Iterator<Item = CompletionFlags> {
    (0..0x40).chain([0x8000_0000]).map(CompletionFlags)
}

fn of_dtos(context: &Context) -> Result<()> {
    for configured in [PLAIN, UNSIGNALLED] {
        let pair = FlaggedPair::new(context, configured, configured)?;
        let (client, server) = (&pair.client, &pair.server);
        let all = SUPPRESS | FENCE | configured;
        let remote = server.end.lmr.remote_segment(0, 64);
        type Post<'a> = &'a dyn Fn(CompletionFlags) -> Result<(), Error>;
        let segment = client.segment();
        let operations: [(&str, CompletionFlags, Subtype, Post<'_>); 4] = [
            ("send", all | SOLICITED, Subtype::INVALID_ARG5, &|flags| client.send(1, flags)),
            ("receive", configured, Subtype::INVALID_ARG5, &|flags| client.receive(1, flags)),
            ("RDMA write", all, Subtype::INVALID_ARG6, &|flags| {
                client.ep.post_rdma_write(&segment, remote, 1, flags)
            }),
            ("RDMA read", all, Subtype::INVALID_ARG6, &|flags| {
                client.ep.post_rdma_read(&segment, remote, 1, flags)
            }),
        ];
        for (name, known, argument, post) in operations {
            for flags in words() {
                let what = || format!("{name} with {flags:?} where {configured:?}");
                if !known.contains(flags) {
                    parameter(post(flags), argument).with_context(what)?;
                    continue;
                }
                if name == "send" {
                    server.receive(1, PLAIN)?;
                }
                post(flags).with_context(what)?;
                if name == "receive" {
                    pair.message(context, 1, PLAIN)?;
                    done(&taken(context, &client.recv)?, DtoOperation::Receive, 64, 1)?;
                } else if !flags.contains(SUPPRESS) {
                    let event = taken(context, &client.request).with_context(what)?;
                    ensure!(matches!(event, Event::Dto(dto) if dto.cookie == 1), "{event}");
                }
                if name == "send" {
                    done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 1)?;
                }
            }
        }
        empty(&client.request)?;
    }
    Ok(())
}

fn of_endpoints(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    for flags in words() {
        for (attr, known) in [
            (attr(flags, PLAIN), [PLAIN, THRESHOLD, UNSIGNALLED, SOLICITED].contains(&flags)),
            (attr(PLAIN, flags), [PLAIN, THRESHOLD, UNSIGNALLED].contains(&flags)),
        ] {
            let evd = || end.ia.create_evd(EvdFlags::DTO, 4);
            let (recv, request) = (evd()?, evd()?);
            let made = end.ia.create_ep(&end.pz, &recv, &request, &end.connect, Some(attr));
            if known {
                let given = made?.query()?.raw.attr;
                same("for receives", given.recv_completion_flags, attr.recv_completion_flags)?;
                let (given, asked) =
                    (given.request_completion_flags, attr.request_completion_flags);
                same("for requests", given, asked)?;
            } else {
                parameter(made, Subtype::INVALID_ARG6).with_context(|| format!("{flags:?}"))?;
            }
        }
    }
    Ok(())
}

/// The configuration of an EVD where all endpoints have these flags.
fn config(flags: CompletionFlags) -> EvdConfig {
    match flags {
        UNSIGNALLED => EvdConfig::Notify,
        SOLICITED => EvdConfig::Solicited,
        _ => EvdConfig::Threshold,
    }
}

fn on_an_evd(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let evd = |flags| end.ia.create_evd(flags, 16);
    let ep = |recv: &Evd, request: &Evd, flags: (CompletionFlags, CompletionFlags)| {
        end.ia.create_ep(&end.pz, recv, request, &end.connect, Some(attr(flags.0, flags.1)))
    };
    let all = [PLAIN, THRESHOLD, UNSIGNALLED, SOLICITED];
    // Receives of two endpoints.
    for first in all {
        for second in all {
            let (shared, other) = (evd(EvdFlags::DTO)?, evd(EvdFlags::DTO)?);
            same("before", shared.query()?.wakes, EvdConfig::Threshold)?;
            let one = ep(&shared, &other, (first, PLAIN))?;
            same("with one", shared.query()?.wakes, config(first))?;
            let two = ep(&shared, &other, (second, PLAIN));
            if config(first) == config(second) {
                two?;
            } else {
                parameter(two, Subtype::INVALID_ARG3)?;
            }
            same("with the first", shared.query()?.wakes, config(first))?;
            drop(one);
            same("with none", shared.query()?.wakes, EvdConfig::Threshold)?;
            ep(&shared, &other, (second, PLAIN)).context("once the first is gone")?;
        }
    }
    // Receives and requests of one endpoint.
    for recv in all {
        for request in [PLAIN, THRESHOLD, UNSIGNALLED] {
            let shared = evd(EvdFlags::DTO)?;
            let made = ep(&shared, &shared, (recv, request));
            if config(recv) == config(request) {
                same("both", shared.query()?.wakes, config(recv))?;
                made?;
            } else {
                parameter(made, Subtype::INVALID_ARG4)?;
            }
        }
    }
    // What else comes there.
    for other in [EvdFlags::SOFTWARE, EvdFlags::CONNECTION, EvdFlags::CR, EvdFlags::ASYNC] {
        let (mixed, pure) = (evd(EvdFlags::DTO | other)?, evd(EvdFlags::DTO)?);
        for flags in [UNSIGNALLED, SOLICITED] {
            parameter(ep(&mixed, &pure, (flags, PLAIN)), Subtype::INVALID_ARG3)?;
        }
        parameter(ep(&pure, &mixed, (PLAIN, UNSIGNALLED)), Subtype::INVALID_ARG4)?;
        ep(&mixed, &mixed, (THRESHOLD, PLAIN))?;
    }
    let binds = evd(EvdFlags::DTO | EvdFlags::RMR_BIND)?;
    ep(&binds, &binds, (UNSIGNALLED, UNSIGNALLED)).context("binds are requests as well")?;
    let pure = evd(EvdFlags::DTO)?;
    parameter(ep(&binds, &pure, (SOLICITED, PLAIN)), Subtype::INVALID_ARG3)
}

fn changed(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let flagged = Flagged::new(end, PLAIN, PLAIN)?;
    let Flagged { end, ep, recv, request } = &flagged;
    let new = EpChange::new;
    for flags in [UNSIGNALLED, SOLICITED, THRESHOLD, UNSIGNALLED] {
        ep.modify(new().recv_completion_flags(flags.0))?;
        same("for receives", recv.query()?.wakes, config(flags))?;
    }
    ep.modify(new().request_completion_flags(UNSIGNALLED.0))?;
    same("for requests", request.query()?.wakes, EvdConfig::Notify)?;
    for flags in [SUPPRESS, FENCE, SOLICITED, UNSIGNALLED | THRESHOLD] {
        parameter(ep.modify(new().request_completion_flags(flags.0)), Subtype::INVALID_ARG3)?;
    }
    flagged.receive(1, UNSIGNALLED)?;
    let outcome = ep.modify(new().recv_completion_flags(0));
    refused_as(outcome, Type::INVALID_STATE, Subtype::INVALID_STATE_EP_UNCONNECTED)?;
    same("for receives", recv.query()?.wakes, EvdConfig::Notify)?;
    ep.modify(new().recv_completion_flags(UNSIGNALLED.0)).context("what it is already")?;
    // To an EVD where others have other flags.
    let plain = end.ia.create_evd(EvdFlags::DTO, 4)?;
    let other = attr(PLAIN, PLAIN);
    let other = end.ia.create_ep(&end.pz, &plain, &plain, &end.connect, Some(other))?;
    parameter(ep.modify(new().recv(&plain)), Subtype::INVALID_ARG3)?;
    parameter(ep.modify(new().request(&plain)), Subtype::INVALID_ARG4)?;
    parameter(other.modify(new().recv(recv)), Subtype::INVALID_ARG3)?;
    same("the other's", plain.query()?.wakes, EvdConfig::Threshold)?;
    drop(other);
    ep.modify(new().recv(&plain).request(&plain)).context("once the other is gone")?;
    same("the new one", plain.query()?.wakes, EvdConfig::Notify)?;
    for left in [recv, request] {
        same("the one that was left", left.query()?.wakes, EvdConfig::Threshold)?;
        left.free()?;
    }
    Ok(())
}

fn changed_together(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let evd = end.ia.create_evd(EvdFlags::DTO, 4)?;
    let attr = Some(attr(PLAIN, PLAIN));
    let ep = end.ia.create_ep(&end.pz, &evd, &evd, &end.connect, attr)?;
    let new = EpChange::new;
    let both = |bits| new().recv_completion_flags(bits).request_completion_flags(bits);
    parameter(ep.modify(new().recv_completion_flags(UNSIGNALLED.0)), Subtype::INVALID_ARG4)?;
    parameter(ep.modify(new().request_completion_flags(UNSIGNALLED.0)), Subtype::INVALID_ARG4)?;
    same("after neither", evd.query()?.wakes, EvdConfig::Threshold)?;
    ep.modify(both(UNSIGNALLED.0))?;
    same("after both", evd.query()?.wakes, EvdConfig::Notify)?;
    ep.modify(both(THRESHOLD.0))?;
    same("after both again", evd.query()?.wakes, EvdConfig::Threshold)
}

fn suppressed_failure(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, PLAIN, PLAIN)?;
    let (client, server) = (&pair.client, &pair.server);
    let worker = sleeper(context, &client.request)?;
    server.receive(1, PLAIN)?;
    client.send(1, SUPPRESS)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 1)?;
    ensure!(!worker.finished(), "woken by what is suppressed");
    // Of memory that the peer does not have. Not a send: over iWARP that is complete when TCP has it.
    let mut nowhere = server.end.lmr.remote_segment(0, 64);
    nowhere.context ^= 0x00ff_ff00;
    client.ep.post_rdma_read(&client.segment(), nowhere, 2, SUPPRESS)?;
    match woken(context, worker)?.0 {
        Event::Dto(dto) if dto.cookie == 2 && dto.status != DtoStatus::Success => Ok(()),
        other => bail!("{other} instead of a failure"),
    }
}

/// A waiter that sleeps on an EVD, for ever, and how many events it leaves behind the one that it takes.
fn sleeper(context: &Context, evd: &Evd) -> Result<Worker<Result<(Event, u32), Error>>> {
    let evd = evd.clone();
    let worker = Worker::start(move || evd.wait(None, 1))?;
    worker.asleep(context)?;
    Ok(worker)
}

/// What it takes once it is woken.
fn woken(context: &Context, worker: Worker<Result<(Event, u32), Error>>) -> Result<(Event, u32)> {
    context.until("the sleeper is woken", || Ok(worker.finished()))?;
    Ok(worker.join()??)
}

/// It sleeps on for a while.
fn sleeps_on<T: Send + 'static>(context: &Context, worker: &Worker<T>) -> Result<()> {
    std::thread::sleep(context.scaled(Duration::from_millis(20)));
    ensure!(!worker.finished(), "woken by what is to wake nobody");
    Ok(())
}

fn unsignalled_wakes_nobody(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, PLAIN, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    for first in (0..context.count(20).max(5)).map(|round| round * 8) {
        let worker = sleeper(context, &client.request)?;
        for cookie in first..first + 7 {
            server.receive(cookie, PLAIN)?;
            client.send(cookie, UNSIGNALLED)?;
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)?;
        }
        sleeps_on(context, &worker)?;
        context.until("the events lie there", || Ok(client.request.query()?.queued == 7))?;
        ensure!(!worker.finished(), "woken by unsignalled events");
        server.receive(first + 7, PLAIN)?;
        client.send(first + 7, PLAIN)?;
        let (event, more) = woken(context, worker)?;
        done(&event, DtoOperation::Send, 64, first)?;
        same("events behind it", more, 7)?;
        for cookie in first + 1..first + 8 {
            done(&client.request.dequeue()?.0, DtoOperation::Send, 64, cookie)?;
        }
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, first + 7)?;
    }
    // One who comes when they are there takes them.
    server.receive(1, PLAIN)?;
    client.send(1, UNSIGNALLED)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 1)?;
    done(&taken(context, &client.request)?, DtoOperation::Send, 64, 1)
}

/// The next event, which need not wake anybody.
fn taken(context: &Context, evd: &Evd) -> Result<Event> {
    let mut found = None;
    context.until("an event lies there", || match evd.dequeue() {
        Ok((event, _)) => {
            found = Some(event);
            Ok(true)
        }
        Err(error) if error.is_empty() => Ok(false),
        Err(error) => Err(error.into()),
    })?;
    found.context("no event")
}

fn unsignalled_failure(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, UNSIGNALLED, UNSIGNALLED)?;
    let client = &pair.client;
    client.receive(7, UNSIGNALLED)?;
    let worker = sleeper(context, &client.recv)?;
    sleeps_on(context, &worker)?;
    client.ep.disconnect(Close::Abrupt)?;
    let (event, _) = woken(context, worker)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, 7)
}

fn unsignalled_receives(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, UNSIGNALLED, PLAIN)?;
    let client = &pair.client;
    for cookie in 1..=4 {
        client.receive(cookie, if cookie == 4 { PLAIN } else { UNSIGNALLED })?;
    }
    let worker = sleeper(context, &client.recv)?;
    for cookie in 1..=3 {
        // What the sender asks for is another matter.
        pair.message(context, cookie, SOLICITED)?;
        sleeps_on(context, &worker)?;
    }
    pair.message(context, 4, PLAIN)?;
    let (event, more) = woken(context, worker)?;
    done(&event, DtoOperation::Receive, 64, 1)?;
    same("events behind it", more, 3)
}

fn unsignalled_full(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, PLAIN, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    same("length", client.request.resize(4)?, 4)?;
    let worker = sleeper(context, &client.request)?;
    for cookie in 1..=8 {
        server.receive(cookie, PLAIN)?;
        client.send(cookie, if cookie == 8 { PLAIN } else { UNSIGNALLED })?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)?;
    }
    done(&woken(context, worker)?.0, DtoOperation::Send, 64, 1)?;
    for cookie in 2..=8 {
        done(&context.next(&client.request)?, DtoOperation::Send, 64, cookie)?;
    }
    empty(&client.request)
}

/// The CNO tells of nothing for a while.
fn silent(context: &Context, cno: &Cno) -> Result<()> {
    match cno.wait(Some(context.scaled(Duration::from_millis(20)))) {
        Err(error) if error.is_empty() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(evd) => bail!("{evd:?} has triggered"),
    }
}

fn unsignalled_cno(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, PLAIN, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    let cno = client.end.ia.create_cno(None)?;
    client.request.modify_cno(Some(&cno))?;
    silent(context, &cno)?;
    for round in 0..context.count(20).max(5) {
        let post = |cookie: u64, flags| -> Result<()> {
            server.receive(cookie, PLAIN)?;
            client.send(cookie, flags)?;
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)
        };
        (0..3).try_for_each(|cookie| post(cookie, UNSIGNALLED))?;
        silent(context, &cno).with_context(|| format!("round {round}"))?;
        post(3, PLAIN)?;
        let triggered = cno.wait(Some(context.patience()))?;
        same("EVD that triggered", triggered, Some(client.request.handle()))?;
        for cookie in 0..4 {
            done(&client.request.dequeue()?.0, DtoOperation::Send, 64, cookie)?;
        }
        empty(&client.request)?;
        silent(context, &cno).context("once it was emptied")?;
        // What came while nobody looked, and was taken from the middle.
        post(4, UNSIGNALLED)?;
        post(5, PLAIN)?;
        post(6, UNSIGNALLED)?;
        same("EVD that triggered", cno.wait(Some(context.patience()))?, triggered)?;
        for cookie in 4..6 {
            done(&client.request.dequeue()?.0, DtoOperation::Send, 64, cookie)?;
        }
        silent(context, &cno).context("with an unsignalled one left")?;
        done(&client.request.dequeue()?.0, DtoOperation::Send, 64, 6)?;
        empty(&client.request)?;
    }
    Ok(())
}

fn unsignalled_storm(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, PLAIN, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    let mut rng = context.rng();
    let mut next = 0;
    for round in 0..context.count(3000) {
        let first = next;
        next += rng.u64(1..=16);
        for cookie in first..next {
            server.receive(cookie, PLAIN)?;
            client.send(cookie, if cookie + 1 == next { PLAIN } else { UNSIGNALLED })?;
        }
        for cookie in first..next {
            // Sleeps whenever nothing lies there.
            let event = context.next(&client.request).with_context(|| format!("round {round}"))?;
            done(&event, DtoOperation::Send, 64, cookie)?;
        }
        (first..next).try_for_each(|cookie| {
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)
        })?;
    }
    empty(&client.request)
}

fn solicited_wakes(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, SOLICITED, PLAIN)?;
    let client = &pair.client;
    for first in (0..context.count(20).max(5)).map(|round| round * 4) {
        (first..first + 4).try_for_each(|cookie| client.receive(cookie, PLAIN))?;
        let worker = sleeper(context, &client.recv)?;
        if !context.client.is_iwarp() {
            for cookie in first..first + 3 {
                pair.message(context, cookie, PLAIN)?;
            }
            sleeps_on(context, &worker)?;
            pair.message(context, first + 3, SOLICITED)?;
            let (event, more) = woken(context, worker)?;
            done(&event, DtoOperation::Receive, 64, first)?;
            same("events behind it", more, 3)?;
        } else {
            // There any message wakes.
            pair.message(context, first, PLAIN)?;
            done(&woken(context, worker)?.0, DtoOperation::Receive, 64, first)?;
            (first + 1..first + 4).try_for_each(|cookie| pair.message(context, cookie, PLAIN))?;
        }
        for cookie in first + 1..first + 4 {
            done(&context.next(&client.recv)?, DtoOperation::Receive, 64, cookie)?;
        }
        empty(&client.recv)?;
    }
    Ok(())
}

fn solicited_cno(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, SOLICITED, PLAIN)?;
    let client = &pair.client;
    let cno = client.end.ia.create_cno(None)?;
    client.recv.modify_cno(Some(&cno))?;
    for round in 0..context.count(20).max(5) {
        (0..3).try_for_each(|cookie| client.receive(cookie, PLAIN))?;
        silent(context, &cno)?;
        if !context.client.is_iwarp() {
            (0..2).try_for_each(|cookie| pair.message(context, cookie, PLAIN))?;
            silent(context, &cno).with_context(|| format!("round {round}"))?;
        } else {
            (0..2).try_for_each(|cookie| pair.message(context, cookie, PLAIN))?;
        }
        pair.message(context, 2, SOLICITED)?;
        let triggered = cno.wait(Some(context.patience()))?;
        same("EVD that triggered", triggered, Some(client.recv.handle()))?;
        for cookie in 0..3 {
            done(&context.next(&client.recv)?, DtoOperation::Receive, 64, cookie)?;
        }
        empty(&client.recv)?;
    }
    Ok(())
}

fn solicited_end(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, SOLICITED, PLAIN)?;
    let client = &pair.client;
    (1..=2).try_for_each(|cookie| client.receive(cookie, PLAIN))?;
    let worker = sleeper(context, &client.recv)?;
    pair.server.ep.disconnect(Close::Abrupt)?;
    let (event, _) = woken(context, worker)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, 1)?;
    let event = context.next(&client.recv)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, 2)?;
    connection(&context.next(&client.end.connect)?, ConnectionEvent::Disconnected)
}

fn solicited_storm(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, SOLICITED, PLAIN)?;
    let client = &pair.client;
    let mut rng = context.rng();
    let mut next = 0;
    for round in 0..context.count(3000) {
        let first = next;
        next += rng.u64(1..=16);
        (first..next).try_for_each(|cookie| client.receive(cookie, PLAIN))?;
        for cookie in first..next {
            pair.server.send(cookie, if cookie + 1 == next { SOLICITED } else { PLAIN })?;
        }
        for cookie in first..next {
            let event = context.next(&client.recv).with_context(|| format!("round {round}"))?;
            done(&event, DtoOperation::Receive, 64, cookie)?;
        }
        (first..next).try_for_each(|cookie| {
            done(&context.next(&pair.server.request)?, DtoOperation::Send, 64, cookie)
        })?;
    }
    empty(&client.recv)
}

fn one_at_a_time(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let flagged = Flagged::new(end, SOLICITED, UNSIGNALLED)?;
    let wait = |evd: &Evd, threshold| evd.wait(Some(Duration::ZERO), threshold);
    for threshold in [2, 32] {
        let solicited = Subtype::INVALID_STATE_EVD_CONFIG_SOLICITED;
        refused_as(wait(&flagged.recv, threshold), Type::INVALID_STATE, solicited)?;
        let notify = Subtype::INVALID_STATE_EVD_CONFIG_NOTIFY;
        refused_as(wait(&flagged.request, threshold), Type::INVALID_STATE, notify)?;
    }
    for evd in [&flagged.recv, &flagged.request] {
        for threshold in [0, -1, 33] {
            parameter(wait(evd, threshold), Subtype::INVALID_ARG3)?;
        }
        ensure!(matches!(wait(evd, 1), Err(error) if error.is_timeout()), "nothing was there");
    }
    flagged.ep.free()?;
    ensure!(matches!(wait(&flagged.recv, 2), Err(error) if error.is_timeout()), "no longer so");
    // An endpoint with the default beside it: `Pair` has them, and `wakeup.rs` its thresholds.
    let pair = Pair::new(context, Shape::default())?;
    same("by default", pair.client.recv.query()?.wakes, EvdConfig::Threshold)
}
