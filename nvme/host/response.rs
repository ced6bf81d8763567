// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events of a connection: responses, and the end of requests.

use crate::{
    command::ASYNC_EVENT_TAG,
    core::{
        Answer,
        Controller, //
    },
    queue::{
        AsyncEvent,
        Done,
        Link,
        Queue, //
    },
    setup::Host,
    wire::COMPLETION_SIZE,
};
use kdat::{
    Completion,
    Connection,
    Dto,
    Event,
    Handler,
    Operation, //
};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    },
};

/// Reason to give a connection up.
enum Fault {
    /// The controller has broken the rules.
    Peer(&'static str),
    /// A call has failed.
    Call(kdat::Error),
}

impl From<kdat::Error> for Fault {
    fn from(error: kdat::Error) -> Self {
        Self::Call(error)
    }
}

/// Response capsule.
struct Response {
    answer: Answer,
    command_id: u16,
}

impl Response {
    /// Decodes a response. Bits 0..12 of the command identifier are the tag.
    fn parse(message: &[u8; COMPLETION_SIZE]) -> Self {
        let [r0, r1, r2, r3, r4, r5, r6, r7, _, _, _, _, c0, c1, s0, s1] = *message;
        Self {
            answer: Answer {
                status: u16::from_le_bytes([s0, s1]),
                result: u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]),
            },
            command_id: u16::from_le_bytes([c0, c1]),
        }
    }

    fn tag(&self) -> u16 {
        self.command_id & 0xfff
    }
}

impl Link {
    /// Handles the completion of a capsule's send.
    fn sent(&mut self, dto: &mut Completion) -> Option<Done> {
        let tag = dto.context as usize;
        let slot = self.slots.get_mut(tag)?;
        slot.capsule = dto.buffer.take();
        if let Some(busy) = &mut slot.busy {
            busy.is_sent = true;
        }
        if self.async_event == AsyncEvent::Wanted {
            // If it is refused, the next completion tries again.
            let _ = self.submit_async_event();
        }
        self.finish(tag)
    }

    /// Handles a response, which arrived with `dto`.
    fn answered(&mut self, response: &Response, dto: &Completion) -> Result<Option<Done>, Fault> {
        let tag = response.tag();
        let slot = self.slots.get_mut(usize::from(tag));
        let is_its = |busy: &&mut crate::queue::Busy| {
            busy.answer.is_none() && busy.request.id() == response.command_id
        };
        let slot = slot.ok_or(Fault::Peer("a response has no command"))?;
        let busy = slot.busy.as_mut().filter(is_its);
        let busy = busy.ok_or(Fault::Peer("a response has no command"))?;
        let has_ended = slot.fmr.is_registered() && slot.fmr.ended(dto).is_some();
        if !has_ended && dto.invalidated != 0 {
            return Err(Fault::Peer("a response has invalidated another key"));
        }
        busy.answer = Some(response.answer);
        if slot.fmr.is_registered() {
            slot.fmr.invalidate(&self.ep, tag.into())?;
        }
        Ok(self.finish(tag.into()))
    }

    /// Handles a response to the command for asynchronous events.
    fn notified(&mut self, dto: &Completion) -> Result<(), Fault> {
        if self.async_event != AsyncEvent::Sent {
            return Err(Fault::Peer("a response has no command"));
        }
        if dto.invalidated != 0 {
            return Err(Fault::Peer("a response has invalidated another key"));
        }
        self.async_event = AsyncEvent::Unused;
        Ok(())
    }

    /// Handles the completion of an invalidation.
    fn invalidated(&mut self, dto: &Completion) -> Option<Done> {
        let tag = dto.context as usize;
        drop(self.slots.get_mut(tag)?.fmr.ended(dto));
        self.finish(tag)
    }
}

/// Handler of a connection's events.
pub(crate) struct Responses {
    pub(crate) queue: Arc<Queue>,
    pub(crate) ctrl: ARef<Controller<Host>>,
}

impl Handler for Responses {
    fn handle(&mut self, mut event: Event) {
        match &mut event {
            Event::Dto(dto) if dto.is_success() => self.succeeded(dto),
            Event::Dto(dto) => self.failed(dto),
            Event::Connection(_, Connection::Established) => {}
            Event::Connection(..) => self.end(),
            _ => {}
        }
    }
}

impl Responses {
    /// Starts the recovery. A controller that is not live refuses it: the queue then fails commands
    /// until the controller has stopped it.
    fn end(&self) {
        self.queue.note_end();
        self.ctrl.start_recovery();
    }

    /// Handles a failed request or receive. Those of a connection that has ended are flushed.
    fn failed(&self, dto: &Completion) {
        if !dto.is_flushed() {
            let (number, operation, status) = (self.queue.number, dto.operation, dto.status);
            dev_err!(
                self.ctrl.device(),
                "queue {number}: {operation:?} failed: status {status}\n"
            );
        }
        self.end();
    }

    fn succeeded(&self, dto: &mut Completion) {
        let done = match dto.operation {
            Operation::Send => Ok(self.queue.with_link(|link| link.sent(dto)).flatten()),
            Operation::Receive => self.received(dto),
            Operation::Invalidate => {
                let done = self.queue.with_link(|link| link.invalidated(dto));
                Ok(done.flatten())
            }
            _ => Ok(None),
        };
        match done {
            Ok(Some(done)) => done.complete(),
            Ok(None) => {}
            Err(fault) => self.give_up(&fault),
        }
    }

    fn give_up(&self, fault: &Fault) {
        let number = self.queue.number;
        match fault {
            Fault::Peer(what) => dev_err!(self.ctrl.device(), "queue {number}: {what}\n"),
            Fault::Call(error) => dev_err!(self.ctrl.device(), "queue {number}: {error}\n"),
        }
        self.end();
    }

    /// Handles a received message.
    fn received(&self, dto: &mut Completion) -> Result<Option<Done>, Fault> {
        let buffer = dto.buffer.take();
        let message = buffer.as_ref().and_then(|buffer| buffer.first_chunk());
        let message = message.filter(|_| dto.length >= COMPLETION_SIZE);
        let response = Response::parse(message.ok_or(Fault::Peer("a response is short"))?);
        let is_async = self.queue.number == 0 && response.command_id == ASYNC_EVENT_TAG;
        let done = self.queue.with_link(|link| {
            // Before the request is completed, so that the next response finds a receive. A refusal
            // means that the connection has ended, which another event reports.
            if let Some(buffer) = buffer {
                let _ = link.ep.post(Dto::receive(buffer));
            }
            match is_async {
                true => link.notified(dto).map(|()| None),
                false => link.answered(&response, dto),
            }
        });
        let done = done.unwrap_or(Ok(None))?;
        if is_async {
            self.ctrl.complete_async_event(response.answer);
        }
        Ok(done)
    }
}
