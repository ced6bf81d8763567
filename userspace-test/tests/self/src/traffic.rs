// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Traffic in both directions of a connection, until it ends.

use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::kind;
use crate::repeat::unheard;
use anyhow::{bail, Result};
use libkdapl::{ConnectionEvent, Cr, DtoOperation, DtoStatus, Event, Ia, Segment, Type};
use std::cell::Cell;
use std::time::Instant;

/// Length of one transfer. The memory has such a part for each kind.
const PIECE: usize = 16 << 10;
/// Length that fits into one packet with any MTU.
const PACKET: usize = 256;
/// Number of outstanding operations of each kind.
const WINDOW: u64 = 4;
/// Number of posted receives.
const RECEIVES: u32 = 16;

/// Sends, writes and reads in both directions, until the connection ends.
///
/// A send answers a message of the other side, because a message without a posted receive ends an
/// iWARP connection. So at most `2 * WINDOW` messages are in flight in each direction, which is
/// less than `RECEIVES`.
pub struct Traffic {
    pub end: End,
    remote: Segment,
    /// Length of one transfer.
    length: usize,
    /// Number of received messages that are not answered yet.
    unanswered: u64,
    /// Number of completed sends that are not replaced yet.
    room: u64,
    /// iWARP: the side that accepts must not send first.
    polite: bool,
    accepted: bool,
    /// Traffic starts after the first message of the peer.
    waits: Cell<bool>,
}

fn encode(segment: Segment) -> Vec<u8> {
    let mut bytes = segment.address.to_le_bytes().to_vec();
    bytes.extend(segment.length.to_le_bytes());
    bytes.extend(segment.context.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<Segment> {
    let (Some(address), Some(rest)) = (bytes.first_chunk(), bytes.get(8..)) else {
        bail!("{} bytes of private data are too few", bytes.len());
    };
    let (Some(length), Some(context)) =
        (rest.first_chunk(), rest.get(4..).and_then(|rest| rest.first_chunk()))
    else {
        bail!("{} bytes of private data are too few", bytes.len());
    };
    Ok(Segment {
        address: u64::from_le_bytes(*address),
        length: u32::from_le_bytes(*length),
        context: u32::from_le_bytes(*context),
    })
}

impl Traffic {
    /// Creates traffic with several packets for each transfer. Uses one packet if packets may be
    /// lost, see [`Context::loses_reads`].
    pub fn new(context: &Context, ia: &Ia) -> Result<Self> {
        let length = if context.loses_reads() { PACKET } else { PIECE };
        Ok(Self { polite: context.client.is_iwarp(), ..Self::of(ia, length)? })
    }

    /// Creates traffic with one packet for each transfer.
    pub fn of_packets(ia: &Ia) -> Result<Self> {
        Self::of(ia, PACKET)
    }

    fn of(ia: &Ia, length: usize) -> Result<Self> {
        let shape = Shape {
            merged: true,
            receives: RECEIVES,
            requests: 3 * WINDOW as u32,
            memory: 4 * PIECE,
            ..Default::default()
        };
        let end = End::new(ia, shape)?;
        Ok(Self {
            end,
            remote: Segment::default(),
            length,
            unanswered: 0,
            room: 0,
            polite: false,
            accepted: false,
            waits: Cell::new(false),
        })
    }

    pub fn post_receives(&self) -> Result<()> {
        (0..RECEIVES).try_for_each(|_| self.end.receive(PIECE, PIECE, 0))
    }

    pub fn connect(&self, context: &Context, port: u64) -> Result<()> {
        let memory = encode(self.end.lmr.remote_segment(3 * PIECE, PIECE));
        self.end.ep.connect(context.server_address(), port, Some(context.patience()), &memory)?;
        Ok(())
    }

    /// Waits for the request and accepts it.
    pub fn accept(&mut self, context: &Context, listener: &Listener) -> Result<()> {
        self.accept_request(&mut listener.request(context)?)
    }

    pub fn accept_request(&mut self, cr: &mut Cr) -> Result<()> {
        self.remote = decode(&cr.query()?.private_data)?;
        let memory = encode(self.end.lmr.remote_segment(3 * PIECE, PIECE));
        cr.accept(&self.end.ep, &memory)?;
        self.accepted = true;
        Ok(())
    }

    /// Waits for ESTABLISHED. Another event is an error.
    pub fn established(&mut self, context: &Context) -> Result<()> {
        match self.first_event(context)? {
            ConnectionEvent::Established => Ok(()),
            other => unheard!("expected ESTABLISHED, got {other}"),
        }
    }

    /// Waits for the event that reports the result of a connect or an accept.
    pub fn first_event(&mut self, context: &Context) -> Result<ConnectionEvent> {
        match context.next(&self.end.connect)? {
            Event::Connection { event, private_data_size, .. } => {
                if event == ConnectionEvent::Established && private_data_size > 0 {
                    self.remote = decode(&self.end.ep.private_data()?)?;
                }
                Ok(event)
            }
            other => bail!("expected a connection event first, got {other}"),
        }
    }

    /// Fills the windows: now, or once this side may send.
    pub fn begin(&self) -> Result<()> {
        if self.polite && self.accepted {
            self.waits.set(true);
            return Ok(());
        }
        self.fill()
    }

    fn fill(&self) -> Result<()> {
        for _ in 0..WINDOW {
            self.post(DtoOperation::Send)?;
            self.post(DtoOperation::RdmaWrite)?;
            self.post(DtoOperation::RdmaRead)?;
        }
        Ok(())
    }

    fn post(&self, operation: DtoOperation) -> Result<()> {
        let (end, length) = (&self.end, self.length);
        let posted = match operation {
            DtoOperation::Send => end.send(0, length, 0),
            DtoOperation::Receive => end.receive(PIECE, PIECE, 0),
            DtoOperation::RdmaWrite => end.write(0, length, self.remote, 0),
            DtoOperation::RdmaRead => end.read(2 * PIECE, length, self.remote, 0),
            other => bail!("unexpected operation {other}"),
        };
        match posted {
            // The connection has ended, or the device was removed. The event of that follows.
            Err(error) if refused_at_the_end(&error) => Ok(()),
            other => other,
        }
    }

    /// Keeps the windows full for `count` completions, or until the connection ends. Then checks
    /// that no event follows, and returns the last one.
    pub fn run(&mut self, context: &Context, count: u64) -> Result<Option<ConnectionEvent>> {
        for _ in 0..count {
            match context.next(&self.end.recv)? {
                Event::Dto(dto) if dto.status == DtoStatus::Success => self.go_on(dto.operation)?,
                Event::Dto(_) => {}
                Event::Connection { event, .. } => {
                    self.nothing_behind(event)?;
                    return Ok(Some(event));
                }
                other => bail!("unexpected in traffic: {other}"),
            }
        }
        Ok(None)
    }

    /// Replaces a completed operation with another one.
    fn go_on(&mut self, completed: DtoOperation) -> Result<()> {
        match completed {
            DtoOperation::Send => self.room += 1,
            DtoOperation::Receive => {
                self.post(completed)?;
                self.unanswered += 1;
                if self.waits.replace(false) {
                    self.fill()?;
                }
            }
            other => return self.post(other),
        }
        if self.room > 0 && self.unanswered > 0 {
            self.room -= 1;
            self.unanswered -= 1;
            self.post(DtoOperation::Send)?;
        }
        Ok(())
    }

    /// Checks that only the events of DTOs follow that were posted after the end of the connection,
    /// before its event was dequeued: they are flushed.
    fn nothing_behind(&self, last: ConnectionEvent) -> Result<()> {
        loop {
            match self.end.recv.dequeue() {
                Err(error) if error.is_empty() => return Ok(()),
                Err(error) => return Err(error.into()),
                Ok((Event::Dto(dto), _)) if dto.status == DtoStatus::Flushed => {}
                Ok((event, _)) => bail!("{event} came after {last}"),
            }
        }
    }

    /// Does the same until the connection ends, which must be soon.
    pub fn run_out(&mut self, context: &Context) -> Result<ConnectionEvent> {
        let limit = Instant::now() + context.patience() * 3;
        while Instant::now() < limit {
            if let Some(event) = self.run(context, 1)? {
                return Ok(event);
            }
        }
        unheard!("the connection does not end")
    }
}

fn refused_at_the_end(error: &anyhow::Error) -> bool {
    let kind = kind(error);
    // After a device removal, the resource or the region may be missing first.
    let gone = [Type::INSUFFICIENT_RESOURCES, Type::INTERNAL_ERROR, Type::PROTECTION_VIOLATION];
    kind == Some(Type::INVALID_STATE) || kind.is_some_and(|kind| gone.contains(&kind))
}
