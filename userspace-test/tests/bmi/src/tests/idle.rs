// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Silent peers, and sessions that are given up.

use super::{
    data::RAILS,
    pair::{
        Pair,
        CLIENT,
        SERVER, //
    },
    sessions::phase, //
};
use crate::{
    bmi::engine::{
        Error,
        Header,
        Kind,
        PeerId,
        Phase,
        Role,
        Shortage,
        Window, //
    },
    sim::{
        Buffers,
        Settings,
        World,
        SMALL, //
    },
};

fn give_up(pair: &mut Pair, node: usize) -> bool {
    let node = &mut pair.world.nodes[node];
    node.engine.give_up_idle(&mut node.home)
}

#[test]
fn a_silent_peer_is_found_and_an_idle_one_is_not() {
    let mut pair = Pair::new(7, SMALL);
    let waiting = pair.receive(CLIENT, 1, 10, 1);
    for _ in 0..50 {
        pair.world.tick(SMALL.silence);
        pair.world.run();
    }
    assert!(
        !pair.is_complete(CLIENT, waiting),
        "a peer that answers is alive"
    );
    pair.world.nodes[SERVER].frozen = true;
    for _ in 0..2 {
        pair.world.tick(SMALL.silence - 1);
        pair.world.run();
    }
    assert!(!pair.is_complete(CLIENT, waiting));
    for _ in 0..2 {
        pair.world.tick(SMALL.silence);
        pair.world.run();
    }
    assert_eq!(pair.error_of(CLIENT, waiting), Some(Error::TimedOut));
}

#[test]
fn an_idle_peer_answers() {
    // Only the client asks, and PING alone never makes CREDIT due.
    let window = Window {
        data: 4,
        control: 50,
    };
    let client = Settings { window, ..SMALL };
    let silence = u64::MAX;
    let mut pair = Pair::with(7, [client, Settings { silence, ..client }]);
    for _ in 0..20 {
        pair.world.tick(SMALL.silence);
        pair.world.run();
        assert_eq!(phase(&pair, CLIENT), Some(Phase::Up));
    }
}

#[test]
fn a_tick_is_free_for_peers_that_are_not_silent() {
    let mut pair = Pair::new(8, SMALL);
    let before = pair.world.messages;
    for _ in 0..20 {
        pair.world.tick(SMALL.silence / 2);
        pair.transfer(CLIENT, 1, 10, (1, 1));
        pair.transfer(SERVER, 1, 10, (1, 1));
    }
    // The messages, and credits for them, but no PING.
    assert!(
        pair.world.messages - before <= 40 + 20,
        "{}",
        pair.world.messages - before
    );
}

#[test]
fn an_idle_session_is_given_up_and_comes_back() {
    for giver in [CLIENT, SERVER] {
        for settings in [SMALL, RAILS] {
            let mut pair = Pair::new(9, settings);
            assert!(give_up(&mut pair, giver));
            // Posts of the other side, or of this one, are not lost.
            let send = pair.send(CLIENT, 1, b"0123456789", 1);
            pair.world.run();
            assert_eq!(pair.error_of(CLIENT, send), None);
            let receive = pair.receive(SERVER, 1, 10, 1);
            pair.world.run();
            assert!(pair.result_of(SERVER, receive).1 == b"0123456789");
            assert_eq!(pair.introduce(), pair.peers[SERVER]);
            pair.transfer(SERVER, 1, 5000, (1, 1));
        }
    }
}

#[test]
fn a_given_up_session_has_no_connection() {
    for giver in [CLIENT, SERVER] {
        let mut pair = Pair::new(10, RAILS);
        assert!(give_up(&mut pair, giver));
        pair.world.run();
        assert!(pair.world.established().is_empty());
        assert_eq!(phase(&pair, CLIENT), Some(Phase::Idle));
        assert_eq!(phase(&pair, SERVER), Some(Phase::Idle));
        assert!(!give_up(&mut pair, giver), "there is no session to give up");
    }
}

#[test]
fn a_session_in_use_is_not_given_up() {
    for user in [CLIENT, SERVER] {
        let mut pair = Pair::new(11, SMALL);
        let receive = pair.receive(user, 1, 10, 1);
        pair.world.run();
        assert!(!give_up(&mut pair, user));
        assert!(give_up(&mut pair, 1 - user), "the peer has to ask");
        pair.world.run();
        assert_eq!(phase(&pair, CLIENT), Some(Phase::Up));
        pair.send(1 - user, 1, b"0123456789", 1);
        pair.world.run();
        assert_eq!(pair.error_of(user, receive), None);
    }
}

#[test]
fn both_sides_give_up_at_once() {
    for seed in 0..20 {
        let mut pair = Pair::new(seed, RAILS);
        assert!(give_up(&mut pair, CLIENT));
        assert!(give_up(&mut pair, SERVER));
        pair.world.run();
        assert!(pair.world.established().is_empty());
        pair.introduce();
        pair.transfer(CLIENT, 1, 10, (1, 1));
    }
}

#[test]
fn a_message_that_was_kept_survives_an_idle_session() {
    let mut pair = Pair::new(12, SMALL);
    pair.send(CLIENT, 1, b"kept", 1);
    pair.world.run();
    pair.take();
    assert!(give_up(&mut pair, CLIENT));
    pair.world.run();
    let kept = phase(&pair, CLIENT);
    let receive = pair.receive(SERVER, 1, 10, 1);
    pair.world.run();
    assert_eq!(kept, Some(Phase::Up), "the server has a message to deliver");
    assert_eq!(pair.result_of(SERVER, receive).0.actual, 4);
}

#[test]
fn a_message_that_was_on_its_way_survives_an_idle_session() {
    let mut kept = 0;
    for seed in 0..100 {
        let settings = if seed % 2 == 0 { SMALL } else { RAILS };
        let mut pair = Pair::new(seed, settings);
        assert!(give_up(&mut pair, SERVER));
        let send = pair.send(CLIENT, 1, b"0123456789", 1);
        pair.world.run();
        assert_eq!(pair.error_of(CLIENT, send), None);
        kept += usize::from(phase(&pair, SERVER) == Some(Phase::Idle));
        let receive = pair.receive(SERVER, 1, 10, 1);
        pair.world.run();
        assert!(pair.result_of(SERVER, receive).1 == b"0123456789");
    }
    assert!(kept > 0, "no session ended before the receive");
}

#[test]
fn a_peer_that_does_not_answer_bye_is_given_up() {
    let mut pair = Pair::new(13, SMALL);
    let connection = pair.world.established()[0];
    pair.world.nodes[SERVER].frozen = true;
    assert!(give_up(&mut pair, CLIENT));
    let send = pair.send(CLIENT, 1, b"0123456789", 1);
    for _ in 0..2 {
        assert!(!pair.is_complete(CLIENT, send));
        pair.world.tick(SMALL.silence / 2);
        // It shows that it is alive.
        let alive = Header {
            sequence: pair.world.ends[connection][0].received,
            ..Header::new(Kind::Credit)
        };
        let bytes = alive.encode().to_vec();
        pair.world.forge(connection, 0, bytes);
        pair.world.run();
    }
    assert_eq!(pair.error_of(CLIENT, send), Some(Error::TimedOut));
}

/// A client of several servers, whose home lacks an Endpoint for another connect.
struct Short {
    world: World,
    /// Each server's number at the client, and the client's number there.
    servers: Vec<[PeerId; 2]>,
    shortage: Shortage,
    /// The connect waits. Without an idle session it has failed.
    waits: bool,
}

impl Short {
    fn new(servers: usize) -> Self {
        let mut world = World::new(9, &vec![SMALL; servers + 1]);
        let connect = |server| world.introduce(CLIENT, server);
        let servers = (1..=servers).map(connect).collect();
        Self {
            world,
            servers,
            shortage: Shortage::default(),
            waits: true,
        }
    }

    /// Lets the servers with the first numbers wait for a message, so that they answer STAY.
    fn occupy(&mut self, count: usize) {
        for (index, [_, client]) in self.servers[..count].iter().enumerate() {
            let memory = Buffers::divide(&[0; 10], 1);
            let receive = self.world.nodes[index + 1].post(Role::Receive, *client, 1, memory);
            receive.expect("an operation");
        }
        self.world.run();
    }

    /// Begins the shortage.
    fn begin(&mut self) {
        self.shortage.begin();
        self.run();
    }

    /// Runs the world, and does what a home does after each event.
    fn run(&mut self) {
        for _ in 0..100 {
            self.world.run();
            let node = &mut self.world.nodes[CLIENT];
            if node.engine.take_stay() {
                self.shortage.session_stays(self.waits, 0);
            }
            if !self.shortage.take() {
                return;
            }
            self.waits &= node.engine.give_up_idle(&mut node.home);
        }
        panic!("sessions are asked without end");
    }

    fn phases(&self) -> Vec<Option<Phase>> {
        let engine = &self.world.nodes[CLIENT].engine;
        let phases = self.servers.iter().map(|[peer, _]| engine.phase(*peer));
        phases.collect()
    }
}

#[test]
fn when_a_session_stays_the_next_one_is_asked() {
    let mut short = Short::new(3);
    short.occupy(2);
    short.begin();
    let (up, idle) = (Some(Phase::Up), Some(Phase::Idle));
    assert_eq!(short.phases(), [up, up, idle]);
    assert!(short.waits, "the connect gets the Endpoint");
}

#[test]
fn when_all_sessions_stay_the_connect_fails() {
    let mut short = Short::new(3);
    short.occupy(3);
    short.begin();
    assert_eq!(short.phases(), [Some(Phase::Up); 3]);
    assert!(!short.waits);
    // Later they may be idle.
    short.world.tick(SMALL.silence);
    short.waits = true;
    let asked = short.world.messages;
    short.begin();
    assert!(short.world.messages >= asked + 3 && !short.waits);
}

#[test]
fn when_a_session_does_not_answer_another_one_is_given_up() {
    let mut short = Short::new(2);
    // The first server is asked first, and says nothing more.
    short.world.nodes[1].frozen = true;
    short.begin();
    assert!(matches!(short.phases()[0], Some(Phase::Asked(_))));
    short.world.tick(SMALL.silence - 1);
    short.run();
    assert!(matches!(short.phases()[0], Some(Phase::Asked(_))));
    short.world.tick(1);
    short.run();
    let gone = [Some(Phase::Idle), Some(Phase::Closing)];
    assert!(short.phases().iter().any(|phase| gone.contains(phase)));
}
