// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Upcalls in soft interrupts.

use crate::{
    calls::{
        completion,
        connect, //
    },
    contexts::{
        in_context,
        is_soft_interrupt,
        CONTEXTS, //
    },
    ensure,
    open,
    races::{
        Counted,
        HANDLERS, //
    },
    streams,
    until, //
};
use kdat::{
    kind,
    AtomicHandler,
    Buffer,
    Dto,
    Ep,
    Evd,
    Evds,
    Event,
    Ia,
    Operation,
    Pz,
    Streams, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

/// Bytes of a message.
const MESSAGE: usize = 64;

/// Receives of the handler's Endpoint.
const RECEIVES: usize = 4;

/// Number of messages, more than a budget.
const MESSAGES: u8 = 40;

/// Upcalls before other dispatchers have their turn.
const BUDGET: u32 = 8;

/// Observations of upcalls.
struct Seen {
    /// Number of upcalls that were in no soft interrupt, or could not post.
    wrong: Atomic<i32>,
    /// Kind of the error of a free by an upcall.
    refused: Atomic<u32>,
}

/// Sends back what it receives.
struct Echo {
    ep: Arc<Ep>,
    evd: Evd,
    seen: Arc<Seen>,
    /// Buffers of flushed receives. Their drop would sleep.
    kept: KVec<Buffer>,
    _counted: Counted,
}

impl Echo {
    fn next(&mut self, event: Event) -> Result {
        match event {
            Event::Dto(dto) if dto.is_success() => {
                let mut buffer = dto.buffer.ok_or(EIO)?;
                if dto.operation == Operation::Send {
                    return Ok(self.ep.post(Dto::receive(buffer))?);
                }
                buffer.iter_mut().for_each(|byte| *byte += 1);
                Ok(self.ep.post(Dto::send(buffer, MESSAGE))?)
            }
            Event::Dto(dto) if dto.is_flushed() => match dto.buffer {
                Some(buffer) => self.kept.push_within_capacity(buffer).map_err(|_| EIO),
                None => Ok(()),
            },
            Event::Software(_) => {
                let refused = self.evd.free().map_or_else(kdat::Error::kind, |()| 0);
                self.seen.refused.store(refused, Relaxed);
                Ok(())
            }
            _ => Err(EIO),
        }
    }
}

impl AtomicHandler for Echo {
    fn handle(&mut self, event: Event) {
        if !is_soft_interrupt() || self.next(event).is_err() {
            self.seen.wrong.fetch_add(1, Relaxed);
        }
    }
}

/// Returns whether a call was refused with an error of this type.
fn is<T>(outcome: kdat::Result<T>, kind: u32) -> bool {
    outcome.is_err_and(|error| error.kind() == kind)
}

/// The dispatchers of each kind refuse the handlers of the other.
fn refusals(ia: &Ia, evd: &Evd, handler: Echo) -> Result {
    let with_requests = ia.create_bh_evd(streams(), 64, BUDGET);
    ensure(is(with_requests, kind::INVALID_PARAMETER), "no soft interrupt takes requests")?;
    let without_budget = ia.create_bh_evd(Streams::DTO, 64, 0);
    ensure(is(without_budget, kind::INVALID_PARAMETER), "there is a budget")?;
    let sleeps = evd.set_handler(|_: Event| {});
    ensure(is(sleeps, kind::INVALID_PARAMETER), "an upcall must not sleep")?;
    let parallel = evd.set_parallel_handler(|_: Event| {});
    ensure(is(parallel, kind::INVALID_PARAMETER), "there is one upcall at a time")?;
    let threads = ia.create_evd(Streams::SOFTWARE, 8)?;
    let atomic = threads.set_atomic_handler(handler);
    ensure(is(atomic, kind::INVALID_PARAMETER), "upcalls of others are in threads")?;
    ensure(HANDLERS.load(Relaxed) == 0, "the refused handler is gone")
}

/// Without a handler, events are queued and dequeued in each context.
fn dequeued(evd: &Evd) -> Result {
    for context in 0..CONTEXTS {
        let mut number = None;
        in_context(context, || {
            number = evd.post(7).and_then(|()| evd.dequeue()).ok();
        });
        ensure(matches!(number, Some(Event::Software(7))), "the event is dequeued")?;
        ensure(is(evd.dequeue(), kind::QUEUE_EMPTY), "it was the only one")?;
    }
    Ok(())
}

/// Sends messages, and checks the replies.
fn exchange(pz: &Pz, ep: &Ep, evd: &Evd) -> Result {
    for number in 0..MESSAGES {
        let mut message = pz.buffer(MESSAGE)?;
        message.fill(number);
        ep.post(Dto::receive(pz.buffer(MESSAGE)?))?;
        ep.post(Dto::send(message, MESSAGE))?;
        for _ in 0..2 {
            let dto = completion(evd)?;
            let expected = match dto.operation {
                Operation::Send => number,
                _ => number + 1,
            };
            let buffer = dto.buffer.ok_or(EIO)?;
            ensure(buffer[..] == [expected; MESSAGE], "the reply follows the message")?;
        }
    }
    Ok(())
}

/// A handler in soft interrupts sends messages back. It cannot free its dispatcher, which a thread
/// frees after the Endpoint.
pub(crate) fn echoed(_: u32) -> Result {
    let ia = open()?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(streams(), 64)?, ia.create_evd(streams(), 64)?];
    let bh = ia.create_bh_evd(Streams::DTO | Streams::SOFTWARE, 64, BUDGET)?;
    let parts = Evds { receive: &bh, request: &bh, connect: &evds[1] };
    let client = pz.create_ep(Evds::from(&evds[0]), None)?;
    let ep = Arc::new(pz.create_ep(parts, None)?, GFP_KERNEL)?;
    let seen = Seen { wrong: Atomic::new(0), refused: Atomic::new(0) };
    let seen = Arc::new(seen, GFP_KERNEL)?;
    let echo = || -> Result<Echo> {
        Ok(Echo {
            ep: ep.clone(),
            evd: bh.clone(),
            seen: seen.clone(),
            kept: KVec::with_capacity(RECEIVES, GFP_KERNEL)?,
            _counted: Counted::new(),
        })
    };
    refusals(&ia, &bh, echo()?)?;
    dequeued(&bh)?;
    bh.set_atomic_handler(echo()?)?;
    ensure(is(bh.set_atomic_handler(echo()?), kind::INVALID_STATE), "there is one handler")?;
    for buffer in pz.buffers(RECEIVES, MESSAGE)? {
        ep.post(Dto::receive(buffer))?;
    }
    connect(&ia, [&evds[0], &evds[1]], [&client, &ep])?;
    exchange(&pz, &client, &evds[0])?;
    bh.post(1)?;
    until(|| seen.refused.load(Relaxed) != 0)?;
    ensure(seen.refused.load(Relaxed) == kind::INVALID_STATE, "an upcall frees no dispatcher")?;
    ensure(is(bh.free(), kind::INVALID_STATE), "the Endpoint uses the dispatcher")?;
    ensure(HANDLERS.load(Relaxed) == 1, "the handler is there")?;
    ep.free()?;
    bh.free()?;
    ensure(HANDLERS.load(Relaxed) == 0, "the handler is gone")?;
    ensure(seen.wrong.load(Relaxed) == 0, "all upcalls were in soft interrupts, and could post")
}
