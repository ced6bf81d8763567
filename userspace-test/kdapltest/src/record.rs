// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Recording of the events of one side, with an explanation of each.

use libkdapl::{ConnectionEvent, DtoOperation, DtoStatus, Event};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A recorded event.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Line {
    /// Time since the start of the recording in microseconds.
    pub at_us: u64,
    pub event: String,
    pub meaning: String,
}

/// Maximum number of recorded events, so that a long run does not exhaust the memory.
const LINES_MAX: usize = 1000;

/// Records the events of one connection, if requested.
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

    /// Records the connection request, which arrived on the listener's event queue.
    pub fn requested(&mut self, private_data: usize) {
        if let Some(lines) = &mut self.lines {
            lines.push(Line {
                at_us: 0,
                event: format!("CONNECTION_REQUEST, {private_data} bytes of private data"),
                meaning: "a client wants to connect".into(),
            });
        }
    }

    /// Returns the recorded events. The last line has the number of events that were not recorded.
    pub fn into_lines(self) -> Vec<Line> {
        let at_us = self.start.elapsed().as_micros() as u64;
        let mut lines = self.lines.unwrap_or_default();
        if self.left_out > 0 {
            let event = format!("{} more events", self.left_out);
            lines.push(Line { at_us, event, meaning: "not recorded".into() });
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
            (DtoOperation::Send, DtoStatus::Success) if dto.length == 0 => {
                "the peer has received the farewell"
            }
            (DtoOperation::Receive, DtoStatus::Success) if dto.length == 0 => {
                "the farewell: the client has finished"
            }
            (DtoOperation::Send, DtoStatus::Success) => "the peer has received the message",
            (DtoOperation::Receive, DtoStatus::Success) => "a message was received",
            (DtoOperation::RdmaWrite, DtoStatus::Success) => {
                "the data are in the peer's memory; no event there"
            }
            (DtoOperation::RdmaRead, DtoStatus::Success) => {
                "the peer's data are in local memory; no event there"
            }
            (_, DtoStatus::Flushed) => "not executed, because the connection ended",
            _ => "the operation failed",
        },
        Event::RmrBind { status: DtoStatus::Success, .. } => "an RMR is bound or unbound",
        Event::RmrBind { .. } => "the bind failed",
        Event::ConnectionRequest { .. } => "a client wants to connect",
        Event::Connection { event, .. } => match event {
            ConnectionEvent::Established => "the connection is established",
            ConnectionEvent::Disconnected => "the connection has ended; always the last event",
            ConnectionEvent::Broken => "the connection failed",
            ConnectionEvent::PeerRejected => "the peer rejected the connection",
            ConnectionEvent::NonPeerRejected => "there is no such service point",
            ConnectionEvent::TimedOut => "the peer did not respond in time",
            ConnectionEvent::Unreachable => "there is no route to the peer",
            ConnectionEvent::AcceptCompletionError => "the client disconnected during the accept",
            ConnectionEvent::Other(_) => "unknown",
        },
        Event::Async { .. } => "the device reported an error",
        Event::Software { .. } => "posted by this program",
        Event::Unknown { .. } => "unknown",
    }
}
