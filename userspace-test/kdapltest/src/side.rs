// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One side of a connection: its endpoint, event queues and memory, and waiting for events.

use crate::device;
use crate::protocol::FAREWELL;
use crate::record::Recorder;
use anyhow::{anyhow, bail, Context, Error, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, Dto, DtoEvent, DtoStatus, Ep, EpAttr, Evd, EvdFlags,
    Event, Ia, Lmr, Privileges, Pz, Segment, Submitted, Wait,
};
use std::fmt;
use std::time::{Duration, Instant};
use toolkit::stop::{self, Nudge, Stopped};

/// Maximum time between a failed operation and the event that ends the connection.
const END: Duration = Duration::from_secs(1);

/// Interval of sends with a completion event, where other sends suppress theirs.
pub const QUIET_SENDS: u32 = 32;

/// Parameters of a side.
pub struct Plan {
    /// Maximum number of outstanding receives.
    pub receives: u32,
    /// Maximum number of outstanding requests.
    pub requests: u32,
    /// Size of the memory in bytes.
    pub memory: usize,
    /// Use the main event queue for request completions as well.
    pub one_queue: bool,
    /// Dequeue in a loop instead of waiting.
    pub poll: bool,
    /// Record the events.
    pub record: bool,
    /// Maximum time without an event.
    pub timeout: Duration,
}

/// The other side of a connection, as errors name it.
pub struct Peer {
    pub name: String,
    /// Advice to the user if it is lost.
    pub remedy: &'static str,
}

/// Error of an operation that the end of its connection may have caused.
#[derive(Debug)]
struct Cut(String);

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cut {}

/// Objects of one side. Only the thread that created it may wait.
pub struct Side {
    ia: Ia,
    pub peer: Peer,
    pub ep: Ep,
    pub lmr: Lmr,
    /// Completions of receives, and connection events, in the order that the module guarantees.
    pub main: Evd,
    /// Completions of requests; may be the same queue.
    pub requests: Evd,
    pub recorder: Recorder,
    /// Number of events returned by a wait (not by a dequeue).
    pub wakes: u64,
    one_queue: bool,
    poll: bool,
    timeout: Duration,
    /// Number of sends since the last one with a completion event.
    quiet: u32,
    /// A send with a completion event has been posted.
    loud: bool,
    /// The farewell was sent.
    farewell: bool,
    /// Event that has ended the connection.
    end: Option<ConnectionEvent>,
    _nudge: Nudge,
}

impl Side {
    pub fn new(ia: &Ia, plan: &Plan, peer: Peer) -> Result<Self> {
        let pz: Pz = ia.create_pz()?;
        let streams = EvdFlags::DTO | EvdFlags::CONNECTION;
        // Two further entries for ESTABLISHED and DISCONNECTED.
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
            ia: ia.clone(),
            peer,
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
            farewell: false,
            end: None,
            _nudge: Nudge::this_thread()?,
        })
    }

    /// Waits for the next event of the main queue.
    pub fn next(&mut self) -> Result<Event> {
        self.next_within(self.timeout)
    }

    /// Like `next`, with another time-out.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Event> {
        let event = self.take(&self.main, timeout)?;
        self.wakes += 1;
        self.record(&event)?;
        Ok(event)
    }

    /// Posts DTOs and waits for the next event of the main queue, in one system call.
    pub fn submit(&mut self, dtos: &[Dto<'_>]) -> Result<Event> {
        let wait = Wait { evd: &self.main, timeout: None, threshold: 1 };
        let Submitted { posted, event } = self.ep.submit(dtos, (!self.poll).then_some(wait));
        match event {
            Ok(Some((event, _))) => {
                self.wakes += 1;
                self.record(&event)?;
                Ok(event)
            }
            Ok(None) => self.next(),
            Err(error) if posted == dtos.len() && error.is_interrupted() => self.next(),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the next event of a queue.
    fn take(&self, evd: &Evd, timeout: Duration) -> Result<Event> {
        let mut deadline = None;
        loop {
            if stop::overdue() {
                return Err(Stopped.into());
            }
            match if self.poll { evd.dequeue() } else { evd.wait(None, 1) } {
                Ok((event, _)) => return Ok(event),
                Err(error) if error.is_empty() || error.is_interrupted() => {}
                Err(error) => return Err(error.into()),
            }
            let now = Instant::now();
            if now > *deadline.get_or_insert(now + timeout) {
                bail!(
                    "nothing came from {} for {timeout:?}, but the connection is up: it may be \
                     suspended or busy; --timeout waits longer",
                    self.peer.name
                );
            }
        }
    }

    /// Returns the next event of the main queue, if there is one.
    pub fn try_next(&mut self) -> Result<Option<Event>> {
        match self.main.dequeue() {
            Ok((event, _)) => {
                self.record(&event)?;
                Ok(Some(event))
            }
            Err(error) if error.is_empty() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Records an event of the main queue.
    ///
    /// DISCONNECTED follows all DTO events. When it arrives, the remaining events of a separate
    /// request queue are already there, and may be flushed requests.
    fn record(&mut self, event: &Event) -> Result<()> {
        if let Event::Connection { event, .. } = event {
            if *event == ConnectionEvent::Disconnected && !self.one_queue {
                self.discard_requests()?;
            }
            if *event != ConnectionEvent::Established {
                self.end = Some(*event);
            }
        }
        self.recorder.see(event);
        Ok(())
    }

    /// Explains an error that the end of the connection may have caused: names the device if it was
    /// removed, or else the peer and the event.
    pub fn explain(&mut self, error: Error) -> Error {
        if !error.is::<Cut>() && !error.is::<libkdapl::Error>() {
            return error;
        }
        self.await_end();
        match self.end {
            Some(end) => lost(&self.ia, &self.peer, end),
            None => error.context(format!("in the connection with {}", self.peer.name)),
        }
    }

    /// Takes events until the one that ends the connection.
    fn await_end(&mut self) {
        let deadline = Instant::now() + END;
        while self.end.is_none() && Instant::now() < deadline && !stop::overdue() {
            if let Ok((event, _)) = self.main.wait(Some(END / 10), 1) {
                let _ = self.record(&event);
            }
        }
    }

    /// Returns an error that names the peer and the device, if the device was removed.
    pub fn removed(&self) -> Option<Error> {
        Some(device::removed_soon(&self.ia)?.context(format!("lost {}", self.peer.name)))
    }

    /// Sends the peer a message of no bytes: this side has finished and will disconnect.
    pub fn farewell(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.farewell, true) {
            self.ep.post_send(&[], FAREWELL, CompletionFlags::default())?;
        }
        Ok(())
    }

    /// Takes the available request completions, all of which must be successful. Returns the cookie
    /// of the last.
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

    /// Takes the available request completions without checking their status.
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

    /// Returns the completion flags of the next send. One of [`QUIET_SENDS`] sends has a completion
    /// event, which implies that the earlier sends have completed as well. The event is taken when
    /// the next such send is posted; by then it has arrived. Its cookie is returned with the flags.
    pub fn quietly(&mut self) -> Result<(CompletionFlags, Option<u64>)> {
        self.quiet = (self.quiet + 1) % QUIET_SENDS;
        if self.quiet != 0 {
            return Ok((CompletionFlags::SUPPRESS, None));
        }
        if !std::mem::replace(&mut self.loud, true) {
            return Ok((CompletionFlags::default(), None));
        }
        let event = self.take(&self.requests, self.timeout)?;
        self.recorder.see(&event);
        Ok((CompletionFlags::default(), Some(successful(&event)?.cookie)))
    }
}

/// Returns the error of a connection that has ended too early: names the peer, and the device if it
/// was removed.
pub fn lost(ia: &Ia, peer: &Peer, end: ConnectionEvent) -> Error {
    match device::removed_soon(ia) {
        Some(removed) => removed.context(format!("lost {}", peer.name)),
        None => anyhow!("lost {}: {}; {}", peer.name, cause(end), peer.remedy),
    }
}

/// Returns the possible causes of the event that ended a connection.
fn cause(end: ConnectionEvent) -> String {
    match end {
        ConnectionEvent::Disconnected => {
            format!("its process ended or was killed, or it closed the connection ({end})")
        }
        ConnectionEvent::Broken => format!(
            "the connection broke ({end}): its process was killed, or its machine, its device or \
             the link failed"
        ),
        ConnectionEvent::NonPeerRejected => {
            format!("it ended, or more connect at a time than it answers ({end})")
        }
        other => format!("it does not answer any more ({other})"),
    }
}

/// Returns the completion in `event`, or an error for any other event.
pub fn successful(event: &Event) -> Result<DtoEvent> {
    match event {
        Event::Dto(dto) if dto.status == DtoStatus::Success => Ok(*dto),
        Event::Dto(dto) if dto.status == DtoStatus::Flushed => {
            Err(Cut("the connection ended before the transfer was complete".into()).into())
        }
        other => Err(Cut(format!("expected a successful transfer, got {other}")).into()),
    }
}
