// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Objects of a protection matrix: two adapters with a connection that no violation may disturb,
//! and a process that has memory of its own.

use crate::context::Context;
use crate::end::{Listener, Pair, Shape};
use crate::expect::{connection, done};
use crate::peer::Peer;
use crate::raw;
use crate::tests::rmr::scene::{bound, part, BOTH};
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, DtoOperation, Ep, Ia, Lmr, Privileges, Pz, Rmr,
    Segment,
};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io::Read;
use std::sync::Arc;

/// Length of the memory of a row.
pub const LENGTH: usize = 16 << 10;
/// The part that a context opens. It lies on two pages, and is aligned for atomic operations.
pub const START: usize = 3600;
pub const PART: usize = 1000;
/// Privileges of this side only.
pub const LOCAL: Privileges = Privileges(Privileges::LOCAL_READ.0 | Privileges::LOCAL_WRITE.0);

/// Two adapters, and everything that a violation of one connection must leave alone.
pub struct Stage<'a> {
    pub context: &'a Context,
    pub client: Ia,
    pub server: Ia,
    /// Another connection between the same adapters.
    bystander: Pair,
    pub stranger: Stranger,
}

impl<'a> Stage<'a> {
    pub fn new(context: &'a Context) -> Result<Self> {
        let (client, server) = context.open_both()?;
        let bystander = Pair::between(context, &client, &server, Shape::default())?;
        let stranger = Stranger::start(context)?;
        Ok(Self { context, client, server, bystander, stranger })
    }

    /// Checks that the other process is unharmed.
    pub fn end(self) -> Result<()> {
        self.stranger.expect_unharmed()
    }

    /// Checks that the other connection transfers in both directions.
    pub fn others_go_on(&self) -> Result<()> {
        let Pair { client, server, .. } = &self.bystander;
        for (from, to) in [(client, server), (server, client)] {
            converse(self.context, from, to).context("another connection of the same adapters")?;
        }
        Ok(())
    }
}

/// Sends a message from one end to the other.
fn converse(context: &Context, from: &crate::end::End, to: &crate::end::End) -> Result<()> {
    to.receive(64, 64, 71)?;
    from.send(0, 64, 72)?;
    done(&context.next(&to.recv)?, DtoOperation::Receive, 64, 71)?;
    done(&context.next(&from.request)?, DtoOperation::Send, 64, 72)
}

/// A new connection, and memory of the server that a row opens in its way.
pub struct Scene<'a> {
    pub stage: &'a Stage<'a>,
    pub pair: Pair,
    pub buffer: Arc<Buffer>,
    /// Address of the first byte of the buffer, as the segments of the row count it.
    pub origin: Cell<u64>,
    kept: RefCell<Vec<Box<dyn Any>>>,
}

impl<'a> Scene<'a> {
    pub fn new(stage: &'a Stage<'a>) -> Result<Self> {
        let pair = Pair::between(stage.context, &stage.client, &stage.server, Shape::default())?;
        for end in [&pair.client, &pair.server] {
            end.scramble(stage.context);
        }
        let buffer = Arc::new(Buffer::new(LENGTH)?);
        let mut bytes = vec![0; LENGTH];
        stage.context.rng().fill(&mut bytes);
        buffer.write(0, &bytes);
        let origin = Cell::new(buffer.address(0));
        Ok(Self { stage, pair, buffer, origin, kept: RefCell::default() })
    }

    /// Keeps an object alive as long as the scene.
    pub fn keep<T: Any + Clone>(&self, object: T) -> T {
        self.kept.borrow_mut().push(Box::new(object.clone()));
        object
    }

    /// Returns the offset of a segment in the memory of the row.
    pub fn offset(&self, segment: Segment) -> usize {
        segment.address.wrapping_sub(self.origin.get()) as usize
    }

    /// Registers the part as a region of its own. Returns its contexts.
    pub fn lmr_in(&self, pz: &Pz, ia: &Ia, privileges: Privileges) -> Result<kdapl_lmr_create> {
        let mut message = kdapl_lmr_create {
            pz: pz.handle().0,
            address: self.buffer.address(START),
            length: PART as u64,
            privileges: privileges.0,
            ..Default::default()
        };
        raw::call(ia.device(), call::LMR_CREATE, &mut message)?;
        Ok(message)
    }

    /// Registers the part in the PZ of the server's Endpoint.
    pub fn lmr(&self, privileges: Privileges) -> Result<kdapl_lmr_create> {
        self.lmr_in(&self.pair.server.pz, &self.pair.server.ia, privileges)
    }

    pub fn free(&self, ia: &Ia, handle: u64) -> Result<()> {
        let mut message = kdapl_handle { handle, ..Default::default() };
        Ok(raw::call(ia.device(), call::LMR_FREE, &mut message)?)
    }

    /// Returns the part, with a context.
    pub fn part(&self, context: u32) -> Segment {
        Segment { address: self.buffer.address(START), length: PART as u32, context }
    }

    /// Binds an RMR to the part, through the server's Endpoint.
    pub fn bind(&self, privileges: Privileges) -> Result<Bound<'_>> {
        self.bind_through(&self.pair, &self.pair.server.ep, privileges)
    }

    /// Binds an RMR to the part, in the PZ of the server of `pair`, through one of its Endpoints.
    pub fn bind_through<'b>(
        &'b self,
        pair: &'b Pair,
        ep: &Ep,
        privileges: Privileges,
    ) -> Result<Bound<'b>> {
        let server = &pair.server;
        let lmr = self.keep(server.ia.register(&server.pz, self.buffer.clone(), LOCAL)?);
        let rmr = self.keep(server.ia.create_rmr(&server.pz)?);
        let bound = Bound { scene: self, pair, lmr, rmr, segment: Segment::default() };
        bound.again_through(ep, privileges)
    }

    /// Binds an RMR to the part, as one of a zero-based LMR.
    pub fn bind_zero_based(&self) -> Result<Bound<'_>> {
        let server = &self.pair.server;
        let made = server.ia.register_zero_based(&server.pz, self.buffer.clone(), LOCAL)?;
        self.origin.set(0);
        let (lmr, rmr) = (self.keep(made), self.keep(server.ia.create_rmr(&server.pz)?));
        let bound = Bound { scene: self, pair: &self.pair, lmr, rmr, segment: Segment::default() };
        bound.again(BOTH)
    }

    /// Binds an RMR to the part, in the PZ of the other connection.
    pub fn bind_elsewhere(&self) -> Result<Bound<'_>> {
        let other = &self.stage.bystander;
        self.bind_through(other, &other.server.ep, BOTH)
    }

    /// Connects another Endpoint of the server's PZ. Returns it.
    pub fn another_ep(&self) -> Result<Ep> {
        let Pair { client, server, listener } = &self.pair;
        let (from, to) = (self.keep(client.another_ep()?), self.keep(server.another_ep()?));
        self.connect(listener, &from, &to)?;
        for end in [client, server] {
            connection(&self.stage.context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
        Ok(to)
    }

    fn connect(&self, listener: &Listener, from: &Ep, to: &Ep) -> Result<()> {
        let context = self.stage.context;
        from.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
        Ok(listener.request(context)?.accept(to, &[])?)
    }

    /// Returns all memory of both sides: the client's, the server's, and that of the row.
    pub fn memory(&self) -> [Vec<u8>; 3] {
        let all = |buffer: &Buffer| buffer.to_vec(0, buffer.len());
        let Pair { client, server, .. } = &self.pair;
        [all(client.lmr.buffer()), all(server.lmr.buffer()), all(&self.buffer)]
    }

    /// Checks that the connection still transfers. The server has posted a receive of 64 bytes.
    pub fn goes_on(&self) -> Result<()> {
        let Pair { client, server, .. } = &self.pair;
        converse(self.stage.context, client, server).context("the same connection")
    }
}

/// A bound RMR.
pub struct Bound<'a> {
    scene: &'a Scene<'a>,
    pair: &'a Pair,
    pub lmr: Lmr,
    pub rmr: Rmr,
    pub segment: Segment,
}

impl Bound<'_> {
    /// Binds the RMR to the same part again.
    pub fn again(self, privileges: Privileges) -> Result<Self> {
        let ep = &self.pair.server.ep;
        self.again_through(ep, privileges)
    }

    fn again_through(mut self, ep: &Ep, privileges: Privileges) -> Result<Self> {
        let part = part(&self.lmr, START, PART, privileges);
        self.segment = self.rmr.bind(ep, &part, 61, CompletionFlags::default())?;
        bound(self.scene.stage.context, &self.pair.server, &self.rmr, 61)?;
        Ok(self)
    }

    pub fn unbind(self) -> Result<Self> {
        self.rmr.unbind(&self.pair.server.ep, 62, CompletionFlags::default())?;
        bound(self.scene.stage.context, &self.pair.server, &self.rmr, 62)?;
        Ok(self)
    }

    /// Lets the peer invalidate the context.
    pub fn invalidated(self) -> Result<Self> {
        let (context, Pair { client, server, .. }) = (self.scene.stage.context, self.pair);
        server.receive(0, 64, 63)?;
        let flags = CompletionFlags::default();
        client.ep.post_send_with_invalidate(&[], self.segment.context, 64, flags)?;
        done(&context.next(&server.recv)?, DtoOperation::ReceiveWithInvalidate, 0, 63)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 0, 64)?;
        Ok(self)
    }
}

/// Another process, with an open LMR and a bound RMR of its own.
pub struct Stranger {
    process: Peer,
    pub lmr: Segment,
    /// Context of the LMR on its own side.
    pub own: u32,
    pub rmr: Segment,
}

impl Stranger {
    fn start(context: &Context) -> Result<Self> {
        let mut process = Peer::play(context, "Stranger 0 0")?;
        let told = process.says()?;
        let numbers: Vec<u64> = told.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [address, length, lmr, own, rmr] = numbers[..] else {
            anyhow::bail!("bad answer {told}")
        };
        let segment = |context| Segment { address, length: length as u32, context: context as u32 };
        Ok(Self { lmr: segment(lmr), own: own as u32, rmr: segment(rmr), process })
    }

    /// Checks that its memory is as it was.
    pub fn expect_unharmed(mut self) -> Result<()> {
        self.process.no_more_to_say();
        ensure!(self.process.says()? == "unharmed", "memory of another process was changed");
        self.process.ends_well()
    }
}

/// Plays the other process: opens memory, and checks it when its input ends.
pub fn stranger(context: &Context) -> Result<()> {
    let (client, server) = context.open_both()?;
    let pair = Pair::between(context, &client, &server, Shape::default())?;
    let server = &pair.server;
    let lmr = server.ia.register(&server.pz, Buffer::new(LENGTH)?, Privileges::ALL)?;
    lmr.buffer().fill(0, LENGTH, 0x55);
    let rmr = server.ia.create_rmr(&server.pz)?;
    let part = part(&lmr, START, PART, BOTH);
    let segment = rmr.bind(&server.ep, &part, 1, CompletionFlags::default())?;
    bound(context, server, &rmr, 1)?;
    let Segment { address, length, context: rmr } = segment;
    let (open, own) = (lmr.remote_segment(0, 1).context, lmr.segment(0, 1).context);
    println!("{address} {length} {open} {own} {rmr}");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let memory = lmr.buffer().to_vec(0, LENGTH);
    let unharmed = memory.iter().all(|byte| *byte == 0x55);
    println!("{}", if unharmed { "unharmed" } else { "changed" });
    Ok(())
}
