// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! States of an endpoint that a service point or a request holds, and of one that accepts.

use super::{no_way, unconfigured, unconnected, without_zone, Stage};
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::same;
use crate::harness::skip;
use crate::plain::Plain;
use crate::rust::model::ep::{AcceptFrom, Phase};
use anyhow::{bail, Context as _, Result};
use libkdapl::{Cr, Ep, EpCreator, EpState, EvdFlags, Event, Ia, PspOptions};
use std::any::Any;

/// Reserves the endpoint by a reserved service point.
fn reserve(context: &Context, mut stage: Stage) -> Result<Stage> {
    let evd = stage.end.ia.create_evd(EvdFlags::CR, 4)?;
    let (ia, ep) = (&stage.end.ia, &stage.end.ep);
    let rsp = stage.host.inside(|| ia.create_rsp(context.port(), &evd, Some(ep)))??;
    stage.hold(evd);
    stage.hold(rsp);
    Ok(stage)
}

pub fn reserved(context: &Context) -> Result<Stage> {
    reserve(context, unconnected(context)?)?.begins_in(EpState::Reserved)
}

pub fn unconfigured_reserved(context: &Context) -> Result<Stage> {
    reserve(context, unconfigured(context)?)?.begins_in(EpState::UnconfiguredReserved)
}

/// Creates a listener on the server's side and an endpoint that connects to it. Returns the
/// request.
fn requested(
    context: &Context,
    stage: &mut Stage,
    listen: impl FnOnce(&Ia, u64, &libkdapl::Evd, &Ep) -> Result<Box<dyn Any>>,
) -> Result<Cr> {
    requested_by(context, stage, listen, |port| {
        let caller = End::new(&context.open()?, Shape::default())?;
        caller.ep.connect(context.server_address(), port, Some(context.patience() * 3), &[])?;
        Ok(Box::new(caller))
    })
}

/// Does the same with a given client.
fn requested_by(
    context: &Context,
    stage: &mut Stage,
    listen: impl FnOnce(&Ia, u64, &libkdapl::Evd, &Ep) -> Result<Box<dyn Any>>,
    call: impl FnOnce(u64) -> Result<Box<dyn Any>>,
) -> Result<Cr> {
    let (evd, port) = (stage.end.ia.create_evd(EvdFlags::CR, 4)?, context.port());
    let (ia, ep) = (&stage.end.ia, &stage.end.ep);
    let listener = stage.host.inside(|| listen(ia, port, &evd, ep))??;
    let caller = call(port)?;
    let Event::ConnectionRequest { cr, .. } = context.next(&evd)? else {
        bail!("expected a request");
    };
    stage.hold.push(caller);
    stage.hold.push(listener);
    stage.hold(evd);
    Ok(cr)
}

fn pending(context: &Context, mut stage: Stage) -> Result<Stage> {
    let cr = requested(context, &mut stage, |ia, port, evd, ep| {
        Ok(Box::new(ia.create_rsp(port, evd, Some(ep))?))
    })?;
    same("endpoint of the request", cr.query()?.local_ep, Some(stage.end.ep.handle()))?;
    stage.request = Some(cr);
    Ok(stage)
}

pub fn passive(context: &Context) -> Result<Stage> {
    let stage = Stage::on(&context.server, Shape::default())?;
    pending(context, stage)?.begins_in(EpState::PassiveConnectionPending)
}

pub fn unconfigured_passive(context: &Context) -> Result<Stage> {
    let mut stage = Stage::on(&context.server, Shape::default())?;
    stage.end.ep = without_zone(&stage.end)?;
    pending(context, stage)?.begins_in(EpState::UnconfiguredPassive)
}

pub fn unconfigured_tentative(context: &Context) -> Result<Stage> {
    let mut stage = Stage::on(&context.server, Shape::default())?;
    let mut cr = requested(context, &mut stage, |ia, port, evd, _| {
        let options = PspOptions {
            conn_qual: Some(port),
            endpoints: EpCreator::Provider,
            ..Default::default()
        };
        Ok(Box::new(ia.create_psp_with(evd, &options)?))
    })?;
    stage.end.ep = cr.provided_ep()?.context("the request has no endpoint")?;
    stage.request = Some(cr);
    stage.begins_in(EpState::UnconfiguredTentative)
}

pub fn tentative(context: &Context) -> Result<Stage> {
    let stage = unconfigured_tentative(context)?;
    stage.end.ep.modify(stage.whole())?;
    stage.begins_in(EpState::TentativeConnectionPending)
}

/// Accepts a client that does not confirm.
pub fn accepting(context: &Context) -> Result<Stage> {
    if let Some(why) = no_way(context, Phase::Accepting(AcceptFrom::Unconnected)) {
        return skip(why);
    }
    let mut stage = Stage::on(&context.server, Shape::default())?;
    let mut cr = requested_by(
        context,
        &mut stage,
        |ia, port, evd, _| Ok(Box::new(ia.create_psp(port, evd)?)),
        |port| Ok(Box::new(Plain::connect(context, port, &["--never-confirm"])?)),
    )?;
    cr.accept(&stage.end.ep, &[])?;
    stage.begins_in(EpState::CompletionPending)
}
