// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Server side of one connection.

use super::Served;
use crate::pattern;
use crate::ping::pause;
use crate::protocol::{encode_offer, Command, Mode, Request, Verb, COMMAND_BYTES, RIGHT, WRONG};
use crate::side::{successful, Peer, Plan, Side};
use anyhow::{bail, ensure, Result};
use libkdapl::{
    CompletionFlags, ConnectionEvent, Cr, Dto, DtoEvent, DtoStatus, Event, Ia, Segment,
};
use std::collections::VecDeque;
use std::time::Duration;
use toolkit::stop::{self, Stopped};
use toolkit::switches;

/// Maximum number of outstanding replies.
const REQUESTS: u32 = 32;
/// Time without an event. A client may be silent for any time; its death causes an event.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Limits on the client's request.
const MEMORY_MAX: u64 = 1 << 30;
const DEPTH_MAX: u32 = 8192;
/// Maximum length of the error text, which fits into the private data of a reject on every
/// transport.
const REASON_BYTES: usize = 100;

/// A connection request whose private data could be decoded.
pub struct Arrival {
    pub cr: Cr,
    pub request: Request,
    /// Size of the private data of the request.
    pub private_data: usize,
    pub served: Served,
}

impl Arrival {
    /// Decodes a connection request, and rejects it if that fails.
    ///
    /// # Errors
    /// Result of the rejected request.
    pub fn new(mut cr: Cr) -> Result<Self, Box<Served>> {
        let mut served = Served::default();
        match understand(&cr, &mut served) {
            Ok((request, private_data)) => Ok(Self { cr, request, private_data, served }),
            Err(error) => {
                refuse(&mut cr, &mut served, &error);
                Err(Box::new(served))
            }
        }
    }

    /// Records the error, and rejects the request unless it was accepted.
    pub fn refused(mut self, error: &anyhow::Error) -> Served {
        refuse(&mut self.cr, &mut self.served, error);
        self.served
    }
}

fn understand(cr: &Cr, served: &mut Served) -> Result<(Request, usize)> {
    let query = cr.query()?;
    served.client = query.remote.map_or_else(|| "unknown".into(), |a| a.ip().to_string());
    // A client whose request cannot be decoded counts as a client with one connection.
    served.connections = 1;
    let request = Request::decode(&query.private_data)?;
    served.mode = request.mode.name().into();
    (served.run, served.connections) = (request.run, request.connections);
    Ok((request, query.private_data.len()))
}

fn refuse(cr: &mut Cr, served: &mut Served, error: &anyhow::Error) {
    let reason = format!("{error:#}");
    // Fails after the accept, when the request can no longer be rejected.
    let _ = cr.reject(fitting(&reason).as_bytes());
    served.error = Some(reason);
}

/// Returns as many characters of a reason as fit into a reject.
fn fitting(reason: &str) -> &str {
    let end = (0..=REASON_BYTES).rev().find(|end| reason.is_char_boundary(*end));
    end.map_or("", |end| &reason[..end])
}

/// Accepts the request and serves it until the client disconnects. An error is part of the result.
pub fn serve(ia: &Ia, mut arrival: Arrival, record: bool) -> Served {
    match accept(ia, &mut arrival, record) {
        Ok(()) => arrival.served,
        Err(error) => arrival.refused(&error),
    }
}

fn accept(ia: &Ia, arrival: &mut Arrival, record: bool) -> Result<()> {
    let Arrival { cr, request, private_data, served } = arrival;
    let mut connection = Connection::new(ia, *request, record, &served.client)?;
    connection.side.recorder.requested(*private_data);
    cr.accept(&connection.side.ep, &connection.offer())?;
    let outcome = connection.run(served).map_err(|error| connection.side.explain(error));
    served.wakeups = connection.side.wakes;
    served.events = connection.side.recorder.into_lines();
    outcome
}

struct Connection {
    side: Side,
    request: Request,
    /// Size of a receive slot in bytes.
    slot: usize,
    /// Offset of the reply.
    answer: usize,
    /// Offset of the offered memory.
    region: usize,
    pauses: u64,
    /// Slots of messages that are being sent back, oldest first.
    echoing: VecDeque<u64>,
    /// The client's farewell came.
    finished: bool,
}

impl Connection {
    fn new(ia: &Ia, request: Request, record: bool, client: &str) -> Result<Self> {
        let depth = request.depth;
        ensure!(
            (1..=DEPTH_MAX).contains(&depth),
            "depth {depth} is not in 1 to {DEPTH_MAX}: choose another --depth"
        );
        let slot = (request.message_size as usize).max(COMMAND_BYTES);
        let answer = request.depth as usize * slot;
        let region = answer + slot;
        let memory = region + request.region_size as usize;
        ensure!(
            memory as u64 <= MEMORY_MAX,
            "{memory} bytes are more than the server's {MEMORY_MAX}: use a smaller --size or --depth"
        );
        let plan = Plan {
            receives: request.depth,
            requests: REQUESTS.max(request.depth.min(64)),
            memory,
            one_queue: false,
            poll: request.poll,
            record,
            timeout: PATIENCE,
        };
        let peer = Peer { name: format!("the client at {client}"), remedy: "see what it printed" };
        let side = Side::new(ia, &plan, peer)?;
        let echoing = VecDeque::new();
        let connection =
            Self { side, request, slot, answer, region, pauses: 0, echoing, finished: false };
        (0..u64::from(request.depth)).try_for_each(|slot| connection.receive(slot))?;
        Ok(connection)
    }

    fn offer(&self) -> [u8; crate::protocol::OFFER_BYTES] {
        let size = self.request.region_size as usize;
        encode_offer(self.side.lmr.remote_segment(self.region, size))
    }

    fn segment(&self, slot: u64) -> Segment {
        self.side.lmr.segment(slot as usize * self.slot, self.slot)
    }

    fn receive(&self, slot: u64) -> Result<()> {
        self.side.receive(self.segment(slot), slot)
    }

    fn run(&mut self, served: &mut Served) -> Result<()> {
        let event = self.side.next()?;
        let Event::Connection { event: ConnectionEvent::Established, .. } = event else {
            bail!("expected ESTABLISHED as the first event, got {event}");
        };
        let before = switches::of_this_thread();
        let outcome = self.until_disconnected(served);
        served.switches =
            switches::of_this_thread().saturating_sub(before).saturating_sub(self.pauses);
        outcome
    }

    fn until_disconnected(&mut self, served: &mut Served) -> Result<()> {
        let mut event = self.side.next()?;
        loop {
            ensure!(!stop::requested(), Stopped);
            event = match event {
                Event::Connection { event: ConnectionEvent::Disconnected, .. } => break,
                Event::Dto(dto) if dto.status == DtoStatus::Flushed => self.side.next()?,
                event => {
                    let dto = successful(&event)?;
                    if dto.length == 0 {
                        self.finish(served.messages)?;
                        self.side.next()?
                    } else {
                        served.messages += 1;
                        served.bytes += dto.length;
                        self.message(&dto, served.messages)?
                    }
                }
            }
        }
        ensure!(
            self.finished,
            "lost {}: it ended before it had finished (killed, or after an error), after {} messages",
            self.side.peer.name,
            served.messages
        );
        if let Some(event) = self.side.try_next()? {
            bail!("an event came after DISCONNECTED: {event}");
        }
        Ok(())
    }

    /// Handles the farewell after `count` messages.
    fn finish(&mut self, count: u64) -> Result<()> {
        self.finished = true;
        if self.request.mode != Mode::Sink {
            return Ok(());
        }
        self.tell(self.answer, count)?;
        self.compare_received(count)
    }

    /// Handles a message. Returns the next event.
    fn message(&mut self, dto: &DtoEvent, count: u64) -> Result<Event> {
        match self.request.mode {
            // `brief` handles the connections of [`Mode::Connect`].
            Mode::Echo | Mode::Connect => return self.echo(dto),
            Mode::Sink => self.sink(dto, count)?,
            Mode::Serve => self.obey(dto)?,
        }
        self.side.next()
    }

    /// Sends a message back from its slot. The receive of the slot is posted again once the send is
    /// known to have completed.
    fn echo(&mut self, dto: &DtoEvent) -> Result<Event> {
        self.pauses += pause(self.request.pause_us);
        let (flags, sent) = self.side.quietly()?;
        let free = sent.map_or_else(Vec::new, |sent| self.through(sent));
        let send = [Segment { length: dto.length as u32, ..self.segment(dto.cookie) }];
        self.echoing.push_back(dto.cookie);
        let mut dtos = Vec::with_capacity(free.len() + 1);
        for (slot, segment) in &free {
            dtos.push(Dto::recv(segment, *slot, CompletionFlags::default()));
        }
        dtos.push(Dto::send(&send, dto.cookie, flags));
        self.side.submit(&dtos)
    }

    /// Returns the slots whose sends have completed, to be posted again. Sends complete in order,
    /// hence all slots up to `sent` are free.
    fn through(&mut self, sent: u64) -> Vec<(u64, [Segment; 1])> {
        let last = self.echoing.iter().position(|slot| *slot == sent);
        let slots: Vec<u64> = self.echoing.drain(..last.map_or(0, |last| last + 1)).collect();
        slots.into_iter().map(|slot| (slot, [self.segment(slot)])).collect()
    }

    /// Receives a message. Reports the number of messages after each quarter of the receives.
    fn sink(&mut self, dto: &DtoEvent, count: u64) -> Result<()> {
        ensure!(dto.length == u64::from(self.request.message_size), "got {} bytes", dto.length);
        self.receive(dto.cookie)?;
        let quarter = u64::from(self.request.depth / 4).max(1);
        if count % quarter == 0 {
            self.tell(self.answer, count)?;
        }
        Ok(())
    }

    fn tell(&mut self, at: usize, count: u64) -> Result<()> {
        self.side.reap_requests()?;
        self.side.lmr.buffer().write(at, &count.to_le_bytes());
        self.side.send(self.side.lmr.segment(at, 8), 0)
    }

    /// Compares the data in the receives after the last message.
    fn compare_received(&mut self, count: u64) -> Result<()> {
        let size = self.request.message_size as usize;
        let wrong = (0..count.min(self.request.depth.into())).find_map(|slot| {
            let message = self.side.lmr.buffer().to_vec(slot as usize * self.slot, size);
            Some((slot, pattern::first_wrong(self.request.run, &message)?))
        });
        // At another offset than the count, whose send may not have completed.
        self.tell(self.answer + 8, if wrong.is_none() { RIGHT } else { WRONG })?;
        wrong.map_or(Ok(()), |(slot, at)| {
            bail!("byte {at} of the message in receive {slot} is wrong")
        })
    }

    fn obey(&mut self, dto: &DtoEvent) -> Result<()> {
        let offset = dto.cookie as usize * self.slot;
        let message = self.side.lmr.buffer().to_vec(offset, dto.length as usize);
        self.receive(dto.cookie)?;
        let command = Command::decode(&message)?;
        let (answer, payload) = self.execute(&command, &message[COMMAND_BYTES..])?;
        self.side.reap_requests()?;
        let buffer = self.side.lmr.buffer();
        buffer.write(self.answer, &answer.encode());
        buffer.write(self.answer + COMMAND_BYTES, &payload);
        let length = COMMAND_BYTES + payload.len();
        self.side.send(self.side.lmr.segment(self.answer, length), 0)?;
        if answer.verb == Verb::Wrong {
            bail!("{:?}: the byte at {} is wrong", command.verb, answer.offset);
        }
        Ok(())
    }

    fn execute(&self, command: &Command, payload: &[u8]) -> Result<(Command, Vec<u8>)> {
        let (offset, length) = (command.offset as usize, command.length as usize);
        let wrong = if command.verb == Verb::Echo {
            pattern::first_wrong(command.seed, payload)
                .or((payload.len() != length).then_some(payload.len()))
        } else {
            let inside =
                offset.checked_add(length).is_some_and(|e| e <= self.request.region_size as usize);
            ensure!(inside, "{length} bytes at {offset} are not in the offered memory");
            self.in_region(command.verb, command.seed, self.region + offset, length)?
        };
        let verb = if wrong.is_some() { Verb::Wrong } else { Verb::Done };
        let answer = Command { verb, offset: wrong.unwrap_or(0) as u64, ..*command };
        let echoes = command.verb == Verb::Echo && wrong.is_none();
        let payload =
            if echoes { pattern::bytes(command.seed.wrapping_add(1), length) } else { Vec::new() };
        Ok((answer, payload))
    }

    /// Executes `verb` on the offered memory. Returns the index of a wrong byte.
    fn in_region(&self, verb: Verb, seed: u64, at: usize, length: usize) -> Result<Option<usize>> {
        let buffer = self.side.lmr.buffer();
        match verb {
            Verb::Verify => Ok(pattern::first_wrong(seed, &buffer.to_vec(at, length))),
            Verb::Fill => {
                buffer.write(at, &pattern::bytes(seed, length));
                Ok(None)
            }
            Verb::Echo | Verb::Done | Verb::Wrong => bail!("{verb:?} is no command"),
        }
    }
}
