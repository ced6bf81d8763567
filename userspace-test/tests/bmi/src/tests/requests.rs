// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Private data and connection requests that a server does not accept.

use super::pair::{
    Pair,
    CLIENT,
    SERVER, //
};
use crate::{
    bmi::engine::{
        Error,
        Hello,
        FEATURE_PULL, //
    },
    sim::{
        Request,
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
fn accepts(pair: &mut Pair, private_data: &[u8]) -> bool {
    let node = &mut pair.world.nodes[SERVER];
    node.make_room();
    node.engine.requested(&mut node.home, 1000, private_data);
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
