// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ledger of expected and taken events: each event once, and those of one source in order.

use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{AsyncEvent, ConnectionEvent, Cr, DtoEvent, DtoOperation, DtoStatus, Event, Handle};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Indices of the two adapters: the one that connects, and the one that listens.
pub const CALLER: usize = 0;
pub const CALLED: usize = 1;

/// Number of DTOs in a round of a line, on each side.
pub const DTOS_OF_A_ROUND: u32 = 8;

/// A connection, or a sequence of connections, between two endpoints.
pub struct Line {
    /// Qualifier of the listener.
    pub qualifier: u64,
    /// Requests that have arrived for it.
    pub requests: Mutex<VecDeque<Cr>>,
    /// Number of connections, and of their ends, that each side has reported.
    pub up: [AtomicU32; 2],
    pub down: [AtomicU32; 2],
    /// Number of rejected connects.
    pub refused: AtomicU32,
    /// The present round of DTOs, and a bit for each of its DTOs that was taken.
    round: AtomicU64,
    taken: [AtomicU32; 2],
}

/// Returns the cookie of a DTO: line, round, place in the round.
fn cookie(line: usize, round: u64, place: u32) -> u64 {
    ((line as u64) << 48) | (round << 8) | u64::from(place)
}

impl Line {
    fn new(qualifier: u64) -> Self {
        Self {
            qualifier,
            requests: Mutex::default(),
            up: Default::default(),
            down: Default::default(),
            refused: AtomicU32::new(0),
            round: AtomicU64::new(0),
            taken: Default::default(),
        }
    }

    /// Starts another round, after all DTOs of the last one were taken.
    pub fn begin_round(&self) {
        self.taken.iter().for_each(|taken| taken.store(0, Ordering::Relaxed));
        self.round.fetch_add(1, Ordering::Release);
    }

    /// Returns the cookie of a DTO of this round.
    pub fn cookie(&self, line: usize, place: u32) -> u64 {
        cookie(line, self.round.load(Ordering::Relaxed), place)
    }

    /// Returns the number of DTOs of the round that were taken, for each side that has posted them.
    pub fn taken(&self) -> [u32; 2] {
        [CALLER, CALLED].map(|side| self.taken[side].load(Ordering::Acquire).count_ones())
    }

    fn completed(&self, side: usize, dto: &DtoEvent) -> Result<()> {
        let (round, place) = (dto.cookie << 16 >> 24, dto.cookie & 0xff);
        let current = self.round.load(Ordering::Acquire);
        ensure!(round == current, "a DTO of round {round} in round {current}");
        let before = self.taken[side].fetch_or(1 << place, Ordering::AcqRel);
        ensure!(before & (1 << place) == 0, "DTO {place} of round {round} was reported twice");
        Ok(())
    }

    fn told(&self, side: usize, event: ConnectionEvent) -> Result<()> {
        use ConnectionEvent::{Broken, Disconnected, Established, NonPeerRejected, PeerRejected};
        let count = match event {
            Established => &self.up[side],
            Disconnected | Broken => &self.down[side],
            NonPeerRejected | PeerRejected if side == CALLER => &self.refused,
            other => bail!("{other} on side {side}"),
        };
        count.fetch_add(1, Ordering::AcqRel);
        let load = |count: &AtomicU32| count.load(Ordering::Acquire);
        ensure!(load(&self.down[side]) <= load(&self.up[side]), "an end without a connection");
        Ok(())
    }
}

/// Software events of one poster, with a bit for each that was taken.
struct Posted {
    bits: Vec<AtomicU64>,
    taken: AtomicU64,
    /// Total number, once all are posted.
    all: AtomicU64,
}

impl Posted {
    fn new(most: u64) -> Self {
        let bits = (0..most.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { bits, taken: AtomicU64::new(0), all: AtomicU64::new(u64::MAX) }
    }

    fn take(&self, number: u64) -> Result<()> {
        let word = self.bits.get((number / 64) as usize).context("an event that was not posted")?;
        let bit = 1 << (number % 64);
        ensure!(word.fetch_or(bit, Ordering::Relaxed) & bit == 0, "the event was taken twice");
        self.taken.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// Returns the pointer of a poster's software event.
pub fn pointer(poster: usize, queue: usize, number: u64) -> u64 {
    ((poster as u64) << 48) | ((queue as u64) << 40) | number
}

/// Entries of all events.
pub struct Ledger {
    pub lines: Vec<Line>,
    posters: Vec<Posted>,
    /// Number of reported overflows of each EVD.
    overflows: Mutex<HashMap<Handle, u64>>,
    endpoints: Mutex<HashMap<(usize, Handle), usize>>,
    events: AtomicU64,
    /// Over iWARP, a DTO in flight at the peer's disconnect may fail.
    may_fail: bool,
}

impl Ledger {
    /// Creates a ledger. Each poster may post up to `most` events.
    pub fn new(posters: usize, most: u64, qualifiers: &[u64], is_iwarp: bool) -> Self {
        Self {
            may_fail: is_iwarp,
            lines: qualifiers.iter().map(|qualifier| Line::new(*qualifier)).collect(),
            posters: (0..posters).map(|_| Posted::new(most)).collect(),
            overflows: Mutex::default(),
            endpoints: Mutex::default(),
            events: AtomicU64::new(0),
        }
    }

    /// Adds an endpoint of a line.
    pub fn add_endpoint(&self, side: usize, ep: Handle, line: usize) {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).insert((side, ep), line);
    }

    fn line_of(&self, side: usize, ep: Handle) -> Result<usize> {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.get(&(side, ep)).copied().context("an unknown endpoint")
    }

    /// Returns the number of reported overflows of an EVD.
    pub fn overflows_of(&self, evd: Handle) -> u64 {
        let overflows = self.overflows.lock().unwrap_or_else(PoisonError::into_inner);
        overflows.get(&evd).copied().unwrap_or(0)
    }

    /// Checks whether all software events were taken.
    pub fn all_software_is_taken(&self) -> bool {
        let load = |count: &AtomicU64| count.load(Ordering::Acquire);
        self.posters.iter().all(|posted| load(&posted.taken) == load(&posted.all))
    }

    /// Records that a poster has posted all its events.
    pub fn posted(&self, poster: usize, all: u64) {
        self.posters[poster].all.store(all, Ordering::Release);
    }

    /// Returns the number of events that were taken.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Enters an event that was taken from a queue of that side.
    pub fn enter(
        &self,
        side: usize,
        queue: usize,
        event: Event,
        seen: &mut LastTaken,
    ) -> Result<()> {
        let text = event.to_string();
        self.entered(side, queue, event, seen).context(text)?;
        self.events.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn entered(&self, side: usize, queue: usize, event: Event, seen: &mut LastTaken) -> Result<()> {
        match event {
            Event::Software { pointer } => {
                let (poster, number) = ((pointer >> 48) as usize, pointer & 0xff_ffff_ffff);
                let at = ((pointer >> 40) & 0xff) as usize;
                ensure!(at == queue, "posted to queue {at}, taken from {queue}");
                seen.in_order((queue, poster, None), number)?;
                let posted = self.posters.get(poster).context("an unknown poster")?;
                posted.take(number)
            }
            Event::Dto(dto) => {
                let line = self.line_of(side, dto.ep)?;
                ensure!(dto.cookie >> 48 == line as u64, "a DTO of another line");
                let (sends, receives) = (DtoOperation::Send, DtoOperation::Receive);
                ensure!(dto.operation == [sends, receives][side], "an operation of the other side");
                let right = matches!(dto.status, DtoStatus::Success | DtoStatus::Flushed);
                ensure!(right || self.may_fail, "expected success or flushed");
                seen.in_order((queue, line, Some(side)), dto.cookie)?;
                self.lines[line].completed(side, &dto)
            }
            Event::Connection { event, ep, .. } => {
                self.lines[self.line_of(side, ep)?].told(side, event)
            }
            Event::ConnectionRequest { cr, conn_qual, .. } => {
                let line = self.lines.iter().find(|line| line.qualifier == conn_qual);
                let line = line.context("an unknown listener")?;
                line.requests.lock().unwrap_or_else(PoisonError::into_inner).push_back(cr);
                Ok(())
            }
            Event::Async { event: AsyncEvent::EvdOverflow, object, .. } => {
                let mut overflows = self.overflows.lock().unwrap_or_else(PoisonError::into_inner);
                *overflows.entry(object).or_default() += 1;
                Ok(())
            }
            Event::Async { .. } | Event::RmrBind { .. } | Event::Unknown { .. } => {
                bail!("an event of no line")
            }
        }
    }
}

/// Last number that one thread took, by queue and source. A thread takes events in order.
#[derive(Default)]
pub struct LastTaken(HashMap<(usize, usize, Option<usize>), u64>);

impl LastTaken {
    fn in_order(&mut self, source: (usize, usize, Option<usize>), number: u64) -> Result<()> {
        match self.0.insert(source, number) {
            Some(before) if before >= number => bail!("it arrived after {before:#x}"),
            _ => Ok(()),
        }
    }
}
