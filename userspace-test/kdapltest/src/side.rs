// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One side of one connection: endpoint, queues and memory, and waiting on them.

use crate::record::Recorder;
use crate::stop::{self, Nudge};
use anyhow::{anyhow, bail, Context, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, Dto, DtoEvent, DtoStatus, Ep, EpAttr, Evd, EvdFlags,
    Event, Ia, Lmr, Privileges, Pz, Segment, Submitted, Wait,
};
use std::time::{Duration, Instant};

/// Of so many sends one has an event, where an answer tells of all of them.
pub const QUIET_SENDS: u32 = 32;

/// What a side is made for.
pub struct Plan {
    /// Receives outstanding at most.
    pub receives: u32,
    /// Requests outstanding at most.
    pub requests: u32,
    /// Memory in bytes.
    pub memory: usize,
    /// Request completions come on the queue of everything else.
    pub one_queue: bool,
    /// Dequeue in a loop instead of waiting.
    pub poll: bool,
    /// Keep the events for showing.
    pub record: bool,
    /// Longest time without an event.
    pub timeout: Duration,
}

/// Objects of one side; dropped, they are all freed. Its waits are of the thread that made it.
pub struct Side {
    pub ep: Ep,
    pub lmr: Lmr,
    /// Receives and the connection, in the order that the module guarantees.
    pub main: Evd,
    /// Requests, maybe the same queue.
    pub requests: Evd,
    pub recorder: Recorder,
    /// Events that a wait (not a dequeue) brought.
    pub wakes: u64,
    one_queue: bool,
    poll: bool,
    timeout: Duration,
    /// Quiet sends since the last one with an event.
    quiet: u32,
    /// Whether there was one with an event.
    loud: bool,
    _nudge: Nudge,
}

impl Side {
    pub fn new(ia: &Ia, plan: &Plan) -> Result<Self> {
        let pz: Pz = ia.create_pz()?;
        let streams = EvdFlags::DTO | EvdFlags::CONNECTION;
        // Two more for ESTABLISHED and DISCONNECTED.
        let qlen = (plan.receives + plan.requests + 2) as i32;
        let main = ia.create_evd(streams, qlen).context("no event queue")?;
        let requests = if plan.one_queue {
            main.clone()
        } else {
            ia.create_evd(EvdFlags::DTO, plan.requests as i32).context("no event queue")?
        };
        let attr = EpAttr {
            max_recv_dtos: plan.receives,
            max_request_dtos: plan.requests,
            ..Default::default()
        };
        let ep = ia
            .create_ep(&pz, &main, &requests, &main, Some(attr))
            .context("no endpoint (a smaller --depth may help)")?;
        let lmr = ia
            .register(&pz, Buffer::new(plan.memory)?, Privileges::ALL)
            .context("memory cannot be registered")?;
        let recorder = Recorder::new(plan.record);
        let Plan { one_queue, poll, timeout, .. } = *plan;
        Ok(Self {
            ep,
            lmr,
            main,
            requests,
            recorder,
            wakes: 0,
            one_queue,
            poll,
            timeout,
            quiet: 0,
            loud: false,
            _nudge: Nudge::this_thread()?,
        })
    }

    /// The next event of the main queue.
    pub fn next(&mut self) -> Result<Event> {
        self.next_within(self.timeout)
    }

    /// The same, with a time-out of its own.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Event> {
        let event = take(&self.main, self.poll, timeout)?;
        self.wakes += 1;
        self.heard(&event)?;
        Ok(event)
    }

    /// Posts a few DTOs and brings the next event of the main queue, with one system call.
    pub fn submit(&mut self, dtos: &[Dto<'_>]) -> Result<Event> {
        let wait = Wait { evd: &self.main, timeout: None, threshold: 1 };
        let Submitted { posted, event } = self.ep.submit(dtos, (!self.poll).then_some(wait));
        match event {
            Ok(Some((event, _))) => {
                self.wakes += 1;
                self.heard(&event)?;
                Ok(event)
            }
            Ok(None) => self.next(),
            Err(error) if posted == dtos.len() && error.is_interrupted() => self.next(),
            Err(error) => Err(error.into()),
        }
    }

    /// The next event of the main queue if there is one.
    pub fn try_next(&mut self) -> Result<Option<Event>> {
        match self.main.dequeue() {
            Ok((event, _)) => {
                self.heard(&event)?;
                Ok(Some(event))
            }
            Err(error) if error.is_empty() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Records an event of the main queue.
    ///
    /// DISCONNECTED comes behind every DTO: what lies on a queue of its own came before it, and may
    /// be flushed.
    fn heard(&mut self, event: &Event) -> Result<()> {
        let last = matches!(event, Event::Connection { event: ConnectionEvent::Disconnected, .. });
        if last && !self.one_queue {
            self.discard_requests()?;
        }
        self.recorder.see(event);
        Ok(())
    }

    /// Takes the request completions that lie ready, which must be successes; returns the newest.
    pub fn reap_requests(&mut self) -> Result<Option<u64>> {
        let mut newest = None;
        loop {
            match self.requests.dequeue() {
                Ok((event, left)) => {
                    self.recorder.see(&event);
                    newest = Some(successful(&event)?.cookie);
                    if left == 0 {
                        return Ok(newest);
                    }
                }
                Err(error) if error.is_empty() => return Ok(newest),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes the request completions that are there, whatever they say.
    fn discard_requests(&mut self) -> Result<()> {
        loop {
            match self.requests.dequeue() {
                Ok((event, _)) => self.recorder.see(&event),
                Err(error) if error.is_empty() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn receive(&self, segment: Segment, cookie: u64) -> Result<()> {
        Ok(self.ep.post_recv(&[segment], cookie, CompletionFlags::default())?)
    }

    pub fn send(&self, segment: Segment, cookie: u64) -> Result<()> {
        Ok(self.ep.post_send(&[segment], cookie, CompletionFlags::default())?)
    }

    /// How the next quiet send is to be posted: of [`QUIET_SENDS`] one has an event, which tells that those
    /// before it are through, too. It is taken when the next one is due, by when it has long been
    /// there; what comes back with the flags is its cookie.
    pub fn quietly(&mut self) -> Result<(CompletionFlags, Option<u64>)> {
        self.quiet = (self.quiet + 1) % QUIET_SENDS;
        if self.quiet != 0 {
            return Ok((CompletionFlags::SUPPRESS, None));
        }
        if !std::mem::replace(&mut self.loud, true) {
            return Ok((CompletionFlags::default(), None));
        }
        let event = take(&self.requests, self.poll, self.timeout)?;
        self.recorder.see(&event);
        Ok((CompletionFlags::default(), Some(successful(&event)?.cookie)))
    }
}

/// The next event of a queue.
fn take(evd: &Evd, poll: bool, timeout: Duration) -> Result<Event> {
    let mut deadline = None;
    loop {
        let outcome = if poll { evd.dequeue() } else { evd.wait(None, 1) };
        match outcome {
            Ok((event, _)) => return Ok(event),
            Err(error) if error.is_empty() || error.is_interrupted() => {}
            Err(error) => return Err(error.into()),
        }
        if stop::requested() {
            bail!("stopped");
        }
        let now = Instant::now();
        if now > *deadline.get_or_insert(now + timeout) {
            bail!("nothing happened for {timeout:?}: is the peer still there?");
        }
    }
}

/// The completion in `event`, or an error that says what else it is.
pub fn successful(event: &Event) -> Result<DtoEvent> {
    match event {
        Event::Dto(dto) if dto.status == DtoStatus::Success => Ok(*dto),
        Event::Dto(dto) if dto.status == DtoStatus::Flushed => {
            Err(anyhow!("the connection ended too early"))
        }
        other => Err(anyhow!("expected a successful transfer, got {other}")),
    }
}
