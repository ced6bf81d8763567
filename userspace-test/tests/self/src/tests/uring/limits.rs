// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Limits of a user's commands that wait.

use super::super::tests;
use super::commands::{self, entry, HeapMessage};
use super::ring::{events, outcome};
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{refused, refused_as, same};
use crate::fork::{end_of, fork};
use crate::tests::user_limits::{become_tenant, Parameter};
use anyhow::{ensure, Result};
use io_uring::IoUring;
use libkdapl::raw::call::EP_SUBMIT;
use libkdapl::sys::{
    kdapl_dto, kdapl_ep_submit, kdapl_event, KDAPL_DTO_RECEIVE, KDAPL_TIMEOUT_INFINITE,
};
use libkdapl::uring::Ring;
use libkdapl::{Close, Error, Evd, EvdFlags, Ia, Subtype, Type};
use std::os::fd::AsRawFd;
use std::time::Duration;

tests! {
    counted, 60, "Each command that waits is an object of its user, also after its adapter was closed, and above the limit it is refused";
    submits_at_limit, 60, "A submit whose wait is refused for want of objects counts the DTOs that it has posted";
}

/// Limit of objects of the tenant.
const LIMIT: u64 = 60;

/// Objects of an open adapter: itself, and its asynchronous EVD.
const OF_ADAPTER: u64 = 2;

/// Runs as a user with a limit of objects.
fn as_tenant(work: impl FnOnce() -> Result<()>) -> Result<()> {
    let _parameter = Parameter::set("user_objects", LIMIT)?;
    let child = fork(|| {
        become_tenant()?;
        work()
    })?;
    same("the tenant's end", end_of(child)?, 0)
}

/// Creates EVDs until one is refused.
fn fill(ia: &Ia) -> Result<Vec<Evd>> {
    let mut evds = Vec::new();
    loop {
        match ia.create_evd(EvdFlags::SOFTWARE, 4) {
            Ok(evd) => evds.push(evd),
            Err(error) => {
                above_limit::<()>(Err(error))?;
                return Ok(evds);
            }
        }
    }
}

fn above_limit<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Result<()> {
    refused_as(outcome, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY)
}

fn counted(context: &Context) -> Result<()> {
    as_tenant(|| {
        let ia = context.open()?;
        let ready = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
        let evds =
            (0..40).map(|_| ia.create_evd(EvdFlags::SOFTWARE, 4)).collect::<Result<Vec<_>, _>>()?;
        let mut ring = Ring::new(64)?;
        ring.provide_buffers(4, 4)?;
        let room = LIMIT - OF_ADAPTER - 41;
        for (tag, evd) in (0..room).zip(&evds) {
            match tag % 2 {
                0 => ring.wait_evd(evd, None, 1, 1, tag)?,
                _ => ring.stream(evd, 1, tag)?,
            }
        }
        ring.submit()?;
        same("pending", ring.pending() as u64, room)?;
        let next = &evds[room as usize];
        ring.wait_evd(next, None, 1, 1, 100)?;
        above_limit(outcome(&mut ring, 100)?)?;
        ring.stream(next, 1, 101)?;
        above_limit(outcome(&mut ring, 101)?)?;
        // It has not become the waiter.
        refused(next.wait(Some(Duration::ZERO), 1), Type::TIMEOUT_EXPIRED)?;
        // One that finds its event does not wait.
        ready.post_se(1)?;
        ring.wait_evd(&ready, None, 1, 1, 102)?;
        same("a queued event", events(&mut ring, 102)?, vec![1])?;
        evds[0].post_se(2)?;
        same("an event", events(&mut ring, 0)?, vec![2])?;
        ring.wait_evd(next, None, 1, 1, 103)?;
        ring.submit()?;
        same("pending", ring.pending() as u64, room)?;
        // The commands complete when this thread enters the ring.
        ia.close(Close::Abrupt)?;
        let other = context.open()?;
        let others = fill(&other)?;
        same("left", others.len() as u64, LIMIT - OF_ADAPTER - room)?;
        for _ in 0..room {
            refused(ring.wait()?.result, Type::ABORT)?;
        }
        same("left after them", fill(&other)?.len() as u64, room)
    })
}

fn submits_at_limit(context: &Context) -> Result<()> {
    as_tenant(|| {
        let end = End::new(&context.open()?, Shape::default())?;
        let evds = fill(&end.ia)?;
        let mut ring = IoUring::new(8)?;
        let segment = end.lmr.segment(0, 8);
        let dto = kdapl_dto {
            operation: KDAPL_DTO_RECEIVE,
            iov_count: 1,
            iov: std::ptr::from_ref(&segment) as u64,
            iov_size: size_of_val(&segment) as u32,
            ..Default::default()
        };
        let dtos = [dto; 3];
        let mut event = HeapMessage::new(kdapl_event::default());
        let mut message = HeapMessage::new(kdapl_ep_submit {
            hdr: commands::hdr::<kdapl_ep_submit>(),
            handle: end.ep.handle().0,
            count: 3,
            dtos: dtos.as_ptr() as u64,
            dto_size: size_of::<kdapl_dto>() as u32,
            evd: evds[0].handle().0,
            timeout_ns: KDAPL_TIMEOUT_INFINITE,
            threshold: 1,
            max_events: 1,
            events: event.address(),
            event_size: size_of::<kdapl_event>() as u32,
            ..Default::default()
        });
        let device = end.ia.device().as_raw_fd();
        let submit = entry(device, EP_SUBMIT.request(), [message.address(), 0], 0);
        same("result", commands::run(&mut ring, submit)?, 0)?;
        let answer = message.read();
        above_limit(commands::answer(answer.hdr.ret))?;
        same("posted", (answer.posted, answer.taken), (3, 0))?;
        same("receives", end.ep.status()?.recv_outstanding, 3)?;
        ensure!(evds.len() > 1, "the limit is too low");
        Ok(())
    })
}
