// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoints that end before the outcome of their connect over iWARP is known.
//!
//! irdma expects that their queue pair does not change its state before the peer has answered, so
//! it must fail after that. `kdapl_disguise` makes a siw device pass for one of irdma, and counts
//! queue pairs that fail too early. The peer is a socket that has not answered yet.

use super::iwarp::{tcp_listener, Device, ADDRESS, DEVICE};
use super::kernel::{self, Loaded};
use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, dto, empty, same};
use crate::iwarp_peer::{IwarpCallee, IwarpPeer};
use crate::machine::no_objects_left;
use crate::threads::Worker;
use anyhow::Result;
use libkdapl::{Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ia};
use std::time::Duration;

tests! {
    timed_out, 120, "The queue pair of a connect over irdma's iWARP that has timed out fails after the peer has answered";
    disconnected, 120, "An endpoint that is disconnected while it connects over irdma's iWARP is so once the peer has answered";
    freed, 120, "An endpoint that is freed while it connects over irdma's iWARP leaves nothing when the peer has answered";
    closed_adapter, 120, "An adapter that is closed while it connects over irdma's iWARP leaves nothing when the peer has answered";
    freed_in_kernel, 120, "In the kernel, the free of an endpoint that connects over irdma's iWARP waits until the device writes to no receive any more";
    freed_in_kernel_unanswered, 120, "In the kernel, the free of an endpoint that connects over irdma's iWARP waits for five seconds at most";
    unanswered, 120, "An endpoint that is freed while it connects over irdma's iWARP leaves nothing when the driver gives up the peer";
}

/// `RDMA_DRIVER_IRDMA`.
const IRDMA: u32 = 9;
const COOKIE: u64 = 5;

/// Makes the device pass for one of irdma, and watches its connects.
fn disguise() -> Result<Loaded> {
    let parameters = format!("device={DEVICE} driver_id={IRDMA}");
    let disguise = Loaded::new("kdapl_disguise", &parameters)?;
    disguise.set("watches_connects", 1)?;
    Ok(disguise)
}

/// An endpoint with a receive that has requested a connection, and its peer.
struct Calling {
    callee: IwarpCallee,
    end: End,
    ia: Ia,
    disguise: Loaded,
    _device: Device,
}

impl Calling {
    fn new(context: &Context, patience: Option<Duration>) -> Result<Self> {
        let device = Device::of_client(context)?;
        let ia = device.open()?;
        let end = End::new(&ia, Shape::default())?;
        // From now on the device registers no memory.
        let disguise = disguise()?;
        end.ep.post_recv(&[], COOKIE, CompletionFlags::default())?;
        let (listener, port) = tcp_listener(context)?;
        end.ep.connect(ADDRESS.into(), port, patience, &[])?;
        let callee = IwarpCallee::new(&listener)?;
        context
            .until("the driver waits for the peer", || Ok(disguise.parameter("connects")? == 1))?;
        Ok(Self { callee, end, ia, disguise, _device: device })
    }

    /// Lets the peer accept. The driver then ends the connection.
    fn accept(self) -> Result<Called> {
        same("outcomes", self.disguise.parameter("outcomes")?, 0)?;
        let Self { callee, end, ia, disguise, _device } = self;
        let mut peer = callee.accept()?;
        peer.await_end()?;
        Ok(Called { end, ia, disguise, _device })
    }
}

/// The state after the peer has accepted, and the driver has ended the connection.
struct Called {
    end: End,
    ia: Ia,
    disguise: Loaded,
    _device: Device,
}

impl Called {
    /// Checks that the endpoint connects again.
    fn connects_again(&self, context: &Context) -> Result<()> {
        let (listener, port) = tcp_listener(context)?;
        let patience = Some(context.patience());
        self.end.ep.connect(ADDRESS.into(), port, patience, &[])?;
        let _peer = IwarpPeer::accept(&listener)?;
        connection(&context.next(&self.end.connect)?, ConnectionEvent::Established)?;
        self.end.ep.disconnect(Close::Abrupt)?;
        connection(&context.next(&self.end.connect)?, ConnectionEvent::Disconnected)
    }

    /// Checks that all is freed, and that no queue pair has failed too early.
    fn ended(self, context: &Context) -> Result<()> {
        let Self { end, ia, disguise, _device } = self;
        drop(end);
        let _ = ia.close(Close::Abrupt);
        no_objects_left(context.settings.scale)?;
        let connects = disguise.parameter("connects")?;
        same("outcomes", disguise.parameter("outcomes")?, connects)?;
        same("queue pairs that failed early", disguise.parameter("failed_amid_connect")?, 0)
    }
}

fn timed_out(context: &Context) -> Result<()> {
    let calling = Calling::new(context, Some(context.scaled(Duration::from_millis(500))))?;
    connection(&context.next(&calling.end.connect)?, ConnectionEvent::TimedOut)?;
    // The receive may still get a message of the peer.
    empty(&calling.end.recv)?;
    let called = calling.accept()?;
    flushed(context, &called.end)?;
    called.end.ep.reset()?;
    called.connects_again(context)?;
    called.ended(context)
}

fn flushed(context: &Context, end: &End) -> Result<()> {
    let event = context.next(&end.recv)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, COOKIE)
}

fn disconnected(context: &Context) -> Result<()> {
    let calling = Calling::new(context, None)?;
    calling.end.ep.disconnect(Close::Abrupt)?;
    empty(&calling.end.recv)?;
    empty(&calling.end.connect)?;
    let called = calling.accept()?;
    flushed(context, &called.end)?;
    connection(&context.next(&called.end.connect)?, ConnectionEvent::Disconnected)?;
    called.end.ep.reset()?;
    called.connects_again(context)?;
    called.ended(context)
}

fn freed(context: &Context) -> Result<()> {
    let calling = Calling::new(context, None)?;
    calling.end.ep.free()?;
    let called = calling.accept()?;
    empty(&called.end.connect)?;
    called.ended(context)
}

fn closed_adapter(context: &Context) -> Result<()> {
    let calling = Calling::new(context, None)?;
    calling.ia.close(Close::Abrupt)?;
    calling.accept()?.ended(context)
}

/// A kernel consumer that frees an endpoint amid a connect.
struct FreeInKernel {
    callee: IwarpCallee,
    running: Worker<Result<()>>,
    tests: Loaded,
    disguise: Loaded,
    _device: Device,
}

impl FreeInKernel {
    fn begin(context: &Context) -> Result<Self> {
        kernel::device(context)?;
        let _device = Device::of_client(context)?;
        let disguise = disguise()?;
        let (listener, port) = tcp_listener(context)?;
        let patience = context.patience().as_secs();
        let parameters = format!("device={DEVICE} iwarp=1 port={port} patience={patience}");
        let tests = Loaded::new("kdapl_ktest", &parameters)?;
        let running = Worker::start(|| kernel::run("free_amid_connect"))?;
        let callee = IwarpCallee::new(&listener)?;
        let is_pending = || Ok(disguise.parameter("connects")? == 1);
        context.until("the driver waits for the peer", is_pending)?;
        tests.set("stage", 2)?;
        context.until("the free has begun", || Ok(tests.parameter("stage")? >= 3))?;
        Ok(Self { callee, running, tests, disguise, _device })
    }
}

/// The memory of a receive is the kernel consumer's again when the call returns.
fn freed_in_kernel(context: &Context) -> Result<()> {
    let FreeInKernel { callee, running, tests, disguise, _device } = FreeInKernel::begin(context)?;
    // Flushes of a failed queue pair are waited for during 300 ms, the outcome for 5 seconds.
    std::thread::sleep(Duration::from_secs(1));
    same("stage", tests.parameter("stage")?, 3)?;
    callee.accept()?.await_end()?;
    running.join()??;
    tests.unload()?;
    same("queue pairs that failed early", disguise.parameter("failed_amid_connect")?, 0)
}

/// siw gives up the peer after ten seconds.
fn freed_in_kernel_unanswered(context: &Context) -> Result<()> {
    let mut scene = FreeInKernel::begin(context)?;
    context.until("the free has returned", || Ok(scene.tests.parameter("stage")? == 4))?;
    same("queue pairs that failed early", scene.disguise.parameter("failed_amid_connect")?, 1)?;
    same("outcomes", scene.disguise.parameter("outcomes")?, 0)?;
    scene.callee.await_end()?;
    scene.running.join()??;
    scene.tests.unload()
}

fn unanswered(context: &Context) -> Result<()> {
    let Calling { mut callee, end, ia, disguise, _device } = Calling::new(context, None)?;
    end.ep.free()?;
    callee.await_end()?;
    Called { end, ia, disguise, _device }.ended(context)
}
