// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transfers that the peer ends, or describes wrongly.

use super::{
    data::PULL,
    pair::{
        pattern,
        Pair,
        CLIENT,
        SERVER, //
    },
};
use crate::{
    bmi::engine::{
        encode_descriptor,
        Descriptor,
        Error,
        Header,
        Kind,
        OpId,
        Rails, //
    },
    sim::SMALL,
};

/// Length of a message that needs more requests than the send queue takes.
const LENGTH: usize = 20_000;

/// A pair whose server moves a message by RDMA, and whose client is stopped then.
struct Amid {
    pair: Pair,
    connection: usize,
    /// The server's operation, and that of the client.
    here: OpId,
    there: OpId,
}

impl Amid {
    /// The server sends, or with `pull` receives by reads.
    fn new(pull: bool) -> Self {
        let mut pair = Pair::new(1, if pull { PULL } else { SMALL });
        let connection = pair.world.established()[0];
        let bytes = pattern(1, LENGTH);
        let (here, there) = match pull {
            true => {
                let receive = pair.receive(SERVER, 1, LENGTH, 11);
                (receive, pair.send(CLIENT, 1, &bytes, 4))
            }
            false => {
                let receive = pair.receive(CLIENT, 1, LENGTH, 11);
                (pair.send(SERVER, 1, &bytes, 13), receive)
            }
        };
        while pair.world.rdma == 0 || pair.world.ends[connection][1].messages() > 0 {
            assert!(pair.world.step(), "no transfer begins");
        }
        pair.world.nodes[CLIENT].frozen = true;
        Self {
            pair,
            connection,
            here,
            there,
        }
    }

    /// Lets the client end the transfer by a message. Returns the error of the server's operation,
    /// and how many requests the server has posted since then.
    fn end(mut self, header: Header) -> (Option<Error>, usize) {
        let posted = self.pair.world.rdma;
        let sequence = self.pair.world.ends[self.connection][1].received;
        let bytes = Header { sequence, ..header }.encode().to_vec();
        self.pair.world.forge_now(self.connection, 1, bytes);
        self.pair.world.run();
        let more = self.pair.world.rdma - posted;
        // So that it takes DONE.
        self.pair.world.nodes[CLIENT].frozen = false;
        self.pair.world.run();
        (self.pair.error_of(SERVER, self.here), more)
    }
}

#[test]
fn a_refused_send_stops() {
    let amid = Amid::new(false);
    let refuse = Header {
        tag: Error::Cancelled.errno(),
        peers_operation: amid.here.0.raw(),
        ..Header::new(Kind::Refuse)
    };
    assert_eq!(amid.end(refuse), (Some(Error::Cancelled), 0));
}

#[test]
fn a_receive_does_not_read_on_after_a_cancel() {
    let amid = Amid::new(true);
    let cancel = Header {
        operation: amid.there.0.raw(),
        ..Header::new(Kind::Cancel)
    };
    assert_eq!(amid.end(cancel), (Some(Error::Cancelled), 0));
}

#[test]
fn a_cts_clears_the_whole_message() {
    for length in [999_u32, 1001] {
        let mut pair = Pair::new(1, SMALL);
        let connection = pair.world.established()[0];
        pair.world.nodes[CLIENT].frozen = true;
        let send = pair.send(SERVER, 1, &pattern(1, 1000), 1);
        pair.world.run();
        let descriptor = encode_descriptor(Descriptor {
            address: 1 << 32,
            length,
            context: 1,
            rails: Rails::ALL,
        });
        let cts = Header {
            sequence: pair.world.ends[connection][1].received,
            descriptors: 1,
            length: length.into(),
            operation: 5,
            peers_operation: send.0.raw(),
            ..Header::new(Kind::Cts)
        };
        let bytes = [&cts.encode()[..], &descriptor].concat();
        pair.world.forge_now(connection, 1, bytes);
        assert_eq!(pair.world.rdma, 0, "bytes are written");
        pair.world.nodes[CLIENT].frozen = false;
        pair.world.run();
        assert!(pair.world.established().is_empty(), "the CTS is accepted");
        assert_eq!(pair.error_of(SERVER, send), Some(Error::Protocol));
    }
}
