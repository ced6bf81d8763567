// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Passes events of DAT to the engine.

use crate::bmi::engine::{ConnectRequest, Connects};
use crate::home::{EpId, Request, Sent, RECEIVE, SILENT};
use crate::state::State;
use libkdapl::{ConnectionEvent, Cr, DtoEvent, DtoStatus, Event, Type};
use std::sync::Arc;

/// Returns whether an event is that of a receive.
pub(crate) fn is_receive(event: &Event) -> bool {
    matches!(event, Event::Dto(dto) if dto.cookie & RECEIVE != 0)
}

impl State {
    /// Processes an event of a device.
    pub(crate) fn process(&mut self, device: u8, event: Event) {
        match event {
            Event::Dto(dto) if dto.cookie & RECEIVE != 0 => self.received(device, &dto),
            Event::Dto(dto) if dto.cookie == SILENT => {}
            Event::Dto(DtoEvent { cookie, status, .. }) | Event::RmrBind { cookie, status, .. } => {
                self.completed(cookie, status == DtoStatus::Success);
            }
            Event::ConnectionRequest { cr, .. } => self.requested(device, cr),
            Event::Connection { event: ConnectionEvent::Established, ep, .. } => {
                self.established((device, ep));
            }
            Event::Connection { event, ep, .. } => {
                self.home.connection_ended((device, ep), event);
            }
            // A software event wakes the waiter, and says nothing else.
            Event::Software { .. } | Event::Async { .. } | Event::Unknown { .. } => {}
        }
        self.settle();
    }

    fn received(&mut self, device: u8, dto: &DtoEvent) {
        self.make_room();
        let Self { engine, home, .. } = self;
        let found = home.connections.of((device, dto.ep));
        let receives = &mut home.devices.get_mut(device).receives;
        let found = found.filter(|_| dto.status == DtoStatus::Success);
        let Some((rail, ep)) = found else {
            return receives.flushed(dto.ep, dto.cookie);
        };
        // The earlier message may be stashed.
        let mut message = std::mem::take(&mut home.message);
        if Arc::get_mut(&mut message).is_none() {
            message = Arc::default();
        }
        let mut posted = Ok(());
        if let Some(bytes) = Arc::get_mut(&mut message) {
            posted = receives.take(ep, (dto.cookie, dto.length as usize), bytes);
        }
        let are_own = receives.are_own();
        home.message = message.clone();
        engine.arrived(home, rail, &message);
        let ended = |error: libkdapl::Error| error.kind() == Some(Type::INVALID_STATE);
        if posted.is_err_and(|error| !ended(error)) && are_own {
            // The peer may have sent a message for this receive.
            engine.disconnect(home, rail.peer);
        }
    }

    fn completed(&mut self, cookie: u64, success: bool) {
        let Self { engine, home, .. } = self;
        match home.requests.try_remove(cookie as usize) {
            Some(Request::Messages(rail, messages)) => {
                home.messages_ended(&messages);
                for Sent { cookie, .. } in messages {
                    engine.completed(home, rail, cookie, success);
                }
            }
            Some(Request::Rdma(rail, cookie)) => engine.completed(home, rail, cookie, success),
            Some(Request::Bind(rail, op)) => home.bind_completed(rail, op, success),
            None => {}
        }
    }

    fn requested(&mut self, device: u8, cr: Cr) {
        self.make_room();
        // Dropping a request rejects it.
        let Ok(query) = cr.query() else { return };
        let number = self.home.crs.insert((device, cr)) as u64;
        let request = ConnectRequest { number, device };
        self.engine.requested(&mut self.home, request, &query.private_data);
    }

    fn established(&mut self, ep: EpId) {
        let Some((rail, ep)) = self.home.connections.of(ep) else { return };
        let private_data = ep.private_data().unwrap_or_default();
        self.home.settle_route(rail);
        self.engine.established(&mut self.home, rail, &private_data);
    }
}
