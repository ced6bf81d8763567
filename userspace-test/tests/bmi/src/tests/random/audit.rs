// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What must hold after a program.

use super::program::{
    Posted,
    Program,
    Way, //
};
use crate::bmi::engine::{
    Error,
    Role, //
};

/// Payload of the largest eager message.
const EAGER: u64 = 208;

/// All ways and tags of a program.
fn streams() -> impl Iterator<Item = (Way, i32)> {
    let ways = (0..2).flat_map(|link| [(link, true), (link, false)]);
    ways.flat_map(|way| (0..3).map(move |tag| (way, tag)))
}

impl Program {
    fn of(&self, stream: (Way, i32), role: Role) -> impl Iterator<Item = &Posted> {
        let all = self.posted.iter();
        all.filter(move |posted| posted.role == role && (posted.way, posted.tag) == stream)
    }

    fn all_sends_complete(&self) -> bool {
        let mut sends = self
            .posted
            .iter()
            .filter(|posted| posted.role != Role::Receive);
        sends.all(|posted| posted.result.is_some())
    }

    /// Posts receives until all sends are complete, cancels what is left, and compares all results
    /// with the contract. Then all resources must be back.
    pub fn finish(&mut self) {
        self.thaw();
        for node in &mut self.world.nodes {
            node.refuses = false;
        }
        for _ in 0..8 {
            self.settle();
            self.post_receives();
        }
        self.settle();
        assert!(self.all_sends_complete(), "a deadlock");
        self.cancel_all();
        self.settle();
        for _ in 0..3 {
            self.world.tick(5000);
            self.settle();
        }
        let complete = self.posted.iter().all(|posted| posted.result.is_some());
        assert!(complete, "a cancelled operation does not complete");
        self.compare();
        self.expect_balance();
        self.expect_nothing_left();
    }

    fn settle(&mut self) {
        loop {
            self.world.run();
            self.take();
            let before = self.unexpected.len();
            self.take_unexpected();
            if self.unexpected.len() == before {
                return;
            }
        }
    }

    /// Posts a receive for each message that may be left.
    fn post_receives(&mut self) {
        for stream in streams() {
            let sends = self.of(stream, Role::Send).count();
            let receives = self.of(stream, Role::Receive);
            let useful = receives.filter(|posted| {
                let result = posted.result.as_ref();
                result.is_none_or(|(result, _)| result.error.is_none())
            });
            for _ in useful.count()..sends {
                self.receive(stream.0, stream.1, 20_000, 3);
            }
        }
    }

    /// Compares the messages of each stream, in the order of the posts of both sides.
    fn compare(&self) {
        for stream in streams() {
            let mut sends = self.of(stream, Role::Send);
            for receive in self.of(stream, Role::Receive) {
                let (result, bytes) = receive.result.as_ref().expect("a result");
                if result.error.is_none() {
                    let bytes = &bytes[..usize::try_from(result.actual).expect("a length")];
                    let found = sends.any(|send| send.bytes == bytes);
                    assert!(found, "a message is wrong, doubled or out of order");
                }
            }
        }
        for way in (0..2).flat_map(|link| [(link, true), (link, false)]) {
            let mut sends = self.of((way, 9), Role::SendUnexpected);
            for (_, bytes) in self.unexpected.iter().filter(|message| message.0 == way) {
                let found = sends.any(|send| send.bytes == *bytes);
                assert!(
                    found,
                    "an unexpected message is wrong, doubled or out of order"
                );
            }
        }
    }

    /// Returns the number of accesses to memory that was not exposed.
    pub fn violations(&self) -> usize {
        self.world.violations
    }

    /// Checks that each send that has succeeded was received, and the reverse.
    pub fn expect_nothing_lost(&self) {
        assert_eq!(self.world.violations, 0);
        let succeeded = |posted: &&Posted| {
            let result = posted.result.as_ref();
            result.is_some_and(|(result, _)| result.error.is_none())
        };
        for stream in streams() {
            let sent = self.of(stream, Role::Send).filter(succeeded).count();
            let received = self.of(stream, Role::Receive).filter(succeeded).count();
            // The sender of an eager message does not learn that the receive was too short.
            let short = self.of(stream, Role::Receive).filter(|posted| {
                let result = posted.result.as_ref().map(|result| result.0);
                result.is_some_and(|result| {
                    result.error == Some(Error::TooLong) && result.actual <= EAGER
                })
            });
            assert_eq!(sent, received + short.count(), "a message is lost");
        }
        for way in (0..2).flat_map(|link| [(link, true), (link, false)]) {
            let sent = self.of((way, 9), Role::SendUnexpected).filter(succeeded);
            let received = self.unexpected.iter().filter(|message| message.0 == way);
            assert_eq!(
                sent.count(),
                received.count(),
                "an unexpected message is lost"
            );
        }
    }

    /// Checks that no operation has failed, but for the receives that were cancelled at the end.
    pub fn expect_no_error(&self) {
        for posted in &self.posted {
            let error = posted.result.as_ref().and_then(|result| result.0.error);
            let allowed = !posted.is_send() && error == Some(Error::Cancelled);
            assert!(error.is_none() || allowed, "{error:?}");
        }
    }

    /// Checks that the credits that one side has are those that the other one grants.
    fn expect_balance(&mut self) {
        for connection in self.world.established() {
            let ends = [0, 1].map(|index| {
                let end = &self.world.ends[connection][index];
                let rail = end.rail.expect("a rail");
                let credits = self.world.nodes[end.node].engine.credits(rail);
                credits.expect("an established rail").census()
            });
            assert_eq!(ends[0].0, ends[1].1, "credits are lost");
            assert_eq!(ends[1].0, ends[0].1, "credits are lost");
            let queues = self.world.ends[connection].iter().map(|end| end.queue);
            assert_eq!(queues.sum::<u16>(), 0);
        }
    }

    /// Checks that nothing is left when the program has dropped its peers.
    fn expect_nothing_left(&mut self) {
        self.release();
        self.settle();
        for node in &self.world.nodes {
            assert_eq!(
                node.engine.census(),
                (0, 0, 0),
                "operations, peers or room are lost"
            );
            assert!(node.home.exposed.is_empty(), "memory is exposed");
            assert!(node.home.stash.is_empty(), "a stash is lost");
            assert!(node.home.buffers.is_empty(), "buffers are lost");
        }
        assert!(self.world.established().is_empty(), "a connection is left");
    }
}
