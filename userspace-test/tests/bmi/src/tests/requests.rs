// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Private data and connection requests that a server does not accept.

use super::pair::{
    Pair,
    CLIENT,
    SERVER, //
};
use crate::{
    bmi::engine::{
        ConnectRequest,
        Error,
        Hello,
        FEATURE_PULL, //
    },
    sim::{
        Request,
        Settings,
        SMALL, //
    },
};

fn hello() -> Hello {
    Hello {
        features: 0,
        message: 256,
        window: SMALL.window,
        rails: 1,
        rail: 0,
        instance: 9,
        session: 0,
        peer: 0,
    }
}

#[test]
fn private_data() {
    let valid = hello().encode();
    assert_eq!(Hello::decode(&valid), Ok(hello()));
    let padded = [&valid[..], &[0; 148]].concat();
    assert_eq!(Hello::decode(&padded), Ok(hello()));
    let with = |change: fn(&mut Hello)| {
        let mut hello = hello();
        change(&mut hello);
        Hello::decode(&hello.encode())
    };
    assert!(
        with(|hello| hello.features = FEATURE_PULL | (1 << 31)).is_ok(),
        "a later feature"
    );
    assert_eq!(with(|hello| hello.message = 95), Err(Error::Protocol));
    assert_eq!(with(|hello| hello.window.data = 0), Err(Error::Protocol));
    assert_eq!(with(|hello| hello.window.control = 3), Err(Error::Protocol));
    assert_eq!(with(|hello| hello.rail = 1), Err(Error::Protocol));
    for length in 0..valid.len() {
        assert_eq!(Hello::decode(&valid[..length]), Err(Error::Protocol));
    }
    let mut later = valid;
    later[4] = 2;
    assert_eq!(Hello::decode(&later), Err(Error::Version));
    let mut longer = valid;
    longer[5] = 56;
    assert!(
        Hello::decode(&longer).is_ok(),
        "more fields of a later release"
    );
    let mut foreign = valid;
    foreign[0] = 0;
    assert_eq!(Hello::decode(&foreign), Err(Error::Protocol));
}

/// Returns whether the server accepts a request with this private data.
pub fn accepts(pair: &mut Pair, private_data: &[u8]) -> bool {
    let node = &mut pair.world.nodes[SERVER];
    node.make_room();
    let request = ConnectRequest {
        number: 1000,
        device: 0,
    };
    node.engine.requested(&mut node.home, request, private_data);
    let requests = std::mem::take(&mut node.home.requests);
    match &requests[..] {
        [Request::Accept(1000, ..)] => true,
        [Request::Reject(1000)] => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_that_the_server_rejects() {
    let mut pair = Pair::new(1, SMALL);
    assert!(!accepts(&mut pair, &[0; 56]));
    let peer = pair.peers[SERVER].0.raw();
    // To join a session, a client has to know its number and to be its client.
    let joins = Hello {
        rails: 2,
        rail: 1,
        peer,
        ..hello()
    };
    assert!(!accepts(&mut pair, &joins.encode()));
    let instance = 1;
    assert!(!accepts(&mut pair, &Hello { instance, ..joins }.encode()));
    // A stranger that names the client's number gets a number of its own.
    let stranger = Hello { peer, ..hello() };
    assert!(accepts(&mut pair, &stranger.encode()));
    // So does one that knows the client's instance, but no number of a session.
    for session in [0, 7] {
        let thief = Hello {
            instance,
            session,
            ..stranger
        };
        assert!(accepts(&mut pair, &thief.encode()));
    }
    pair.transfer(CLIENT, 1, 1000, (1, 1));
}

/// Returns a hello of the client of a pair, for another request of its session.
pub fn of_session(pair: &Pair) -> Hello {
    let first = pair.world.established()[0];
    // What the server has answered.
    let answer = Hello::decode(&pair.world.ends[first][0].private_data);
    let answer = answer.expect("the answer of the server");
    Hello {
        instance: pair.world.nodes[CLIENT].settings.instance,
        session: answer.session,
        peer: answer.peer,
        ..hello()
    }
}

/// Settings of a client with one rail, and of a server with three.
fn one_and_three() -> [Settings; 2] {
    [SMALL, Settings { rails: 3, ..SMALL }]
}

#[test]
fn a_rail_joins_its_session_only() {
    let mut pair = Pair::with(1, one_and_three());
    let joins = Hello {
        rails: 3,
        rail: 1,
        ..of_session(&pair)
    };
    let wrong = [
        Hello {
            session: joins.session ^ 1,
            ..joins
        },
        Hello {
            instance: joins.instance ^ 8,
            ..joins
        },
        Hello {
            peer: joins.peer ^ 1,
            ..joins
        },
        Hello {
            rails: 4,
            rail: 3,
            ..joins
        },
    ];
    for hello in wrong {
        assert!(!accepts(&mut pair, &hello.encode()), "{hello:?}");
    }
    assert!(accepts(&mut pair, &joins.encode()));
}

#[test]
fn a_rail_joins_once() {
    let mut pair = Pair::with(1, one_and_three());
    let joins = Hello {
        rails: 3,
        rail: 1,
        ..of_session(&pair)
    };
    assert!(accepts(&mut pair, &joins.encode()));
    // It connects still.
    assert!(!accepts(&mut pair, &joins.encode()));
    assert!(accepts(&mut pair, &Hello { rail: 2, ..joins }.encode()));
    // And rails that are up.
    let three = Settings { rails: 3, ..SMALL };
    let mut pair = Pair::new(1, three);
    assert_eq!(pair.world.established().len(), 3);
    for rail in 1..3 {
        let joins = Hello {
            rails: 3,
            rail,
            ..of_session(&pair)
        };
        assert!(!accepts(&mut pair, &joins.encode()));
    }
    pair.transfer(CLIENT, 1, 20_000, (1, 1));
}

#[test]
fn a_request_replaces_the_one_before() {
    let mut pair = Pair::new(1, SMALL);
    let returns = of_session(&pair).encode();
    let numbers = [(); 3].map(|()| {
        let number = pair.world.given_up(SERVER);
        let node = &mut pair.world.nodes[SERVER];
        node.make_room();
        let request = ConnectRequest {
            number: number as u64,
            device: 0,
        };
        node.engine.requested(&mut node.home, request, &returns);
        number
    });
    // The session has not ended, so none is accepted yet.
    let rejected: Vec<_> = pair.world.nodes[SERVER]
        .home
        .requests
        .iter()
        .filter_map(|request| match request {
            Request::Reject(number) => Some(*number as usize),
            Request::Accept(number, ..) => panic!("{number} is accepted"),
            _ => None,
        })
        .collect();
    assert_eq!(rejected, numbers[..2]);
    pair.world.run();
    let accepted = numbers.map(|number| pair.world.ends[number][1].rail.is_some());
    assert_eq!(accepted, [false, false, true]);
}
