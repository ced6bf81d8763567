// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Producers of the storm. All events but the software events are caused as long as those are
//! posted.

use super::ledger::{pointer, CALLED, CALLER, DTOS_OF_A_ROUND};
use super::storm::{count, Storm, CALLED_EVDS, CALLER_EVD};
use crate::expect::empty;
use crate::tests::trace::file;
use crate::tests::wakeup::BEYOND_SHORTEST_RING;
use anyhow::{ensure, Context as _, Result};
use fastrand::Rng;
use libkdapl::{Close, CompletionFlags, Cr, Dto, Ep, EpState, EvdFlags, Segment, Type};
use std::fs;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Maximum number of additional events of each poster, until all conditions have occurred.
pub const MAX_EXTRA_EVENTS: u64 = 1 << 20;

/// Posts numbered events to random EVDs, whenever there is room: `each` events, and slowly some
/// more until all conditions have occurred.
pub fn post_software(storm: &Storm, poster: usize, each: u64, mut rng: Rng) -> Result<()> {
    let queues: Vec<_> =
        storm.queues.iter().enumerate().filter(|(_, queue)| queue.software).collect();
    let (mut number, mut last) = (0, Instant::now());
    while number < each || (number < each + MAX_EXTRA_EVENTS && !storm.conditions.is_complete()) {
        let (index, queue) = queues[rng.usize(..queues.len())];
        // Several to the same EVD, as long as there is room.
        for _ in 0..rng.u64(1..64).min(each + MAX_EXTRA_EVENTS - number) {
            match queue.evd.post_se(pointer(poster, index, number)) {
                Ok(()) => (number, last) = (number + 1, Instant::now()),
                Err(error) if error.kind() == Some(Type::QUEUE_FULL) => break,
                Err(error) => return Err(error.into()),
            }
        }
        ensure!(!storm.is_over(), "the storm ended before event {number} of poster {poster}");
        let late = last.elapsed() > storm.patience;
        ensure!(!late, "no room for event {number}: {}", storm.state());
        if number < each {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    storm.ledger.posted(poster, number);
    Ok(())
}

/// Two endpoints, and their line in the ledger.
pub struct ConnectedPair<'a> {
    storm: &'a Storm,
    line: usize,
    address: IpAddr,
    eps: [Ep; 2],
    rng: Rng,
    /// The listening side's receives are posted.
    ready: bool,
    /// Number of the present connect.
    attempt: u32,
}

impl<'a> ConnectedPair<'a> {
    pub fn new(storm: &'a Storm, line: usize, address: IpAddr, rng: Rng) -> Result<Self> {
        let (caller, called) = (&storm.ends[CALLER], &storm.ends[CALLED]);
        let here = &storm.queues[CALLER_EVD].evd;
        let there = &storm.queues[CALLED_EVDS[line % 2]].evd;
        let eps = [
            caller.ia.create_ep(&caller.pz, &caller.recv, here, here, None)?,
            called.ia.create_ep(&called.pz, there, &called.request, there, None)?,
        ];
        for side in [CALLER, CALLED] {
            storm.ledger.add_endpoint(side, eps[side].handle(), line);
        }
        Ok(Self { storm, line, address, eps, rng, ready: false, attempt: 0 })
    }

    fn up(&self, side: usize) -> u32 {
        self.storm.ledger.lines[self.line].up[side].load(Ordering::Acquire)
    }

    fn down(&self, side: usize) -> u32 {
        self.storm.ledger.lines[self.line].down[side].load(Ordering::Acquire)
    }

    fn refused(&self) -> u32 {
        self.storm.ledger.lines[self.line].refused.load(Ordering::Acquire)
    }

    /// Returns the request of the present connect. An earlier request, which was rejected, may
    /// arrive twice if `ib_cm` had repeated it before. It is rejected again.
    fn request(&self) -> Result<Option<Cr>> {
        let requests = &self.storm.ledger.lines[self.line].requests;
        let request = requests.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(mut cr) = request else { return Ok(None) };
        if cr.query()?.private_data.starts_with(&self.attempt.to_le_bytes()) {
            return Ok(Some(cr));
        }
        cr.reject(&[])?;
        Ok(None)
    }

    fn segment(&self, side: usize) -> [Segment; 1] {
        [self.storm.ends[side].lmr.segment(0, 64)]
    }

    /// Posts the DTOs of a round: receives, or sends.
    fn post(&self, side: usize) -> Result<()> {
        let line = &self.storm.ledger.lines[self.line];
        let segment = self.segment(side);
        let flags = CompletionFlags::default();
        let dto = |place| match side {
            CALLED => Dto::recv(&segment, line.cookie(self.line, place), flags),
            _ => Dto::send(&segment, line.cookie(self.line, place), flags),
        };
        let dtos: Vec<_> = (0..DTOS_OF_A_ROUND).map(dto).collect();
        let submitted = self.eps[side].submit(&dtos, None);
        submitted.event?;
        Ok(())
    }

    /// Posts the receives of another round.
    fn make_ready(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.ready, true) {
            self.storm.ledger.lines[self.line].begin_round();
            self.post(CALLED)?;
        }
        Ok(())
    }

    /// Waits until all DTOs of the round were taken. `sends` of them are sends.
    fn round_is_taken(&mut self, sends: u32) -> Result<()> {
        let line = &self.storm.ledger.lines[self.line];
        self.storm.until("a round of DTOs", || Ok(line.taken() == [sends, DTOS_OF_A_ROUND]))?;
        self.ready = false;
        Ok(())
    }

    /// Connects. Repeats it while there is no room for the request.
    fn connect(&mut self) -> Result<()> {
        self.make_ready()?;
        let storm = self.storm;
        let qualifier = storm.ledger.lines[self.line].qualifier;
        let up = [self.up(CALLER) + 1, self.up(CALLED) + 1];
        loop {
            let refused = self.refused();
            self.attempt += 1;
            let data = self.attempt.to_le_bytes();
            self.eps[CALLER].connect(self.address, qualifier, Some(storm.patience), &data)?;
            storm.until("the result of a connect", || {
                if let Some(mut cr) = self.request()? {
                    cr.accept(&self.eps[CALLED], &[])?;
                }
                let both = [CALLER, CALLED].map(|side| self.up(side)) == up;
                Ok(both || self.refused() != refused)
            })?;
            if self.refused() == refused {
                count(&storm.conditions.connections);
                return Ok(());
            }
            self.eps[CALLER].reset()?;
        }
    }

    /// Ends the connection.
    fn disconnect(&mut self) -> Result<()> {
        let side = self.rng.usize(0..2);
        let how = if self.rng.bool() { Close::Abrupt } else { Close::Graceful };
        self.eps[side].disconnect(how)?;
        self.storm
            .until("the end of a connection", || {
                Ok([CALLER, CALLED].iter().all(|side| self.down(*side) == self.up(*side)))
            })
            .with_context(|| format!("side {side} disconnects {how:?}; {}", self.standing()))
    }

    /// Describes both sides, with the trace of their DTOs if `trace_entries` is set.
    fn standing(&self) -> String {
        let one = |side: usize| {
            let (up, down, ep) = (self.up(side), self.down(side), &self.eps[side]);
            let memory = fs::read_to_string(file(ep)).unwrap_or_default();
            format!(
                "side {side}: connected {up} times, disconnected {down} times, {:?}\n{memory}",
                ep.status()
            )
        };
        [CALLER, CALLED].map(one).join("; ")
    }

    fn reset(&mut self) -> Result<()> {
        Ok(self.eps.iter().try_for_each(Ep::reset)?)
    }

    /// Connects once, and sends messages.
    pub fn send(mut self) -> Result<()> {
        self.connect()?;
        while self.storm.is_posting() {
            self.make_ready()?;
            self.post(CALLER)?;
            self.round_is_taken(DTOS_OF_A_ROUND)?;
            count(&self.storm.conditions.messages);
        }
        self.disconnect()
    }

    /// Connects repeatedly. Each connection ends with messages in flight, or without any.
    pub fn reconnect(mut self) -> Result<()> {
        while self.storm.is_posting() {
            self.connect()?;
            let sends = if self.rng.bool() { DTOS_OF_A_ROUND } else { 0 };
            if sends != 0 {
                self.post(CALLER)?;
            }
            self.disconnect()?;
            // Messages that were not delivered are flushed.
            self.round_is_taken(sends)?;
            self.reset()?;
        }
        Ok(())
    }
}

/// Makes a short EVD overflow: connects without a listener report more events than it has room for.
pub fn overflow(storm: &Storm, address: IpAddr, nobody: u64) -> Result<()> {
    let end = &storm.ends[CALLER];
    let short = end.ia.create_evd(EvdFlags::CONNECTION, 1)?;
    let ep = || end.ia.create_ep(&end.pz, &end.recv, &end.request, &short, None);
    let eps = (0..BEYOND_SHORTEST_RING).map(|_| ep()).collect::<Result<Vec<_>, _>>()?;
    let mut due = 0;
    while storm.is_posting() {
        for ep in &eps {
            ep.connect(address, nobody, Some(storm.patience), &[])?;
        }
        due += 1;
        storm.until("an overflow", || Ok(storm.ledger.overflows_of(short.handle()) >= due))?;
        let over = |ep: &Ep| Ok::<_, anyhow::Error>(ep.status()?.state == EpState::Disconnected);
        storm.until("all rejects", || eps.iter().try_fold(true, |all, ep| Ok(all && over(ep)?)))?;
        for _ in 1..BEYOND_SHORTEST_RING {
            short.dequeue().context("an event that found room")?;
        }
        empty(&short)?;
        eps.iter().try_for_each(Ep::reset)?;
        let told = storm.ledger.overflows_of(short.handle());
        ensure!(told == due, "{told} overflows were reported, {due} occurred");
        count(&storm.conditions.overflows);
    }
    Ok(())
}
