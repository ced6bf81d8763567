// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posts thousands of receives before a connection. Checks which thread posts them to the queue
//! pair, and that they complete if the attempt ends early.

use super::tests;
use super::trace::of_one;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, refused_as, same};
use crate::trace::Recording;
use anyhow::{bail, ensure, Result};
use libkdapl::{Close, CompletionFlags, ConnectionEvent, DtoStatus, EpState, Event, Subtype, Type};
use std::time::Duration;

tests! {
    posted_by_calling_threads, 60, "Receives from before a connection are posted by the threads that connect and accept, not by the kernel's workers";
    flushed_once, 240, "Each receive from before a connect is flushed once, whenever that connect is ended";
}

/// Returns the shape of an end with so many receives.
fn many(receives: u32) -> Shape {
    Shape { receives, ..Default::default() }
}

/// Posts receives with this many segments each.
fn post(end: &End, receives: u32, segments: usize) -> Result<()> {
    let segments = vec![end.lmr.segment(0, 2); segments];
    for cookie in 0..receives {
        end.ep.post_recv(&segments, cookie.into(), CompletionFlags::default())?;
    }
    Ok(())
}

fn posted_by_calling_threads(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 100;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let (client, server) =
        (End::new(&client_ia, many(RECEIVES))?, End::new(&server_ia, many(RECEIVES))?);
    let recording = Recording::of_endpoints()?;
    for end in [&client, &server] {
        post(end, RECEIVES, 1)?;
    }
    client.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    listener.request(context)?.accept(&server.ep, &[])?;
    for end in [&client, &server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    let told = recording.told()?;
    // SAFETY: the call has no preconditions.
    let here = unsafe { libc::gettid() };
    for (side, end) in [("client", &client), ("server", &server)] {
        let told = of_one(&told, &end.ep);
        let posts: Vec<_> = told.iter().filter(|told| told.event == "kdapl_ep_post").collect();
        same(&format!("posts of the {side}"), posts.len(), RECEIVES as usize)?;
        let others: Vec<_> = posts.iter().filter(|post| post.task != here).collect();
        ensure!(
            others.is_empty(),
            "{} receives of the {side} were posted by task {} instead of {here}",
            others.len(),
            others[0].task
        );
    }
    Ok(())
}

/// Checks that each of the `receives` of an end completes once, with the status FLUSHED.
fn all_flush(context: &Context, end: &End, receives: u32) -> Result<()> {
    let mut seen = vec![false; receives as usize];
    for _ in 0..receives {
        match context.next(&end.recv)? {
            Event::Dto(dto) => {
                same("status", dto.status, DtoStatus::Flushed)?;
                let again = std::mem::replace(&mut seen[dto.cookie as usize], true);
                ensure!(!again, "receive {} completed twice", dto.cookie);
            }
            other => bail!("expected a receive, got {other}"),
        }
    }
    context.quiet(&end.recv)
}

fn flushed_once(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 1000;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let client = End::new(&client_ia, many(RECEIVES))?;
    for round in 0..context.count(200) {
        let segments = 1 + context.rng().usize(0..4);
        post(&client, RECEIVES, segments)?;
        // The delay ranges from before the first post to after the last.
        let delay = Duration::from_micros(context.rng().u64(0..3000));
        std::thread::scope(|scope| {
            let ep = &client.ep;
            let ender = scope.spawn(move || {
                std::thread::sleep(delay);
                ep.disconnect(Close::Abrupt)
            });
            let address = context.server_address();
            let connected =
                client.ep.connect(address, listener.port, Some(context.patience()), &[]);
            ender.join().expect("the thread does not panic")?;
            println!("round {round}: connect {connected:?}, ended after {delay:?}");
            if connected.is_ok() {
                let event = context.next(&client.connect)?;
                return connection(&event, ConnectionEvent::Disconnected);
            }
            // The disconnect preceded the connect.
            let subtype = Subtype::INVALID_STATE_EP_DISCONNECTED;
            refused_as(connected, Type::INVALID_STATE, subtype)
        })?;
        all_flush(context, &client, RECEIVES)?;
        same("state", client.ep.status()?.state, EpState::Disconnected)?;
        client.ep.reset()?;
        // Some requests arrived nevertheless.
        while listener.evd.dequeue().is_ok() {}
    }
    Ok(())
}
