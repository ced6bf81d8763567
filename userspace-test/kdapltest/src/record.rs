// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The events that one side saw, in order, with a word for a newcomer.

use libkdapl::{ConnectionEvent, DtoOperation, DtoStatus, Event};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// One event as it is shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Microseconds since the recording began.
    pub at_us: u64,
    pub event: String,
    pub meaning: String,
}

/// More of one connection nobody reads, and a long run must not fill the memory with them.
const LINES_MAX: usize = 1000;

/// Collects the events of one connection, if anybody wants to see them.
pub struct Recorder {
    start: Instant,
    lines: Option<Vec<Line>>,
    left_out: u64,
}

impl Recorder {
    pub fn new(wanted: bool) -> Self {
        Self { start: Instant::now(), lines: wanted.then(Vec::new), left_out: 0 }
    }

    pub fn see(&mut self, event: &Event) {
        let Some(lines) = &mut self.lines else { return };
        if lines.len() < LINES_MAX {
            let at_us = self.start.elapsed().as_micros() as u64;
            lines.push(Line { at_us, event: short(event), meaning: meaning(event).into() });
        } else {
            self.left_out += 1;
        }
    }

    /// The request that began it all, which came on the listener's queue.
    pub fn requested(&mut self, private_data: usize) {
        if let Some(lines) = &mut self.lines {
            lines.push(Line {
                at_us: 0,
                event: format!("CONNECTION_REQUEST, {private_data} bytes of private data"),
                meaning: "a client wants to connect; we accept".into(),
            });
        }
    }

    /// What was collected; the last line says how many events have none.
    pub fn into_lines(self) -> Vec<Line> {
        let at_us = self.start.elapsed().as_micros() as u64;
        let mut lines = self.lines.unwrap_or_default();
        if self.left_out > 0 {
            let event = format!("{} more", self.left_out);
            lines.push(Line { at_us, event, meaning: "not kept".into() });
        }
        lines
    }
}

fn short(event: &Event) -> String {
    match event {
        Event::Dto(dto) if dto.status == DtoStatus::Success => {
            format!("DTO_COMPLETION {}, {} bytes", dto.operation, dto.length)
        }
        Event::Dto(dto) => format!("DTO_COMPLETION {} {}", dto.operation, dto.status),
        other => other.to_string(),
    }
}

fn meaning(event: &Event) -> &'static str {
    match event {
        Event::Dto(dto) => match (dto.operation, dto.status) {
            (DtoOperation::Send, DtoStatus::Success) => "the peer has our message",
            (DtoOperation::Receive, DtoStatus::Success) => "a message is in our buffer",
            (DtoOperation::RdmaWrite, DtoStatus::Success) => {
                "our bytes are in the peer's memory; it saw no event"
            }
            (DtoOperation::RdmaRead, DtoStatus::Success) => {
                "the peer's bytes are in our memory; it saw no event"
            }
            (_, DtoStatus::Flushed) => "given back unused: the connection is ending",
            _ => "the operation failed",
        },
        Event::ConnectionRequest { .. } => "a client wants to connect; we accept",
        Event::Connection { event, .. } => match event {
            ConnectionEvent::Established => "the connection is up",
            ConnectionEvent::Disconnected => "the connection is down, always the last event",
            ConnectionEvent::Broken => "the connection failed",
            ConnectionEvent::PeerRejected => "the peer said no",
            ConnectionEvent::NonPeerRejected => "nobody listens there",
            ConnectionEvent::TimedOut => "no answer in time",
            ConnectionEvent::Unreachable => "no way leads there",
            ConnectionEvent::AcceptCompletionError => "the client went away while we accepted",
            ConnectionEvent::Other(_) => "unknown",
        },
        Event::Async { .. } => "something is wrong with the device",
        Event::Software { .. } => "our own event",
    }
}
