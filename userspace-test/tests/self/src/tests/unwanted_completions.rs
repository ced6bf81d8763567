// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Completions without an EVD: of the receives of a shared receive queue (SRQ), of binds and of
//! lists. Their places are free again although no event tells that.

use super::null_evds::{connect, sides, Side, Wanted, LENGTH, SHAPE};
use super::rmr::scene::{part, BOTH};
use super::srq_last_receive::last_receive;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener};
use crate::expect::{refused_as, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, Dto, DtoOperation, EpConfig, EpState, Srq, Submitted, Subtype, Type,
};

tests! {
    #[Transport]
    srq_places, 60, "An SRQ whose endpoint has no receive EVD gets its places back, also those of the last messages";
    #[Transport]
    srq_posts_alone, 60, "Posts alone find the places of such an SRQ, without a query";
    #[Transport]
    binds, 60, "Binds without a request EVD open and close memory, more often than the endpoint has requests";
    #[Transport]
    lists, 60, "Lists of DTOs without a request EVD are posted again and again, and all of them arrive";
    #[Transport]
    lists_of_receives, 60, "Lists of receives without a receive EVD take messages, and their places are free again";
}

const NO_FLAGS: CompletionFlags = CompletionFlags(0);

/// Receives of the SRQ.
const RECEIVES: u32 = 4;

/// A connection whose server has an SRQ and no receive EVD.
struct Shared {
    client: Side,
    server: Side,
    srq: Srq,
    _listener: Listener,
}

impl Shared {
    fn new(context: &Context) -> Result<Self> {
        let (client, mut server, listener) = sides(context, Wanted::ALL, Wanted::of(6))?;
        let End { ia, pz, .. } = &server.end;
        let srq = ia.create_srq(pz, RECEIVES, 1)?;
        let config = EpConfig {
            pz: Some(pz),
            recv: None,
            srq: Some(&srq),
            request: Some(&server.end.request),
            connect: Some(&server.end.connect),
            attr: None,
        };
        server.end.ep = ia.create_ep_with(&config)?;
        connect(context, &client, &server, &listener)?;
        Ok(Self { client, server, srq, _listener: listener })
    }

    fn post(&self, place: u32) -> libkdapl::Result<()> {
        let offset = 4096 + LENGTH * place as usize;
        self.srq.post_recv(&[self.server.end.lmr.segment(offset, LENGTH)], place.into())
    }

    fn counts(&self) -> Result<(u32, u32)> {
        let query = self.srq.query()?;
        Ok((query.available, query.outstanding))
    }

    /// Sends messages that tell their number, and waits until each is in its place.
    fn fill(&self, context: &Context, round: u64) -> Result<()> {
        let (client, server) = (&self.client.end, &self.server.end);
        let bytes = |place: u32| [(round as u8).wrapping_mul(4).wrapping_add(place as u8); LENGTH];
        for place in 0..RECEIVES {
            client.lmr.buffer().write(LENGTH * place as usize, &bytes(place));
            client.send(LENGTH * place as usize, LENGTH, place.into())?;
        }
        for place in 0..RECEIVES {
            context.next(&client.request)?;
            let offset = 4096 + LENGTH * place as usize;
            let arrived = || Ok(server.lmr.buffer().to_vec(offset, LENGTH) == bytes(place));
            context.until("the message is in its place", arrived)?;
        }
        Ok(())
    }
}

fn srq_places(context: &Context) -> Result<()> {
    let shared = Shared::new(context)?;
    for round in 0..context.count(100).max(10) {
        (0..RECEIVES).try_for_each(|place| shared.post(place))?;
        same("counters", shared.counts()?, (RECEIVES, RECEIVES))?;
        refused_as(shared.post(0), Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_SRQ)?;
        shared.fill(context, round)?;
        context.until("nothing is outstanding", || Ok(shared.counts()? == (0, 0)))?;
    }
    // Receives that no message has taken stay.
    (0..RECEIVES).try_for_each(|place| shared.post(place))?;
    shared.client.end.ep.disconnect(Close::Graceful)?;
    shared.server.reaches(context, EpState::Disconnected)?;
    same("counters", shared.counts()?, (RECEIVES, RECEIVES))?;
    last_receive(context, &shared.server.end.ia, &shared.server.end.ep)?;
    shared.server.is_quiet(context)?;
    shared.server.end.ep.free()?;
    Ok(shared.srq.free()?)
}

fn srq_posts_alone(context: &Context) -> Result<()> {
    let shared = Shared::new(context)?;
    for round in 0..context.count(100).max(10) {
        for place in 0..RECEIVES {
            context.until("a place is free", || match shared.post(place) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == Some(Type::INSUFFICIENT_RESOURCES) => Ok(false),
                Err(error) => Err(error.into()),
            })?;
        }
        shared.fill(context, round).with_context(|| format!("round {round}"))?;
    }
    shared.server.is_quiet(context)
}

fn binds(context: &Context) -> Result<()> {
    let (client, server, listener) = sides(context, Wanted::ALL, Wanted::of(5))?;
    connect(context, &client, &server, &listener)?;
    // Over iWARP the side that accepts waits for a message.
    client.sends(context, &server, 0)?;
    let End { ia, pz, lmr, ep, .. } = &server.end;
    let (rmr, part) = (ia.create_rmr(pz)?, part(lmr, 8192, LENGTH, BOTH));
    for round in 0..context.count(200).max(3 * u64::from(SHAPE.requests)) {
        let mut segment = Default::default();
        context.until("a free place", || match rmr.bind(ep, &part, 1, NO_FLAGS) {
            Ok(bound) => {
                segment = bound;
                Ok(true)
            }
            Err(error) if error.kind() == Some(Type::INSUFFICIENT_RESOURCES) => Ok(false),
            Err(error) => Err(error.into()),
        })?;
        // No event tells when the request is carried out. A message behind it does.
        server.sends(context, &client, round)?;
        client.end.lmr.buffer().write(0, &[round as u8 + 1; LENGTH]);
        client.end.write(0, LENGTH, segment, 2)?;
        context.next(&client.end.request)?;
        let written = || Ok(lmr.buffer().to_vec(8192, LENGTH) == [round as u8 + 1; LENGTH]);
        context
            .until("the bytes are written", written)
            .with_context(|| format!("round {round}"))?;
    }
    rmr.unbind(ep, 3, NO_FLAGS)?;
    context.until("the unbind", || Ok(ep.status()?.request_outstanding == 0))?;
    same("LMR", rmr.query()?.lmr, 0)?;
    server.is_quiet(context)
}

/// DTOs of a list: as many as the endpoint has places for.
const LIST: u32 = SHAPE.requests;

/// Submits all of `dtos`, as places become free.
fn submit_all(context: &Context, side: &Side, dtos: &[Dto<'_>]) -> Result<()> {
    let mut rest = dtos;
    context.until("places for the list", || {
        let Submitted { posted, event } = side.end.ep.submit(rest, None);
        rest = &rest[posted..];
        match event {
            Ok(event) => {
                ensure!(event.is_none() && rest.is_empty(), "{} DTOs are left", rest.len());
                Ok(true)
            }
            Err(error) if error.kind() == Some(Type::INSUFFICIENT_RESOURCES) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

fn lists(context: &Context) -> Result<()> {
    let (client, server, listener) = sides(context, Wanted::of(5), Wanted::ALL)?;
    connect(context, &client, &server, &listener)?;
    let local: Vec<_> = (0..3 * LIST as usize)
        .map(|number| [client.end.lmr.segment(LENGTH * number, LENGTH)])
        .collect();
    let length = LENGTH * local.len();
    for round in 0..context.count(100).max(10) {
        let sent = client.end.scramble(context);
        let dtos: Vec<_> = local
            .iter()
            .enumerate()
            .map(|(number, local)| {
                let remote = server.end.lmr.remote_segment(LENGTH * number, LENGTH);
                let cookie = number as u64;
                Dto::new(DtoOperation::RdmaWrite, local, Some(remote), cookie, NO_FLAGS)
            })
            .collect();
        submit_all(context, &client, &dtos).with_context(|| format!("round {round}"))?;
        let written = || Ok(server.end.lmr.buffer().to_vec(0, length) == sent[..length]);
        context.until("the list has arrived", written)?;
    }
    context
        .until("nothing is outstanding", || Ok(client.end.ep.status()?.request_outstanding == 0))?;
    client.is_quiet(context)
}

fn lists_of_receives(context: &Context) -> Result<()> {
    let (client, server, listener) = sides(context, Wanted::ALL, Wanted::of(6))?;
    connect(context, &client, &server, &listener)?;
    let places: Vec<_> = (0..SHAPE.receives as usize)
        .map(|number| [server.end.lmr.segment(LENGTH * number, LENGTH)])
        .collect();
    let length = LENGTH * places.len();
    for round in 0..context.count(100).max(10) {
        let dtos: Vec<_> = places
            .iter()
            .map(|place| Dto::new(DtoOperation::Receive, place, None, 1, NO_FLAGS))
            .collect();
        submit_all(context, &server, &dtos).with_context(|| format!("round {round}"))?;
        let sent = client.end.scramble(context);
        for number in 0..places.len() {
            client.end.send(LENGTH * number, LENGTH, number as u64)?;
        }
        for _ in 0..places.len() {
            context.next(&client.end.request)?;
        }
        let arrived = || Ok(server.end.lmr.buffer().to_vec(0, length) == sent[..length]);
        context.until("the messages have arrived", arrived)?;
    }
    context
        .until("nothing is outstanding", || Ok(server.end.ep.status()?.recv_outstanding == 0))?;
    server.is_quiet(context)
}
