// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Passes events of DAT to the engine.

use crate::home::{Request, RECEIVE, SILENT};
use crate::state::State;
use libkdapl::{ConnectionEvent, Cr, DtoEvent, DtoStatus, Event, Handle, Type};
use std::sync::Arc;

/// Returns whether an event is that of a receive.
pub(crate) fn is_receive(event: &Event) -> bool {
    matches!(event, Event::Dto(dto) if dto.cookie & RECEIVE != 0)
}

impl State {
    /// Processes an event.
    pub(crate) fn process(&mut self, event: Event) {
        match event {
            Event::Dto(dto) if dto.cookie & RECEIVE != 0 => self.received(&dto),
            Event::Dto(dto) if dto.cookie == SILENT => {}
            Event::Dto(DtoEvent { cookie, status, .. }) | Event::RmrBind { cookie, status, .. } => {
                self.completed(cookie, status == DtoStatus::Success);
            }
            Event::ConnectionRequest { cr, .. } => self.requested(cr),
            Event::Connection { event: ConnectionEvent::Established, ep, .. } => {
                self.established(ep);
            }
            Event::Connection { event, ep, .. } => self.home.connection_ended(ep, event),
            // A software event wakes the waiter, and says nothing else.
            Event::Software { .. } | Event::Async { .. } | Event::Unknown { .. } => {}
        }
        self.settle();
    }

    fn received(&mut self, dto: &DtoEvent) {
        self.make_room();
        let Self { engine, home, .. } = self;
        let found = home.connections.of(dto.ep).filter(|_| dto.status == DtoStatus::Success);
        let Some((rail, ep)) = found else {
            return home.receives.flushed(dto.ep, dto.cookie);
        };
        // The earlier message may be stashed.
        let mut message = std::mem::take(&mut home.message);
        if Arc::get_mut(&mut message).is_none() {
            message = Arc::default();
        }
        let mut posted = Ok(());
        if let Some(bytes) = Arc::get_mut(&mut message) {
            posted = home.receives.take(ep, (dto.cookie, dto.length as usize), bytes);
        }
        home.message = message.clone();
        engine.arrived(home, rail, &message);
        let ended = |error: libkdapl::Error| error.kind() == Some(Type::INVALID_STATE);
        if posted.is_err_and(|error| !ended(error)) && home.receives.are_own() {
            // The peer may have sent a message for this receive.
            engine.disconnect(home, rail.peer);
        }
    }

    fn completed(&mut self, cookie: u64, success: bool) {
        let Self { engine, home, .. } = self;
        match home.requests.try_remove(cookie as usize) {
            Some(Request::Message(rail, cookie, slot)) => {
                home.free_slot(slot);
                engine.completed(home, rail, cookie, success);
            }
            Some(Request::Rdma(rail, cookie)) => engine.completed(home, rail, cookie, success),
            Some(Request::Bind(rail, op)) => home.bind_completed(rail, op, success),
            None => {}
        }
    }

    fn requested(&mut self, cr: Cr) {
        self.make_room();
        // Dropping a request rejects it.
        let Ok(query) = cr.query() else { return };
        let request = self.home.crs.insert(cr) as u64;
        self.engine.requested(&mut self.home, request, &query.private_data);
    }

    fn established(&mut self, ep: Handle) {
        let Some((rail, ep)) = self.home.connections.of(ep) else { return };
        let private_data = ep.private_data().unwrap_or_default();
        self.engine.established(&mut self.home, rail, &private_data);
    }
}
