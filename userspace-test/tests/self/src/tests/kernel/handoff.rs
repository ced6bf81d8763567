// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connection requests that are handed off between a consumer in the kernel and a process.
//! `userspace-test/tests/kernel/handoff.c` is the consumer.

use super::super::handoff::as_user;
use super::super::handoff_processes::{start_target, ORDINARY_USER};
use super::super::psp::Side;
use super::super::tests;
use super::{run_alone, run_with};
use crate::context::Context;
use crate::expect::{done, refused, refused_as, same};
use crate::hosts::ASYNC_QLEN;
use anyhow::Result;
use libkdapl::{
    CompletionFlags, ConnectionEvent, Cr, DtoOperation, Ep, EpCreator, Ia, PspOptions, Subtype,
    Type,
};

tests! {
    to_process, 60, "A consumer in the kernel hands a request to a process, which answers the peer; a request for a dead process stays";
    to_user, 60, "A consumer in the kernel hands a request to a process of another user only if it names the user";
    to_full, 60, "A consumer in the kernel keeps a request for a process whose service point is full";
    to_itself, 60, "A consumer in the kernel hands requests to its own service point, and to another consumer in the kernel";
    from_process, 60, "A process hands a request to a service point of the kernel that asks for it, and to no other";
}

/// Answer of the consumer in the kernel.
const ANSWER: &[u8; 16] = b"from elsewhere..";

/// Ports of a test of the kernel module: the returned one and the three after it.
fn ports(context: &Context) -> u64 {
    let first = context.port();
    (0..3).for_each(|_| {
        context.port();
    });
    first
}

fn to_process(context: &Context) -> Result<()> {
    let port = ports(context);
    let mut target = start_target(context, port, -1)?;
    run_with(context, "handoff_to_process", &format!("port={port}"), |loaded| {
        target.kill()?;
        loaded.set("stage", 2)
    })
}

fn to_user(context: &Context) -> Result<()> {
    let port = ports(context);
    let _target = start_target(context, port, ORDINARY_USER.into())?;
    run_with(context, "handoff_to_user", &format!("port={port}"), |_| Ok(()))
}

fn to_full(context: &Context) -> Result<()> {
    let port = ports(context);
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let options =
        PspOptions { conn_qual: Some(port), backlog: Some(1), endpoints: EpCreator::Consumer };
    let _psp = server.ia.create_psp_with(&server.requests, &options)?;
    client.connect(context, &client.end.ep, port, b"first")?;
    let (_waiting, ..) = server.request(context)?;
    run_with(context, "handoff_to_full", &format!("port={port}"), |_| Ok(()))
}

fn to_itself(context: &Context) -> Result<()> {
    run_alone(context, "handoff_to_itself")
}

/// A process that listens, and a client of it.
struct Desk {
    server: Side,
    client: Side,
    port: u64,
}

impl Desk {
    /// Listens with an adapter that a user has opened.
    fn of(context: &Context, server: Side) -> Result<Self> {
        let (client, port) = (Side::client(context)?, context.port());
        std::mem::forget(server.ia.create_psp(port, &server.requests)?);
        Ok(Self { server, client, port })
    }

    /// Connects a client, and returns it with its request.
    fn call(&self, context: &Context) -> Result<(Ep, Cr)> {
        let ep = self.client.end.another_ep()?;
        let into = [self.client.end.lmr.segment(0, ANSWER.len())];
        ep.post_recv(&into, 3, CompletionFlags::default())?;
        self.client.connect(context, &ep, self.port, b"please")?;
        Ok((ep, self.server.request(context)?.0))
    }

    /// The client gets the answer of the consumer in the kernel.
    fn answered(&self, context: &Context, ep: &Ep) -> Result<()> {
        let end = &self.client.end;
        self.client.next(context, ConnectionEvent::Established)?;
        ep.post_send(&[end.lmr.segment(64, 4)], 4, CompletionFlags::SUPPRESS)?;
        done(&context.next(&end.recv)?, DtoOperation::Receive, ANSWER.len() as u64, 3)?;
        same("answer", &end.lmr.buffer().to_vec(0, ANSWER.len())[..], &ANSWER[..])
    }
}

/// Tries each service point of the kernel in turn.
fn hand_off(context: &Context, port: u64, mine: &Desk, theirs: &Desk) -> Result<()> {
    // Nobody else gets the qualifier of a consumer in the kernel.
    refused(mine.server.ia.create_psp(port, &mine.server.requests), Type::CONN_QUAL_IN_USE)?;
    let (_theirs, mut cr) = theirs.call(context)?;
    as_user(context, 1234, |_| refused(cr.handoff(port), Type::PRIVILEGES_VIOLATION))?;
    let (ep, mut cr) = mine.call(context)?;
    for does_not_ask in [port + 1, port + 2] {
        refused(cr.handoff(does_not_ask), Type::PRIVILEGES_VIOLATION)?;
    }
    refused_as(cr.handoff(port + 3), Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEVD)?;
    cr.handoff(port)?;
    mine.answered(context, &ep)
}

fn from_process(context: &Context) -> Result<()> {
    let port = ports(context);
    let mine = Desk::of(context, Side::server(context)?)?;
    let open = |context: &Context| Side::new(Ia::open(&context.server.device, ASYNC_QLEN)?);
    let theirs = Desk::of(context, as_user(context, 1234, open)?)?;
    run_with(context, "handoff_from_process", &format!("port={port}"), |loaded| {
        hand_off(context, port, &mine, &theirs)?;
        context.until("the service point is freed", || Ok(loaded.parameter("stage")? == 2))?;
        let (_ep, mut cr) = mine.call(context)?;
        refused_as(cr.handoff(port), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
        loaded.set("stage", 3)
    })
}
