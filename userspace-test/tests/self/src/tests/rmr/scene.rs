// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A pair whose server has memory that peers access through RMRs.

use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{denied_by_peer, done, same};
use anyhow::{bail, ensure, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Event, Lmr, Privileges, Rmr,
    RmrBinding, Segment,
};

/// Both privileges of peers.
pub const BOTH: Privileges = Privileges(Privileges::REMOTE_READ.0 | Privileges::REMOTE_WRITE.0);

/// Returns a part of an LMR to bind.
pub fn part(lmr: &Lmr, offset: usize, length: usize, privileges: Privileges) -> RmrBinding<'_> {
    RmrBinding { lmr, segment: lmr.segment(offset, length), privileges }
}

/// A connected pair, whose server has memory that peers can access through RMRs only.
pub struct Scene {
    pub pair: Pair,
    pub lmr: Lmr,
    pub rmr: Rmr,
}

impl Scene {
    /// Connects the pair, and creates the LMR and the RMR.
    pub fn new(context: &Context) -> Result<Self> {
        Self::of_shape(context, Shape::default())
    }

    /// As [`Scene::new`], with options of the pair.
    pub fn of_shape(context: &Context, shape: Shape) -> Result<Self> {
        let pair = Pair::new(context, shape)?;
        let server = &pair.server;
        let local = Privileges::LOCAL_READ | Privileges::LOCAL_WRITE;
        let buffer = Buffer::new(16 << 10)?;
        buffer.fill(0, 16 << 10, 0x55);
        let lmr = server.ia.register(&server.pz, buffer, local)?;
        let rmr = server.ia.create_rmr(&server.pz)?;
        Ok(Self { pair, lmr, rmr })
    }

    /// Binds the RMR to a part that spans two pages, and waits for the completion.
    pub fn bind(&self, context: &Context, privileges: Privileges) -> Result<Segment> {
        let part = part(&self.lmr, 3601, 1000, privileges);
        let segment = self.rmr.bind(&self.pair.server.ep, &part, 7, CompletionFlags::default())?;
        bound(context, &self.pair.server, &self.rmr, 7)?;
        Ok(segment)
    }

    /// Writes to the peer's segment, or reads it. Checks that it succeeds, or else that it breaks
    /// the connection and changes nothing.
    pub fn access(
        &self,
        context: &Context,
        write: bool,
        remote: Segment,
        allowed: bool,
    ) -> Result<()> {
        if !allowed && !write && context.server.is_siw() {
            // siw lets the peer read all regions of the PZ: it does not check.
            return Ok(());
        }
        if !allowed {
            return self.denied(context, write, remote);
        }
        self.post(write, remote)?;
        let (request, length) = (&self.pair.client.request, remote.length.into());
        let operation = if write { DtoOperation::RdmaWrite } else { DtoOperation::RdmaRead };
        done(&context.next(request)?, operation, length, 1)?;
        self.moved(context, write, remote)
    }

    /// Posts a write to the peer's segment, or a read of it.
    fn post(&self, write: bool, remote: Segment) -> Result<()> {
        let (client, length) = (&self.pair.client, remote.length as usize);
        client.lmr.buffer().fill(0, length, 0xaa);
        if write {
            client.write(0, length, remote, 1)
        } else {
            client.read(0, length, remote, 1)
        }
    }

    /// Writes to the peer's segment, or reads it. Checks that it breaks the connection and changes
    /// nothing.
    pub fn denied(&self, context: &Context, write: bool, remote: Segment) -> Result<()> {
        let (client, length) = (&self.pair.client, remote.length as usize);
        let before = self.lmr.buffer().to_vec(0, self.lmr.buffer().len());
        self.post(write, remote)?;
        self.refused_by_peer(context)?;
        let after = self.lmr.buffer().to_vec(0, before.len());
        ensure!(after == before, "memory of the peer was changed");
        let read = client.lmr.buffer().to_vec(0, length);
        ensure!(read.iter().all(|byte| *byte == 0xaa), "memory of the peer was read");
        Ok(())
    }

    /// Checks the bytes that were written or read.
    fn moved(&self, context: &Context, write: bool, remote: Segment) -> Result<()> {
        let (length, expected) = (remote.length as usize, if write { 0xaa } else { 0x55 });
        let offset = (remote.address - self.lmr.registration().address) as usize;
        let (buffer, offset) = match write {
            // Over iWARP the write may still be on its way.
            true => (self.lmr.buffer(), offset),
            false => (self.pair.client.lmr.buffer(), 0),
        };
        context.until("the bytes have arrived", || {
            Ok(buffer.to_vec(offset, length).iter().all(|byte| *byte == expected))
        })
    }

    /// Checks that the peer refuses the access: the connection breaks.
    fn refused_by_peer(&self, context: &Context) -> Result<()> {
        self.pair.ends(context, ConnectionEvent::Broken)?;
        let event = context.next(&self.pair.client.request)?;
        match event {
            // A write is complete when TCP has the data. The peer may disconnect before it answers.
            Event::Dto(dto) if context.client.is_iwarp() => ensure!(
                dto.operation == DtoOperation::RdmaWrite || dto.status != DtoStatus::Success,
                "succeeded"
            ),
            Event::Dto(dto) => denied_by_peer(context, &event, dto.operation)?,
            other => bail!("expected a failure, got {other}"),
        }
        Ok(())
    }
}

/// Checks that the next event of the request EVD is a successful bind.
pub fn bound(context: &Context, end: &End, rmr: &Rmr, cookie: u64) -> Result<()> {
    match context.next(&end.request)? {
        Event::RmrBind { rmr: handle, cookie: found, status: DtoStatus::Success } => {
            same("RMR", handle, rmr.handle())?;
            same("cookie", found, cookie)
        }
        other => bail!("expected the completion of a bind, got {other}"),
    }
}
