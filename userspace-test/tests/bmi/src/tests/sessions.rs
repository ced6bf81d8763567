// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Sessions: refused, broken, without room, many.

use super::{
    data::RAILS,
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
        PeerId,
        Phase,
        Post,
        Role, //
    },
    sim::{
        Buffers,
        EndState,
        Settings,
        World,
        SMALL, //
    },
};

/// Returns the phase of a node's session.
pub fn phase(pair: &Pair, node: usize) -> Option<Phase> {
    pair.world.nodes[node].engine.phase(pair.peers[node])
}

#[test]
fn a_refused_connection_fails_its_operations() {
    let mut world = World::new(1, &[SMALL; 2]);
    world.nodes[1].refuses = true;
    let peer = world.address(0, 1);
    for role in [Role::Send, Role::Receive, Role::SendUnexpected] {
        world.nodes[0]
            .post(role, peer, 1, Buffers::divide(b"12", 1))
            .expect("an operation");
    }
    assert!(
        world.nodes[0].take().is_empty(),
        "a post does not wait for the connection"
    );
    world.run();
    let results = world.nodes[0].take();
    assert_eq!(results.len(), 3);
    assert!(results
        .iter()
        .all(|result| result.0.error == Some(Error::Refused)));
    // The address stays valid.
    world.nodes[1].refuses = false;
    world.nodes[0]
        .post(Role::Send, peer, 1, Buffers::divide(b"12", 1))
        .expect("an operation");
    world.run();
    assert_eq!(world.nodes[0].take()[0].0.error, None);
}

#[test]
fn operations_before_the_connection_can_be_cancelled() {
    let mut world = World::new(1, &[SMALL; 2]);
    world.nodes[1].frozen = true;
    let peer = world.address(0, 1);
    let id = world.nodes[0].post(Role::Send, peer, 1, Buffers::divide(b"12", 1));
    world.run();
    let node = &mut world.nodes[0];
    node.engine
        .cancel(&mut node.home, id.expect("an operation"));
    assert_eq!(node.take()[0].0.error, Some(Error::Cancelled));
}

#[test]
fn a_rail_that_is_not_established_is_not_missed() {
    let mut lost_ones = 0;
    for seed in 0..30 {
        let mut world = World::new(seed, &[RAILS; 2]);
        let peer = world.address(CLIENT, SERVER);
        let post = |world: &mut World| {
            let buffers = Buffers::divide(b"bytes", 1);
            let node = &mut world.nodes[CLIENT];
            node.post(Role::SendUnexpected, peer, 1, buffers)
                .expect("a send");
        };
        post(&mut world);
        // Another rail than the first one breaks while it is being established.
        while world.ends.len() < 2 {
            assert!(world.step());
        }
        world.run_some(seed as usize % 6);
        let lost = world.ends.len() - 1;
        // If a side has seen it established, the session breaks.
        if world.ends[lost]
            .iter()
            .any(|end| end.state != EndState::Waiting)
        {
            continue;
        }
        lost_ones += 1;
        world.break_connection(lost);
        world.run();
        post(&mut world);
        world.run();
        let results = world.nodes[CLIENT].take();
        assert_eq!(results.len(), 2);
        assert!(
            results.iter().all(|result| result.0.error.is_none()),
            "{seed}: {results:?}"
        );
        assert_eq!(world.established().len(), 3);
    }
    assert!(lost_ones > 5, "{lost_ones}");
}

#[test]
fn rdma_that_cannot_be_posted_ends_the_session() {
    for pull in [false, true] {
        let mut pair = Pair::new(3, Settings { pull, ..RAILS });
        for node in &mut pair.world.nodes {
            node.home.no_rdma = true;
        }
        let send = pair.send(CLIENT, 1, &pattern(1, 20_000), 1);
        let receive = pair.receive(SERVER, 1, 20_000, 1);
        pair.world.run();
        assert_eq!(pair.error_of(CLIENT, send), Some(Error::Reset));
        assert_eq!(pair.error_of(SERVER, receive), Some(Error::Reset));
    }
}

#[test]
fn arrivals_have_room_when_posts_have_none() {
    let mut pair = Pair::new(7, SMALL);
    let node = &mut pair.world.nodes[SERVER];
    let post = Post {
        role: Role::Receive,
        peer: pair.peers[SERVER],
        tag: 77,
        length: 0,
        fragments: 1,
        context: 0,
        user: 0,
    };
    while node.engine.post(post).is_ok() {}
    for number in 0..10 {
        pair.send(CLIENT, 1, &pattern(number, 100), 1);
    }
    pair.world.run();
    let kept = pair.world.nodes[SERVER].home.stash.len();
    assert!(
        kept >= usize::from(SMALL.window.data) - 1,
        "{kept} messages are kept"
    );
    assert_eq!(phase(&pair, SERVER), Some(Phase::Up));
}

#[test]
fn addresses_are_freed() {
    let mut pair = Pair::new(13, RAILS);
    for node in [CLIENT, SERVER] {
        let peer = pair.peers[node];
        let node = &mut pair.world.nodes[node];
        node.engine.release(&mut node.home, peer);
    }
    pair.world.run();
    assert!(pair
        .world
        .nodes
        .iter()
        .all(|node| node.engine.census() == (0, 0, 0)));
    let stale = pair.try_post(CLIENT, Role::Send, 1, Buffers::divide(b"", 1));
    assert_eq!(stale, Err(Error::Invalid));
}

#[test]
fn a_client_without_references_can_still_ask() {
    let mut pair = Pair::new(14, SMALL);
    let peer = pair.peers[SERVER];
    let node = &mut pair.world.nodes[SERVER];
    node.engine.release(&mut node.home, peer);
    assert_eq!(pair.introduce(), peer, "its session keeps the address");
}

#[test]
fn a_refused_post_leaves_nothing() {
    let mut pair = Pair::new(15, SMALL);
    let before = pair.world.nodes[CLIENT].engine.census();
    let engine = &mut pair.world.nodes[CLIENT].engine;
    let post = Post {
        role: Role::SendUnexpected,
        peer: pair.peers[CLIENT],
        tag: 0,
        length: 209,
        fragments: 1,
        context: 0,
        user: 0,
    };
    assert_eq!(engine.post(post), Err(Error::TooLong));
    let closed = Post { context: 3, ..post };
    assert_eq!(engine.post(closed), Err(Error::Invalid));
    let role = Role::Arrival;
    assert_eq!(engine.post(Post { role, ..post }), Err(Error::Invalid));
    let peer = PeerId(crate::bmi::engine::Key::from_raw(99 << 32));
    let length = 0;
    assert_eq!(
        engine.post(Post {
            peer,
            length,
            ..post
        }),
        Err(Error::Invalid)
    );
    let mut posted = 0;
    while engine.post(Post { length: 0, ..post }).is_ok() {
        posted += 1;
    }
    assert_eq!(
        engine.post(Post { length: 0, ..post }),
        Err(Error::NoMemory)
    );
    assert_eq!(engine.room(), 0);
    assert_eq!(engine.census(), (before.0 + posted, before.1, before.2));
}

#[test]
fn a_session_without_room_is_refused() {
    let mut world = World::new(16, &[SMALL; 2]);
    let peer = world.address(0, 1);
    world.run();
    let node = &mut world.nodes[0];
    node.make_room();
    let post = Post {
        role: Role::Send,
        peer,
        tag: 0,
        length: 0,
        fragments: 1,
        context: 0,
        user: 7,
    };
    let mut last = None;
    while let Ok(id) = node.engine.post(post) {
        node.home.buffers.insert(id, Buffers::divide(b"", 1));
        last = Some(id);
    }
    node.engine
        .start(&mut node.home, last.expect("an operation"));
    let results = node.take();
    assert!(results
        .iter()
        .all(|result| result.0.error == Some(Error::NoMemory)));
    assert!(!results.is_empty());
}

#[test]
fn a_thousand_peers() {
    let settings = Settings { rails: 1, ..SMALL };
    let mut world = World::new(17, &[settings; 2]);
    let peers: Vec<_> = (0..1000).map(|_| world.address(0, 1)).collect();
    for (number, peer) in peers.iter().enumerate() {
        let node = &mut world.nodes[0];
        let buffers = Buffers::divide(&(number as u64).to_le_bytes(), 1);
        node.post(Role::SendUnexpected, *peer, 0, buffers)
            .expect("a send");
        let buffers = Buffers::divide(&[0; 8], 1);
        node.post(Role::Receive, *peer, 1, buffers)
            .expect("a receive");
    }
    world.run();
    // The server answers all.
    let mut answered = 0;
    while let Some((peer, _, bytes)) = world.nodes[1].take_unexpected() {
        let (node, buffers) = (&mut world.nodes[1], Buffers::divide(&bytes, 1));
        node.post(Role::Send, peer, 1, buffers).expect("a send");
        answered += 1;
    }
    world.run();
    let results = world.nodes[0].take();
    assert_eq!((answered, results.len()), (1000, 2000));
    assert!(results.iter().all(|result| result.0.error.is_none()));
    let distinct: std::collections::HashSet<_> =
        results.iter().map(|result| result.1.bytes()).collect();
    assert_eq!(distinct.len(), 1000, "each client has its own answer");
}
