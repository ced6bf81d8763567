// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages of a peer that arrive over iWARP before ESTABLISHED is reported.
//!
//! The driver connects the queue pair, and then reports the peer's reply to `rdma_cm`.
//! `kdapl_disguise` holds the reply back. So any number of messages arrives before ESTABLISHED.

use super::iwarp::{tcp_listener, Device, ADDRESS, DEVICE};
use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, done, dto, empty, refused, same};
use crate::iwarp_peer::{IwarpPeer, MESSAGE};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, EpState, Type,
};

tests! {
    follow_established, 240, "Thousands of messages that come over iWARP before ESTABLISHED are reported after it, and later ones after them";
    none_precede_established, 120, "However many receives are posted, no message that comes over iWARP before ESTABLISHED is reported before it";
    precede_disconnected, 240, "Thousands of messages that came over iWARP before a disconnect are reported before its event";
    freed_endpoint_releases_room, 240, "An endpoint that is freed with thousands of messages over iWARP to report leaves their room on the EVD";
}

/// A connecting endpoint whose peer has accepted. One EVD gets all its events.
struct EpBeforeEstablished<'a> {
    context: &'a Context,
    disguise: HeldReplies,
    end: End,
    ep: Ep,
    posted: u32,
    peer: IwarpPeer,
    sent: u32,
    _device: Device,
}

/// Module that holds back the replies of peers. Meanwhile no queue pair of siw can be stopped.
struct HeldReplies(Loaded);

impl HeldReplies {
    fn new() -> Result<Self> {
        let this = Self(Loaded::new("kdapl_disguise", &format!("device={DEVICE}"))?);
        this.0.set("hold_replies", 1)?;
        Ok(this)
    }

    fn let_go(&self) -> Result<()> {
        self.0.set("hold_replies", 0)
    }
}

impl<'a> EpBeforeEstablished<'a> {
    /// Posts as many receives as the endpoint has room for, and connects.
    fn new(context: &'a Context, receives: u32, qlen: u32) -> Result<Self> {
        let device = Device::of_client(context)?;
        let (listener, port) = tcp_listener(context)?;
        let memory = qlen as usize * MESSAGE;
        let shape = Shape { merged: true, receives: qlen, requests: 1, memory, ..Shape::default() };
        let end = End::new(&device.open()?, shape)?;
        let attr = EpAttr { max_recv_dtos: receives, max_request_dtos: 1, ..EpAttr::default() };
        let ep = end.ia.create_ep(&end.pz, &end.recv, &end.recv, &end.recv, Some(attr))?;
        for number in 0..receives {
            post(&end, &ep, number)?;
        }
        let disguise = HeldReplies::new()?;
        ep.connect(ADDRESS.into(), port, None, &[])?;
        let peer = IwarpPeer::accept(&listener)?;
        context.until("the reply is held back", || Ok(disguise.0.parameter("held")? == 1))?;
        let (posted, sent) = (receives, 0);
        Ok(Self { context, disguise, end, ep, posted, peer, sent, _device: device })
    }

    /// Sends messages, and waits until the last one has arrived in memory.
    fn send_early(&mut self, count: u32) -> Result<()> {
        self.send(count)?;
        let last = place(self.sent - 1);
        let mut found = [0; MESSAGE];
        self.context.until("the last message is there", || {
            self.end.lmr.buffer().read(last, &mut found);
            Ok(u32::from_ne_bytes(found) == self.sent)
        })?;
        // Drains the completions. Their events are held back.
        empty(&self.end.recv).context("before ESTABLISHED")?;
        same("state", self.ep.status()?.state, EpState::ActiveConnectionPending)
    }

    fn send(&mut self, count: u32) -> Result<()> {
        self.sent += count;
        self.peer.send(count)
    }

    fn let_go(&self) -> Result<()> {
        self.disguise.let_go()
    }

    /// Checks that the messages were received, in their order.
    fn received(&self) -> Result<()> {
        for number in 0..self.sent {
            let event = self.context.next(&self.end.recv)?;
            done(&event, DtoOperation::Receive, MESSAGE as u64, number.into())?;
            let mut found = [0; MESSAGE];
            self.end.lmr.buffer().read(place(number), &mut found);
            same("message", u32::from_ne_bytes(found), number + 1)?;
        }
        Ok(())
    }

    /// Checks that the other receives are flushed, in their order, before DISCONNECTED.
    fn ended(&self) -> Result<()> {
        for number in self.sent..self.posted {
            let event = self.context.next(&self.end.recv)?;
            let flushed = dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
            same("cookie", flushed.cookie, number.into())?;
        }
        connection(&self.context.next(&self.end.recv)?, ConnectionEvent::Disconnected)?;
        same("receives", self.ep.status()?.recv_outstanding, 0)
    }
}

/// Returns the offset of the memory for a message.
fn place(number: u32) -> usize {
    number as usize * MESSAGE
}

fn post(end: &End, ep: &Ep, number: u32) -> Result<(), libkdapl::Error> {
    let segment = [end.lmr.segment(place(number), MESSAGE)];
    ep.post_recv(&segment, number.into(), CompletionFlags::default())
}

/// Largest number of held receives that the module reports in one critical section.
const REPORT_BATCH: u32 = 64;

/// Returns the number of messages before ESTABLISHED.
fn early(context: &Context) -> u32 {
    context.count(8_000).max(2_000) as u32
}

fn follow_established(context: &Context) -> Result<()> {
    let (early, later, flushed) = (early(context), 500, 100);
    let receives = early + later + flushed;
    let mut scene = EpBeforeEstablished::new(context, receives, receives)?;
    scene.send_early(early)?;
    same("receives", scene.ep.status()?.recv_outstanding, receives)?;
    scene.let_go()?;
    scene.send(later)?;
    // The wait ends with the last of them: ESTABLISHED is one event more.
    let most = (early + later) as i32;
    let (event, _) = scene.end.recv.wait(Some(context.patience()), most)?;
    connection(&event, ConnectionEvent::Established)?;
    scene.received()?;
    scene.peer.hang_up()?;
    scene.ended()
}

fn none_precede_established(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 64;
    const ROUNDS: u32 = 4;
    let mut scene = EpBeforeEstablished::new(context, RECEIVES, (ROUNDS + 1) * RECEIVES)?;
    for _ in 0..ROUNDS {
        let count = scene.posted - scene.sent;
        if count > 0 {
            scene.send_early(count)?;
        }
        while post(&scene.end, &scene.ep, scene.posted).is_ok() {
            scene.posted += 1;
        }
    }
    refused(post(&scene.end, &scene.ep, scene.posted), Type::INSUFFICIENT_RESOURCES)?;
    scene.let_go()?;
    connection(&context.next(&scene.end.recv)?, ConnectionEvent::Established)?;
    scene.received()?;
    scene.ep.disconnect(Close::Abrupt)?;
    scene.ended()
}

fn precede_disconnected(context: &Context) -> Result<()> {
    let early = early(context);
    let mut scene = EpBeforeEstablished::new(context, early + 100, early + 100)?;
    scene.send_early(early)?;
    std::thread::scope(|scope| -> Result<()> {
        let call = scope.spawn(|| scene.ep.disconnect(Close::Abrupt));
        let begun = || Ok(scene.ep.status()?.state != EpState::ActiveConnectionPending);
        let begun = context.until("the disconnect has begun", begun);
        // The disconnect waits until the queue pair can be stopped.
        let queued = scene.end.recv.query().map(|evd| evd.queued);
        scene.let_go()?;
        call.join().expect("the thread ends")?;
        begun?;
        let queued = queued?;
        ensure!((1..=REPORT_BATCH).contains(&queued), "{queued} events at once");
        Ok(())
    })?;
    scene.received()?;
    scene.ended()?;
    Ok(scene.ep.reset()?)
}

fn freed_endpoint_releases_room(context: &Context) -> Result<()> {
    let early = early(context);
    let mut scene = EpBeforeEstablished::new(context, early, early)?;
    scene.send_early(early)?;
    refused(scene.end.recv.resize(8), Type::INVALID_STATE)?;
    std::thread::scope(|scope| -> Result<()> {
        let call = scope.spawn(|| scene.ep.free());
        let begun = context.until("the free has begun", || Ok(scene.ep.status().is_err()));
        scene.let_go()?;
        call.join().expect("the thread ends")?;
        begun
    })?;
    empty(&scene.end.recv)?;
    // No event is queued or pending, so the EVD can shrink.
    scene.end.recv.resize(8)?;
    Ok(())
}
