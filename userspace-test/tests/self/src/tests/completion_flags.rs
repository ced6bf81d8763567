// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Completion flags: the flags that a DTO may have, and the endpoints that may share an EVD. Their
//! wake-ups are tested in `signalled.rs`.

pub mod flagged;

use self::flagged::{
    attr, parameter, Flagged, FlaggedPair, FENCE, NO_FLAGS, SOLICITED, SUPPRESS, THRESHOLD,
    UNSIGNALLED,
};
use super::signalled::taken;
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{done, empty, refused_as, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    CompletionFlags, DtoEvent, DtoOperation, DtoStatus, EpChange, Error, Evd, EvdConfig, EvdFlags,
    Event, Subtype, Type,
};
use std::time::Duration;

tests! {
    dto_flags, 60,
        "An operation accepts the completion flags of its kind and its endpoint, and no others";
    ep_flags, 30,
        "An endpoint is configured for one kind of completions for each direction, or refused";
    evd_requires_equal_flags, 60,
        "Endpoints on an EVD have equal completion flags; only EVD_THRESHOLD allows other streams";
    modify_before_receives, 60,
        "Before receives are posted, an endpoint can change its and its EVDs' completion flags";
    modify_both_directions, 60,
        "Completion flags of an endpoint's two directions on one EVD change together or not at all";
    threshold_above_one, 60,
        "A threshold above 1 is refused on a NOTIFY or SOLICITED EVD, naming its configuration";
}

/// Returns all words of known flags, and one with an unknown flag.
fn words() -> impl Iterator<Item = CompletionFlags> {
    (0..0x40).chain([0x8000_0000]).map(CompletionFlags)
}

fn dto_flags(context: &Context) -> Result<()> {
    for configured in [NO_FLAGS, UNSIGNALLED] {
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
        let arrive = |name: &str| name != "RDMA read" || !context.loses_reads();
        for (name, known, argument, post) in operations.into_iter().filter(|it| arrive(it.0)) {
            for flags in words() {
                let what = || format!("{name} with {flags:?} where {configured:?}");
                if !known.contains(flags) {
                    parameter(post(flags), argument).with_context(what)?;
                    continue;
                }
                if name == "send" {
                    server.receive(1, NO_FLAGS)?;
                }
                post(flags).with_context(what)?;
                if name == "receive" {
                    pair.message(context, 1, NO_FLAGS)?;
                    done(&taken(context, &client.recv)?, DtoOperation::Receive, 64, 1)?;
                } else if !flags.contains(SUPPRESS) {
                    let event = taken(context, &client.request).with_context(what)?;
                    let good = |dto: DtoEvent| dto.cookie == 1 && dto.status == DtoStatus::Success;
                    ensure!(matches!(event, Event::Dto(dto) if good(dto)), "{}: {event}", what());
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

fn ep_flags(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    for flags in words() {
        for (attr, known) in [
            (attr(flags, NO_FLAGS), [NO_FLAGS, THRESHOLD, UNSIGNALLED, SOLICITED].contains(&flags)),
            (attr(NO_FLAGS, flags), [NO_FLAGS, THRESHOLD, UNSIGNALLED].contains(&flags)),
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

/// Returns the configuration of an EVD whose endpoints all have these flags.
fn config(flags: CompletionFlags) -> EvdConfig {
    match flags {
        UNSIGNALLED => EvdConfig::Notify,
        SOLICITED => EvdConfig::Solicited,
        _ => EvdConfig::Threshold,
    }
}

fn evd_requires_equal_flags(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let evd = |flags| end.ia.create_evd(flags, 16);
    let ep = |recv: &Evd, request: &Evd, flags: (CompletionFlags, CompletionFlags)| {
        end.ia.create_ep(&end.pz, recv, request, &end.connect, Some(attr(flags.0, flags.1)))
    };
    let all = [NO_FLAGS, THRESHOLD, UNSIGNALLED, SOLICITED];
    // Receives of two endpoints.
    for first in all {
        for second in all {
            let (shared, other) = (evd(EvdFlags::DTO)?, evd(EvdFlags::DTO)?);
            same("before", shared.query()?.wakes, EvdConfig::Threshold)?;
            let one = ep(&shared, &other, (first, NO_FLAGS))?;
            same("with one endpoint", shared.query()?.wakes, config(first))?;
            let two = ep(&shared, &other, (second, NO_FLAGS));
            if config(first) == config(second) {
                two?;
            } else {
                parameter(two, Subtype::INVALID_ARG3)?;
            }
            same("with the first endpoint", shared.query()?.wakes, config(first))?;
            drop(one);
            same("with no endpoint", shared.query()?.wakes, EvdConfig::Threshold)?;
            ep(&shared, &other, (second, NO_FLAGS)).context("after the first endpoint is freed")?;
        }
    }
    // Receives and requests of one endpoint.
    for recv in all {
        for request in [NO_FLAGS, THRESHOLD, UNSIGNALLED] {
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
    // Other streams of the EVD.
    for other in [EvdFlags::SOFTWARE, EvdFlags::CONNECTION, EvdFlags::CR, EvdFlags::ASYNC] {
        let (mixed, pure) = (evd(EvdFlags::DTO | other)?, evd(EvdFlags::DTO)?);
        for flags in [UNSIGNALLED, SOLICITED] {
            parameter(ep(&mixed, &pure, (flags, NO_FLAGS)), Subtype::INVALID_ARG3)?;
        }
        parameter(ep(&pure, &mixed, (NO_FLAGS, UNSIGNALLED)), Subtype::INVALID_ARG4)?;
        ep(&mixed, &mixed, (THRESHOLD, NO_FLAGS))?;
    }
    let binds = evd(EvdFlags::DTO | EvdFlags::RMR_BIND)?;
    ep(&binds, &binds, (UNSIGNALLED, UNSIGNALLED)).context("binds are requests as well")?;
    let pure = evd(EvdFlags::DTO)?;
    parameter(ep(&binds, &pure, (SOLICITED, NO_FLAGS)), Subtype::INVALID_ARG3)
}

fn modify_before_receives(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let flagged = Flagged::new(end, NO_FLAGS, NO_FLAGS)?;
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
    ep.modify(new().recv_completion_flags(UNSIGNALLED.0)).context("no change")?;
    // To an EVD whose endpoints have other flags.
    let plain = end.ia.create_evd(EvdFlags::DTO, 4)?;
    let other = attr(NO_FLAGS, NO_FLAGS);
    let other = end.ia.create_ep(&end.pz, &plain, &plain, &end.connect, Some(other))?;
    parameter(ep.modify(new().recv(&plain)), Subtype::INVALID_ARG3)?;
    parameter(ep.modify(new().request(&plain)), Subtype::INVALID_ARG4)?;
    parameter(other.modify(new().recv(recv)), Subtype::INVALID_ARG3)?;
    same("flags of the other endpoint's EVD", plain.query()?.wakes, EvdConfig::Threshold)?;
    drop(other);
    ep.modify(new().recv(&plain).request(&plain)).context("after the other endpoint is freed")?;
    same("new EVD", plain.query()?.wakes, EvdConfig::Notify)?;
    for left in [recv, request] {
        same("old EVD", left.query()?.wakes, EvdConfig::Threshold)?;
        left.free()?;
    }
    Ok(())
}

fn modify_both_directions(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let evd = end.ia.create_evd(EvdFlags::DTO, 4)?;
    let attr = Some(attr(NO_FLAGS, NO_FLAGS));
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

fn threshold_above_one(context: &Context) -> Result<()> {
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
        ensure!(matches!(wait(evd, 1), Err(error) if error.is_timeout()), "an event was queued");
    }
    flagged.ep.free()?;
    ensure!(matches!(wait(&flagged.recv, 2), Err(error) if error.is_timeout()), "still refused");
    // For endpoints with the defaults of `Pair`, `wakeup.rs` tests thresholds.
    let pair = Pair::new(context, Shape::default())?;
    same("by default", pair.client.recv.query()?.wakes, EvdConfig::Threshold)
}
