// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Passes events of DAT to the engine.

use crate::{
    engine::{
        ConnectRequest,
        Connects, //
    },
    home::{
        EpId,
        Stashed,
        Step,
        Work,
        PRIVATE_DATA, //
    },
    state::State, //
};
use kdat::{
    Connection,
    Cr,
    Event,
    Operation, //
};

impl State {
    /// Processes an event of a device.
    pub(crate) fn process(&mut self, device: u8, event: Event) {
        match event {
            Event::Dto(dto) if dto.operation == Operation::Receive => self.received(device, dto),
            Event::Dto(dto) => {
                self.completed(dto.context, dto.is_success());
                self.home.free_message(device, dto.buffer);
            }
            Event::Bind { context, status } => self.completed(context, status == 0),
            Event::Request(request) => self.requested(device, request),
            Event::Connection(ep, Connection::Established) => self.established((device, ep)),
            Event::Connection(ep, event) => self.home.connection_ended((device, ep), event),
            _ => {}
        }
        self.settle();
    }

    fn received(&mut self, device: u8, dto: kdat::Completion) {
        let found = self.home.connections.rail_of((device, dto.ep));
        let succeeded = dto.is_success();
        let Some(rail) = found.filter(|_| succeeded && dto.buffer.is_some()) else {
            return self.home.flushed(device, dto.buffer);
        };
        let Some(buffer) = dto.buffer else { return };
        let replaced = self.home.replace_receive(rail);
        // Without room the message is lost, and so its connection has to end.
        if self.make_room().is_err() || !replaced {
            self.engine
                .disconnect(&mut Step::new(&mut self.home), rail.peer);
        }
        let Self { engine, home, .. } = self;
        let bytes = buffer.get(..dto.length).unwrap_or(&[]);
        let mut step = Step::with(home, bytes);
        engine.arrived(&mut step, rail, bytes);
        match step.without_copy {
            Some(op) => home.put_stashed(op, Some(Stashed::Buffer(buffer, dto.length))),
            None => home.give_back_receive(device, buffer),
        }
    }

    fn completed(&mut self, number: u64, success: bool) {
        let Self { engine, home, .. } = self;
        let Some(request) = home.requests.remove(number) else {
            return;
        };
        match request.work {
            Work::Last(cookie) => {
                engine.completed(&mut Step::new(home), request.rail, cookie, success);
            }
            Work::Earlier => {}
            Work::Bind(place) => home.bind_completed(request.rail, place, success),
        }
    }

    fn requested(&mut self, device: u8, request: Cr) {
        let mut data = [0; PRIVATE_DATA];
        // The drop of a request rejects it.
        let Ok(length) = request.private_data(&mut data) else {
            return;
        };
        if self.make_room().is_err() {
            return;
        }
        let Ok(number) = self.home.crs.insert((device, request)) else {
            return;
        };
        let data = data.get(..length).unwrap_or(&data);
        let request = ConnectRequest { number, device };
        self.engine
            .requested(&mut Step::new(&mut self.home), request, data);
    }

    fn established(&mut self, ep: EpId) {
        let Some(rail) = self.home.connections.rail_of(ep) else {
            return;
        };
        let mut data = [0; PRIVATE_DATA];
        let length = self.home.private_data(rail, &mut data);
        let data = data.get(..length).unwrap_or(&data);
        self.home.settle_route(rail);
        self.engine
            .established(&mut Step::new(&mut self.home), rail, data);
    }
}
