// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoints with completion flags.

use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, refused_as};
use anyhow::Result;
use libkdapl::{
    CompletionFlags, ConnectionEvent, DtoOperation, Ep, EpAttr, Error, Evd, EvdFlags, Segment,
    Subtype, Type,
};

pub const NO_FLAGS: CompletionFlags = CompletionFlags(0);
pub const SUPPRESS: CompletionFlags = CompletionFlags::SUPPRESS;
pub const SOLICITED: CompletionFlags = CompletionFlags::SOLICITED_WAIT;
pub const UNSIGNALLED: CompletionFlags = CompletionFlags::UNSIGNALLED;
pub const FENCE: CompletionFlags = CompletionFlags::BARRIER_FENCE;
pub const THRESHOLD: CompletionFlags = CompletionFlags::EVD_THRESHOLD;

/// Returns attributes with these flags for receives and for requests.
pub fn attr(recv: CompletionFlags, request: CompletionFlags) -> EpAttr {
    EpAttr {
        recv_completion_flags: recv.0,
        request_completion_flags: request.0,
        max_recv_dtos: 32,
        max_request_dtos: 32,
        ..Default::default()
    }
}

/// An end whose endpoint has these flags, and separate EVDs for receives and requests.
pub struct Flagged {
    pub end: End,
    pub ep: Ep,
    pub recv: Evd,
    pub request: Evd,
}

impl Flagged {
    pub fn new(end: End, recv: CompletionFlags, request: CompletionFlags) -> Result<Self> {
        let evd = || end.ia.create_evd(EvdFlags::DTO, 32);
        let (receives, requests) = (evd()?, evd()?);
        let attr = Some(attr(recv, request));
        let ep = end.ia.create_ep(&end.pz, &receives, &requests, &end.connect, attr)?;
        Ok(Self { end, ep, recv: receives, request: requests })
    }

    pub fn segment(&self) -> [Segment; 1] {
        [self.end.lmr.segment(0, 64)]
    }

    pub fn receive(&self, cookie: u64, flags: CompletionFlags) -> Result<(), Error> {
        self.ep.post_recv(&self.segment(), cookie, flags)
    }

    pub fn send(&self, cookie: u64, flags: CompletionFlags) -> Result<(), Error> {
        self.ep.post_send(&self.segment(), cookie, flags)
    }
}

/// A connected pair. Only the client's flags differ from the default.
pub struct FlaggedPair {
    pub client: Flagged,
    pub server: Flagged,
    _listener: Listener,
}

impl FlaggedPair {
    pub fn new(context: &Context, recv: CompletionFlags, request: CompletionFlags) -> Result<Self> {
        let (client_ia, server_ia) = context.open_both()?;
        let listener = Listener::new(context, &server_ia)?;
        let client = Flagged::new(End::new(&client_ia, Shape::default())?, recv, request)?;
        let server = Flagged::new(End::new(&server_ia, Shape::default())?, NO_FLAGS, NO_FLAGS)?;
        let patience = Some(context.patience());
        client.ep.connect(context.server_address(), listener.port, patience, &[])?;
        listener.request(context)?.accept(&server.ep, &[])?;
        for end in [&client.end, &server.end] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
        // Over iWARP, the accepting side must not send first.
        server.receive(0, NO_FLAGS)?;
        client.send(0, NO_FLAGS)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 0)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 64, 0)?;
        Ok(Self { client, server, _listener: listener })
    }

    /// Sends a message to the client. When this returns, the send has completed.
    pub fn message(&self, context: &Context, cookie: u64, flags: CompletionFlags) -> Result<()> {
        self.server.send(cookie, flags)?;
        done(&context.next(&self.server.request)?, DtoOperation::Send, 64, cookie)
    }
}

pub fn parameter<T: std::fmt::Debug>(outcome: Result<T, Error>, subtype: Subtype) -> Result<()> {
    refused_as(outcome, Type::INVALID_PARAMETER, subtype)
}
