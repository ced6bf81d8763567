// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Cancellation at each step of a transfer.

use super::{
    data::{
        PULL,
        RAILS, //
    },
    pair::{
        pattern,
        Pair,
        CLIENT,
        SERVER, //
    },
};
use crate::{
    bmi::engine::{
        Error,
        Header,
        Kind,
        OpId, //
    },
    sim::{
        accesses,
        Settings,
        SMALL, //
    },
};

/// Length of messages that need several RDMA requests.
const LENGTH: usize = 20_000;

/// Cancels one side of a transfer after so many steps. Returns whether anything was left to do.
fn cancel_after(seed: u64, settings: Settings, cancelled: usize, steps: usize) -> bool {
    let mut pair = Pair::new(seed, settings);
    let bytes = pattern(1, LENGTH);
    let send = pair.send(CLIENT, 1, &bytes, 13);
    let receive = pair.receive(SERVER, 1, LENGTH, 11);
    for _ in 0..steps {
        if !pair.world.step() {
            return false;
        }
    }
    let id = if cancelled == CLIENT { send } else { receive };
    pair.cancel(cancelled, id);
    pair.world.run();
    // A partner that the operation had not met waits for another one.
    let (partner, other) = if cancelled == CLIENT {
        (SERVER, receive)
    } else {
        (CLIENT, send)
    };
    if !pair.is_complete(partner, other) {
        pair.cancel(partner, other);
        pair.world.run();
    }
    let sent = pair.error_of(CLIENT, send);
    let (result, received) = pair.result_of(SERVER, receive);
    assert_eq!(sent, result.error, "both sides agree");
    match sent {
        None => assert!(received == bytes),
        error => assert_eq!(error, Some(Error::Cancelled)),
    }
    assert_eq!(pair.world.violations, 0);
    // The connection and other operations go on.
    assert_eq!(pair.world.established().len(), usize::from(settings.rails));
    pair.transfer(CLIENT, 1, LENGTH, (1, 2));
    pair.transfer(SERVER, 1, LENGTH, (2, 1));
    true
}

#[test]
fn at_each_step() {
    for settings in [
        SMALL,
        PULL,
        RAILS,
        Settings {
            pull: true,
            ..RAILS
        },
    ] {
        for cancelled in [CLIENT, SERVER] {
            for seed in 0..4 {
                let mut steps = 0;
                while cancel_after(seed, settings, cancelled, steps) {
                    steps += 1;
                }
                assert!(steps > 5, "{steps}");
            }
        }
    }
}

#[test]
fn before_a_partner_exists() {
    for settings in [SMALL, PULL] {
        let mut pair = Pair::new(1, settings);
        let receive = pair.receive(SERVER, 1, LENGTH, 1);
        pair.world.run();
        pair.cancel(SERVER, receive);
        assert_eq!(pair.error_of(SERVER, receive), Some(Error::Cancelled));
        let send = pair.send(CLIENT, 1, &pattern(1, LENGTH), 1);
        pair.world.run();
        pair.cancel(CLIENT, send);
        pair.world.run();
        assert_eq!(pair.error_of(CLIENT, send), Some(Error::Cancelled));
        // A receive does not match the message that was withdrawn.
        pair.transfer(CLIENT, 1, 700, (1, 1));
    }
}

#[test]
fn one_of_many() {
    for settings in [SMALL, PULL] {
        let mut pair = Pair::new(2, settings);
        let sends: Vec<_> = (0..8)
            .map(|tag| pair.send(CLIENT, tag, &pattern(1, LENGTH), 1))
            .collect();
        let receives: Vec<_> = (0..8)
            .map(|tag| pair.receive(SERVER, tag, LENGTH, 1))
            .collect();
        pair.world.run_some(25);
        pair.cancel(SERVER, receives[3]);
        pair.world.run();
        for (tag, (send, receive)) in sends.into_iter().zip(receives).enumerate() {
            let errors = (pair.error_of(CLIENT, send), pair.error_of(SERVER, receive));
            assert!(tag == 3 || errors == (None, None));
        }
    }
}

#[test]
fn twice_is_once() {
    let mut pair = Pair::new(3, SMALL);
    let receive = pair.receive(SERVER, 1, LENGTH, 1);
    let send = pair.send(CLIENT, 1, &pattern(1, LENGTH), 1);
    for _ in 0..200 {
        pair.world.step();
        if !pair.is_complete(SERVER, receive) {
            pair.cancel(SERVER, receive);
        }
        if !pair.is_complete(CLIENT, send) {
            pair.cancel(CLIENT, send);
        }
    }
    pair.world.run();
    assert_eq!(pair.error_of(SERVER, receive), Some(Error::Cancelled));
    assert_eq!(pair.error_of(CLIENT, send), Some(Error::Cancelled));
}

#[test]
fn a_complete_operation_is_not_affected() {
    let mut pair = Pair::new(4, SMALL);
    let receive = pair.receive(SERVER, 1, 10, 1);
    let send = pair.send(CLIENT, 1, b"0123456789", 1);
    pair.world.run();
    pair.cancel(SERVER, receive);
    pair.cancel(CLIENT, send);
    assert_eq!(pair.error_of(SERVER, receive), None);
    assert_eq!(pair.error_of(CLIENT, send), None);
    // Its number is no longer valid.
    pair.cancel(CLIENT, send);
}

#[test]
fn a_peer_that_does_not_answer_is_not_waited_for() {
    for settings in [SMALL, PULL] {
        // The receiver has sent CTS, or the sender its offer, and the other side stops.
        let (stopped, waiting) = match settings.pull {
            true => (SERVER, CLIENT),
            false => (CLIENT, SERVER),
        };
        let mut pair = Pair::new(5, settings);
        let send = pair.send(CLIENT, 1, &pattern(1, LENGTH), 1);
        let receive = (!settings.pull).then(|| pair.receive(SERVER, 1, LENGTH, 1));
        pair.world.run_some(0);
        while pair.world.nodes[waiting].home.exposed.is_empty() {
            assert!(pair.world.step());
        }
        pair.world.nodes[stopped].frozen = true;
        pair.world.run();
        let id = receive.unwrap_or(send);
        pair.cancel(waiting, id);
        pair.world.run();
        assert!(
            !pair.is_complete(waiting, id),
            "the peer may still access the memory"
        );
        // The peer is silent for a shorter time than makes it dead.
        let settings = pair.world.nodes[waiting].settings;
        assert!(settings.patience > settings.silence);
        pair.world.tick(settings.patience);
        pair.world.run();
        assert_eq!(pair.error_of(waiting, id), Some(Error::Cancelled));
        assert!(pair.world.nodes[waiting].home.exposed.is_empty());
        pair.world.nodes[stopped].frozen = false;
        pair.world.run();
    }
}

/// Returns a pair whose server waits for the answer to a cancel of its receive.
fn waiting_for_an_answer() -> (Pair, OpId) {
    let settings = Settings {
        silence: 100_000,
        ..SMALL
    };
    let mut pair = Pair::new(6, settings);
    pair.send(CLIENT, 1, &pattern(1, LENGTH), 1);
    let receive = pair.receive(SERVER, 1, LENGTH, 1);
    while pair.world.nodes[SERVER].home.exposed.is_empty() {
        assert!(pair.world.step());
    }
    pair.world.nodes[CLIENT].frozen = true;
    pair.world.run();
    pair.cancel(SERVER, receive);
    pair.world.run();
    (pair, receive)
}

#[test]
fn a_second_cancellation_changes_nothing() {
    let (mut pair, receive) = waiting_for_an_answer();
    let messages = pair.world.ends[0][0].messages();
    let patience = pair.world.nodes[SERVER].settings.patience;
    pair.world.tick(patience / 2);
    pair.cancel(SERVER, receive);
    pair.world.run();
    assert_eq!(
        pair.world.ends[0][0].messages(),
        messages,
        "another REFUSE is sent"
    );
    // The time to wait is that of the first one.
    pair.world.tick(patience / 2);
    pair.world.run();
    assert_eq!(pair.error_of(SERVER, receive), Some(Error::Cancelled));
}

/// Returns how often operations are accessed until a cancelled offer is withdrawn, while so many
/// receives of the server wait for other messages. The offer is an arrival, or `matched` by a
/// receive whose CTS has not arrived.
fn accesses_of_a_cancel(receives: i32, matched: bool) -> u64 {
    let mut pair = Pair::new(7, SMALL);
    for tag in 0..receives {
        pair.receive(SERVER, 2 + tag, LENGTH, 1);
    }
    let send = pair.send(CLIENT, 1, &pattern(1, LENGTH), 1);
    pair.world.run();
    if matched {
        pair.receive(SERVER, 1, LENGTH, 1);
        while pair.world.nodes[SERVER].home.exposed.is_empty() {
            assert!(pair.world.step());
        }
    }
    pair.cancel(CLIENT, send);
    let before = accesses();
    pair.world.run();
    let after = accesses();
    assert_eq!(pair.error_of(CLIENT, send), Some(Error::Cancelled));
    after - before
}

#[test]
fn takes_as_long_with_many_operations() {
    for matched in [false, true] {
        let few = accesses_of_a_cancel(10, matched);
        assert_eq!(few, accesses_of_a_cancel(1000, matched), "{matched}");
    }
}

#[test]
fn names_an_offer_and_its_generation() {
    const OFFER: u64 = (2 << 32) | 5;
    let mut pair = Pair::new(8, SMALL);
    let connection = pair.world.established()[0];
    pair.world.nodes[CLIENT].frozen = true;
    let before = pair.world.nodes[SERVER].engine.census().0;
    for (kind, operation, arrivals) in [
        (Kind::Rts, OFFER, 1),
        (Kind::Cancel, (1 << 32) | 5, 1),
        (Kind::Cancel, (3 << 32) | 5, 1),
        (Kind::Cancel, (2 << 32) | 6, 1),
        (Kind::Cancel, 0, 1),
        (Kind::Cancel, OFFER, 0),
        (Kind::Cancel, OFFER, 0),
    ] {
        let header = Header {
            sequence: pair.world.ends[connection][1].received,
            length: 1000,
            operation,
            ..Header::new(kind)
        };
        pair.world.forge(connection, 1, header.encode().to_vec());
        pair.world.run();
        let after = pair.world.nodes[SERVER].engine.census().0;
        assert_eq!(after, before + arrivals, "{kind:?} {operation:#x}");
    }
}
