// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Service of one client.

use crate::protocol::{Kind, Request, COMPLETE, FROM_SERVER, TO_SERVER};
use anyhow::Result;
use libkdapl_bmi::{Bmi, Completion, Context, Failure, Memory, Peer};

/// Bits of the consumer's value of an operation: the buffer, and the service above them.
const BUFFER: u64 = 0xffff;
/// The operation is a send.
const SEND: u64 = 1 << 16;
/// The operation is the last message.
const LAST: u64 = 1 << 17;

/// A service.
pub struct Service {
    peer: Peer,
    request: Request,
    memory: Memory,
    /// Value of its operations, without the buffer.
    number: u64,
    /// Operations that were posted, and messages that are complete.
    posted: u64,
    done: u64,
    /// Operations that were not taken.
    outstanding: usize,
    ended: bool,
    failure: Option<Failure>,
}

/// Returns the number of the service of an operation.
pub fn number_of(user: u64) -> usize {
    (user >> 20) as usize
}

impl Service {
    /// Creates the service `number`.
    pub fn new(bmi: &Bmi, peer: &Peer, request: Request, number: usize) -> Result<Self> {
        let memory = bmi.alloc(request.depth as usize * request.size as usize)?;
        Ok(Self {
            peer: peer.clone(),
            request,
            memory,
            number: (number as u64) << 20,
            posted: 0,
            done: 0,
            outstanding: 0,
            ended: false,
            failure: None,
        })
    }

    /// Posts the first operations. Returns whether the service has ended: the client may have left,
    /// so that no operation can be posted.
    pub fn start(&mut self, context: &Context) -> bool {
        for buffer in 0..self.request.depth.into() {
            self.post_next(context, buffer);
        }
        self.has_ended()
    }

    fn has_ended(&self) -> bool {
        self.outstanding == 0 && (self.ended || self.failure.is_some())
    }

    fn is_over(&self) -> bool {
        self.request.count != 0 && self.posted == self.request.count
    }

    /// Posts the operation that begins the next message with a buffer.
    fn post_next(&mut self, context: &Context, buffer: u64) {
        if self.is_over() || self.failure.is_some() {
            return;
        }
        self.posted += 1;
        match self.request.kind {
            Kind::Echo | Kind::Sink => self.post(context, buffer, false),
            Kind::Source => self.post(context, buffer, true),
        }
    }

    fn post(&mut self, context: &Context, buffer: u64, send: bool) {
        let size = self.request.size as usize;
        let part = [self.memory.part(buffer as usize * size, size)];
        let user = self.number | buffer;
        let posted = match send {
            true => context.send(&self.peer, FROM_SERVER, &part, user | SEND),
            false => context.receive(&self.peer, TO_SERVER, &part, user),
        };
        self.count(posted);
    }

    /// Posts the last message. It may fail: the client may have ended the connection before this
    /// side saw that the message has arrived. A client that does not get it reports that itself.
    fn post_last(&mut self, context: &Context) {
        match context.send(&self.peer, COMPLETE, &[], self.number | LAST) {
            Ok(_) => self.outstanding += 1,
            Err(_) => self.ended = true,
        }
    }

    fn count(&mut self, posted: libkdapl_bmi::Result<libkdapl_bmi::Op>) {
        match posted {
            Ok(_) => self.outstanding += 1,
            Err(_) => self.failure = self.failure.or(Some(Failure::Reset)),
        }
    }

    /// Processes a result. Returns whether the service has ended.
    pub fn completed(&mut self, context: &Context, completion: &Completion) -> bool {
        self.outstanding -= 1;
        let buffer = completion.user & BUFFER;
        match completion.result {
            _ if completion.user & LAST != 0 => self.ended = true,
            Err(failure) => self.failure = self.failure.or(Some(failure)),
            Ok(()) if self.request.kind == Kind::Echo && completion.user & SEND == 0 => {
                self.post(context, buffer, true);
            }
            Ok(()) => {
                self.done += 1;
                self.post_next(context, buffer);
            }
        }
        if self.is_over() && self.done == self.posted && self.outstanding == 0 && !self.ended {
            self.post_last(context);
        }
        self.has_ended()
    }

    /// Returns the client's address.
    pub fn client(&self) -> String {
        self.peer.address().unwrap_or_else(|| "a client".to_owned())
    }

    /// Returns the request, and the number of messages that are complete.
    pub fn result(&self) -> (Request, u64) {
        (self.request, self.done)
    }

    /// Returns why the service has ended early. A service without a number of messages ends with
    /// its connection.
    pub fn failure(&self) -> Option<Failure> {
        self.failure.filter(|_| self.request.count != 0)
    }
}
