// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Request slots that a bind takes.

use super::rmr::scene::{bound, part, Scene, BOTH};
use super::tests;
use crate::context::Context;
use crate::end::Shape;
use crate::expect::{done, refused_as};
use crate::harness::skip;
use anyhow::Result;
use libkdapl::{CompletionFlags, DtoOperation, Subtype, Type};

tests! {
    #[Transport]
    idle, 60, "A bind without an unfinished request before it takes one request slot";
    behind_a_request, 60, "Over soft-RoCE a bind after an unfinished request takes two request slots";
}

fn idle(context: &Context) -> Result<()> {
    let scene = Scene::of_shape(context, Shape { requests: 1, ..Shape::default() })?;
    let server = &scene.pair.server;
    for cookie in 0..context.count(20) {
        let segment = scene.bind(context, BOTH)?;
        scene.access(context, true, segment, true)?;
        scene.rmr.unbind(&server.ep, cookie, CompletionFlags::default())?;
        bound(context, server, &scene.rmr, cookie)?;
    }
    Ok(())
}

fn behind_a_request(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("no driver of iWARP repeats registrations");
    }
    let scene = Scene::of_shape(context, Shape { requests: 2, ..Shape::default() })?;
    let (client, server) = (&scene.pair.client, &scene.pair.server);
    let part = part(&scene.lmr, 0, 100, BOTH);
    let flags = CompletionFlags::default();
    // No receive takes the message.
    server.send(0, 64, 1)?;
    let bind = scene.rmr.bind(&server.ep, &part, 2, flags);
    refused_as(bind, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)?;
    client.receive(0, 64, 3)?;
    done(&context.next(&server.request)?, DtoOperation::Send, 64, 1)?;
    let segment = scene.bind(context, BOTH)?;
    scene.access(context, true, segment, true)
}
