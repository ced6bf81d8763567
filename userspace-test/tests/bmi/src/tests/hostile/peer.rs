// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A hostile client.

use crate::{
    bmi::engine::{
        Header,
        Kind,
        OpId, //
    },
    sim::{
        Settings,
        SMALL, //
    },
    tests::pair::{
        Pair,
        CLIENT,
        SERVER, //
    },
};

/// A pair whose client is replaced by a hostile one after the connection.
pub struct Hostile {
    pub pair: Pair,
    pub connection: usize,
}

impl Hostile {
    pub fn new() -> Self {
        Self::with(SMALL)
    }

    pub fn with(settings: Settings) -> Self {
        Self::with_each([settings; 2])
    }

    pub fn with_each(settings: [Settings; 2]) -> Self {
        let mut pair = Pair::with(1, settings);
        let connection = pair.world.established()[0];
        // The honest engine sends nothing more.
        pair.world.nodes[CLIENT].frozen = true;
        Self { pair, connection }
    }

    /// Returns a header with the next sequence number.
    pub fn header(&self, kind: Kind) -> Header {
        let end = &self.pair.world.ends[self.connection][1];
        Header {
            sequence: end.received,
            ..Header::new(kind)
        }
    }

    pub fn send(&mut self, header: Header, body: &[u8]) {
        let bytes = [&header.encode()[..], body].concat();
        self.pair.world.forge(self.connection, 1, bytes);
        self.pair.world.run();
    }

    pub fn is_up(&self) -> bool {
        !self.pair.world.established().is_empty()
    }

    /// Checks that the session has ended, and that the client can begin another one.
    pub fn expect_end(mut self) {
        assert!(!self.is_up(), "the message is accepted");
        self.pair.world.nodes[CLIENT].frozen = false;
        self.pair.world.run();
        self.pair.introduce();
        self.pair.transfer(CLIENT, 1, 1000, (1, 1));
    }

    /// Lets the server receive a message of 1000 bytes, up to CTS. Returns the receive and its
    /// number in messages.
    pub fn cleared(&mut self) -> (OpId, u64) {
        let receive = self.pair.receive(SERVER, 5, 1000, 1);
        let offer = Header {
            tag: 5,
            length: 1000,
            operation: 77,
            ..self.header(Kind::Rts)
        };
        self.send(offer, &[]);
        assert!(!self.pair.world.nodes[SERVER].home.exposed.is_empty());
        (receive, receive.0.raw())
    }

    pub fn done(&self, operation: u64, range: (u64, u64)) -> Header {
        Header {
            peers_operation: operation,
            offset: range.0,
            length: range.1,
            ..self.header(Kind::Done)
        }
    }
}
