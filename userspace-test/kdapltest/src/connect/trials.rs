// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections of `kdapltest connect`, and the measurement of their times.

use super::{Outcome, DTOS};
use crate::cli::ConnectArgs;
use crate::client::Target;
use crate::device;
use crate::protocol::{Mode, Request};
use crate::side::{lost, successful};
use anyhow::{anyhow, bail, ensure, Error, Result};
use libkdapl::{
    Buffer, Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, Evd,
    EvdFlags, Event, Handle, Lmr, Privileges, Pz,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use toolkit::limit::Limit;
use toolkit::progress::Progress;
use toolkit::report::Times;
use toolkit::stop::{self, Stopped};

/// A connection in progress.
struct Trial {
    ep: Ep,
    slot: u32,
    began: Instant,
    received: bool,
    sent: bool,
    /// This side has disconnected.
    closing: bool,
}

/// Effect of an event on its connection.
#[derive(PartialEq, Eq)]
enum Step {
    Going,
    /// The connection was established, and its data were transferred.
    Used,
    Ended,
}

/// Starts the clock. Yields before, so that a server on this machine can finish earlier work. The
/// system call also marks the start of the measurement in a trace.
fn start_clock() -> Instant {
    std::thread::yield_now();
    Instant::now()
}

fn stop_clock(start: Instant) -> Duration {
    let time = start.elapsed();
    std::thread::yield_now();
    time
}

/// Returns whether an event ends an established connection.
fn is_end(event: ConnectionEvent) -> bool {
    matches!(event, ConnectionEvent::Disconnected | ConnectionEvent::Broken)
}

pub struct Trials<'a> {
    target: &'a Target,
    args: &'a ConnectArgs,
    pz: Pz,
    evd: Evd,
    lmr: Lmr,
    run: u64,
    open: HashMap<Handle, Trial>,
    free_slots: Vec<u32>,
    /// Number of connections that were measured, and the time until the last of them.
    made: u32,
    time: Duration,
    calls: u64,
    connect: Times,
    whole: Times,
}

impl<'a> Trials<'a> {
    pub fn new(target: &'a Target, args: &'a ConnectArgs) -> Result<Self> {
        let ia = &target.ia;
        let slots = if args.ready { args.connections } else { args.parallel };
        let pz = ia.create_pz()?;
        // Two DTOs, ESTABLISHED and DISCONNECTED of each connection.
        let evd = ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 4 * slots as i32)?;
        let memory = 2 * (slots * args.data) as usize;
        let lmr = ia.register(&pz, Buffer::new(memory)?, Privileges::ALL)?;
        Ok(Self {
            target,
            args,
            pz,
            evd,
            lmr,
            run: fastrand::u64(..),
            open: HashMap::new(),
            free_slots: (0..slots).rev().collect(),
            made: 0,
            time: Duration::ZERO,
            calls: 0,
            connect: Times::new()?,
            whole: Times::new()?,
        })
    }

    pub fn measure(&mut self) -> Result<Outcome> {
        let outcome = if self.args.ready { self.connect_ready() } else { self.connect_anew() };
        stop::forgive(outcome.map_err(|error| self.explain(error)))?;
        let (made, seconds) = (f64::from(self.made), self.time.as_secs_f64());
        Ok(Outcome {
            server: self.target.address.to_string(),
            device: self.target.device.clone(),
            connections: self.made,
            stopped: stop::requested(),
            parallel: self.args.parallel,
            data: self.args.data,
            ready: self.args.ready,
            seconds,
            connections_per_second: if seconds > 0.0 { made / seconds } else { 0.0 },
            connect_us: self.connect.latency(),
            whole_us: (!self.args.ready).then(|| self.whole.latency()),
            calls_per_connection: self.calls as f64 / made.max(1.0),
        })
    }

    /// Explains a call that failed because the server or the device is gone. The event of the
    /// connection follows.
    fn explain(&mut self, error: Error) -> Error {
        if !error.is::<libkdapl::Error>() {
            return error;
        }
        loop {
            match self.evd.wait(Some(stop::SLICE), 1) {
                Ok((Event::Connection { event, .. }, _)) if is_end(event) => {
                    return lost(&self.target.ia, &self.target.peer(), event);
                }
                Ok(_) => {}
                Err(_) => return device::removed_soon(&self.target.ia).unwrap_or(error),
            }
        }
    }

    /// Creates an endpoint for each connection and frees it afterwards. After a stop was requested,
    /// the open connections are the last.
    fn connect_anew(&mut self) -> Result<()> {
        let progress = Progress::new("connect", Some(self.args.connections.into()));
        let start = start_clock();
        let (mut begun, limit) = (0, Limit::new(self.args.connections.into(), None));
        loop {
            while !limit.reached(begun) && self.open.len() < self.args.parallel as usize {
                let began = Instant::now();
                let trial = self.make()?;
                self.call(Trial { began, ..trial })?;
                begun += 1;
            }
            if self.open.is_empty() {
                self.time = stop_clock(start);
                return Ok(());
            }
            let (handle, step) = self.step()?;
            match step {
                Step::Going => {}
                Step::Used => self.disconnect(handle)?,
                Step::Ended => {
                    self.free(handle)?;
                    self.made += 1;
                    self.time = start.elapsed();
                    progress.add(1);
                }
            }
        }
    }

    /// Creates all endpoints before the measurement. All connections stay established until the
    /// end.
    fn connect_ready(&mut self) -> Result<()> {
        let progress = Progress::new("connect", Some(self.args.connections.into()));
        let mut ready: Vec<_> =
            (0..self.args.connections).map(|_| self.make()).collect::<Result<_>>()?;
        let start = start_clock();
        self.calls = 0;
        let mut waiting = ready.drain(..);
        while self.made < self.args.connections && !stop::requested() {
            while self.open.len() - (self.made as usize) < self.args.parallel as usize {
                let Some(trial) = waiting.next() else { break };
                self.call(Trial { began: Instant::now(), ..trial })?;
            }
            let (_, step) = self.step()?;
            if step == Step::Used {
                self.made += 1;
                self.time = start.elapsed();
                progress.add(1);
            }
        }
        self.time = stop_clock(start);
        let calls = self.calls;
        if !stop::requested() {
            self.end_all()?;
        }
        self.calls = calls;
        Ok(())
    }

    fn end_all(&mut self) -> Result<()> {
        let handles: Vec<_> = self.open.keys().copied().collect();
        for handle in handles {
            self.disconnect(handle)?;
            while self.step()? != (handle, Step::Ended) {}
            self.free(handle)?;
        }
        Ok(())
    }

    /// Creates an endpoint and posts a receive for the data that the server sends back.
    fn make(&mut self) -> Result<Trial> {
        let Some(slot) = self.free_slots.pop() else { bail!("more connections than slots") };
        let attr = EpAttr { max_recv_dtos: DTOS, max_request_dtos: DTOS, ..Default::default() };
        let evd = &self.evd;
        self.calls += 1;
        let ep = self.target.ia.create_ep(&self.pz, evd, evd, evd, Some(attr))?;
        if self.args.data > 0 {
            self.calls += 1;
            let segment = self.lmr.segment(self.offset(slot), self.args.data as usize);
            ep.post_recv(&[segment], 0, CompletionFlags::default())?;
        }
        let quiet = self.args.data == 0;
        Ok(Trial { ep, slot, began: Instant::now(), received: quiet, sent: quiet, closing: false })
    }

    fn offset(&self, slot: u32) -> usize {
        2 * (slot * self.args.data) as usize
    }

    fn call(&mut self, trial: Trial) -> Result<()> {
        let request = Request {
            mode: Mode::Connect,
            poll: false,
            depth: 1,
            message_size: self.args.data,
            region_size: 0,
            pause_us: 0,
            run: self.run,
            connections: self.args.connections,
        };
        self.calls += 1;
        self.target.call(&trial.ep, &request.encode())?;
        self.open.insert(trial.ep.handle(), trial);
        Ok(())
    }

    /// Waits for an event and handles it.
    fn step(&mut self) -> Result<(Handle, Step)> {
        let event = self.next()?;
        let handle = match &event {
            Event::Connection { ep, .. } => *ep,
            Event::Dto(dto) => dto.ep,
            other => bail!("unexpected event while connecting: {other}"),
        };
        let Some(mut trial) = self.open.remove(&handle) else {
            bail!("event of a freed endpoint: {event}");
        };
        let step = self.advance(&mut trial, &event);
        self.open.insert(handle, trial);
        Ok((handle, step?))
    }

    fn advance(&mut self, trial: &mut Trial, event: &Event) -> Result<Step> {
        match event {
            Event::Connection { event: ConnectionEvent::Established, .. } => {
                self.connect.add(trial.began.elapsed());
                self.target.reached();
                if self.args.data > 0 {
                    self.send(trial)?;
                    return Ok(Step::Going);
                }
            }
            Event::Connection { event: ConnectionEvent::Disconnected, .. } if trial.closing => {
                return Ok(Step::Ended);
            }
            Event::Connection { event, .. } if is_end(*event) => {
                return Err(lost(&self.target.ia, &self.target.peer(), *event));
            }
            // The event that ends the connection follows.
            Event::Dto(dto) if dto.status != DtoStatus::Success => return Ok(Step::Going),
            Event::Connection { .. } => return Err(self.target.not_connected(&trial.ep, event)),
            event => self.transferred(trial, event)?,
        }
        Ok(if trial.received && trial.sent { Step::Used } else { Step::Going })
    }

    fn send(&mut self, trial: &Trial) -> Result<()> {
        let length = self.args.data as usize;
        let offset = self.offset(trial.slot) + length;
        self.lmr.buffer().write(offset, &crate::pattern::bytes(trial.slot.into(), length));
        self.calls += 1;
        let segment = self.lmr.segment(offset, length);
        Ok(trial.ep.post_send(&[segment], 0, CompletionFlags::default())?)
    }

    fn transferred(&self, trial: &mut Trial, event: &Event) -> Result<()> {
        let dto = successful(event)?;
        if dto.operation == DtoOperation::Send {
            trial.sent = true;
            return Ok(());
        }
        let length = self.args.data as usize;
        let back = self.lmr.buffer().to_vec(self.offset(trial.slot), length);
        let wrong = crate::pattern::first_wrong(trial.slot.into(), &back);
        ensure!(dto.length == length as u64, "received {} of {length} bytes", dto.length);
        ensure!(wrong.is_none(), "byte {wrong:?} of the received data is wrong");
        trial.received = true;
        Ok(())
    }

    fn disconnect(&mut self, handle: Handle) -> Result<()> {
        let trial = self.open.get_mut(&handle).ok_or_else(|| anyhow!("no endpoint {handle}"))?;
        trial.closing = true;
        self.calls += 1;
        Ok(trial.ep.disconnect(Close::Graceful)?)
    }

    fn free(&mut self, handle: Handle) -> Result<()> {
        let trial = self.open.remove(&handle).ok_or_else(|| anyhow!("no endpoint {handle}"))?;
        self.calls += 1;
        trial.ep.free()?;
        self.whole.add(trial.began.elapsed());
        self.free_slots.push(trial.slot);
        Ok(())
    }

    fn next(&mut self) -> Result<Event> {
        let deadline = Instant::now() + self.target.timeout;
        loop {
            ensure!(!stop::overdue(), Stopped);
            self.calls += 1;
            match self.evd.wait(Some(stop::SLICE), 1) {
                Ok((event, _)) => return Ok(event),
                Err(error) if error.is_timeout() || error.is_interrupted() => {}
                Err(error) => return Err(error.into()),
            }
            ensure!(
                Instant::now() < deadline,
                "nothing came from {} for {:?}: it may be suspended or busy; --timeout waits longer",
                self.target.peer().name,
                self.target.timeout
            );
        }
    }
}
