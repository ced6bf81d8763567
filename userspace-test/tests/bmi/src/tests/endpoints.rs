// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The queue of Endpoints that a worker disconnects and frees.

use super::pair::{
    Pair,
    CLIENT, //
};
use crate::{
    bmi::engine::{
        Close,
        Ending,
        Endings,
        Error,
        Key,
        Next,
        PeerId,
        RailId,
        Task,
        ENDINGS, //
    },
    sim::SMALL,
};
use std::collections::{
    HashMap,
    HashSet, //
};

/// Rails that the queue takes: few, so that it is full at times.
const LIMIT: usize = ENDINGS / 16;

type Queue = Endings<u32, Vec<Option<Ending<u32>>>>;

fn queue() -> Queue {
    Endings::new((0..LIMIT).map(|_| None).collect())
}

fn rail(number: u32) -> RailId {
    RailId {
        peer: PeerId(Key::from_raw(u64::from(number))),
        session: 1,
        rail: 0,
    }
}

/// Takes the next task, which has to be a free of this Endpoint.
fn take_free(queue: &mut Queue, ep: u32) {
    let task = queue.take();
    assert!(
        matches!(task, Some((id, Task::Free(found))) if (id, found) == (rail(ep), ep)),
        "{task:?}"
    );
}

fn take_disconnect(queue: &mut Queue, ep: u32) {
    let task = queue.take();
    assert!(
        matches!(task, Some((id, Task::Disconnect(found, _))) if (id, found) == (rail(ep), ep)),
        "{task:?}"
    );
}

#[test]
fn tasks_are_carried_out_in_their_order() {
    let mut queue = queue();
    assert_eq!(queue.free(rail(1), 1, Some(Error::TimedOut)), Ok(()));
    assert_eq!(queue.disconnect(rail(2), 2, Close::Abrupt), Ok(()));
    assert_eq!(queue.free(rail(3), 3, None), Ok(()));
    assert!(queue.frees(rail(1)) && !queue.frees(rail(2)));
    take_free(&mut queue, 1);
    assert!(queue.frees(rail(1)), "the call has not returned");
    let freed = Next::Freed(rail(1), Some(Error::TimedOut));
    assert_eq!(queue.done(rail(1), true), freed);
    assert!(!queue.frees(rail(1)));
    take_disconnect(&mut queue, 2);
    assert_eq!(queue.done(rail(2), true), Next::Wait);
    take_free(&mut queue, 3);
    assert_eq!(queue.done(rail(3), true), Next::Freed(rail(3), None));
    assert!(queue.take().is_none());
}

#[test]
fn an_endpoint_is_freed_after_its_disconnect_has_returned() {
    let mut queue = queue();
    assert_eq!(queue.disconnect(rail(1), 1, Close::Abrupt), Ok(()));
    take_disconnect(&mut queue, 1);
    assert_eq!(queue.free(rail(1), 1, None), Ok(()));
    assert!(queue.take().is_none(), "the Endpoint is in use");
    // The disconnect is too late, and so refused.
    assert_eq!(queue.done(rail(1), false), Next::Wait);
    take_free(&mut queue, 1);
    assert_eq!(queue.done(rail(1), true), Next::Freed(rail(1), None));
}

#[test]
fn a_disconnect_that_waits_becomes_a_free() {
    let mut queue = queue();
    assert_eq!(queue.disconnect(rail(1), 1, Close::Graceful), Ok(()));
    assert_eq!(queue.free(rail(1), 1, None), Ok(()));
    assert_eq!(queue.disconnect(rail(1), 1, Close::Abrupt), Ok(()));
    take_free(&mut queue, 1);
    assert_eq!(queue.done(rail(1), true), Next::Freed(rail(1), None));
    assert!(queue.take().is_none());
}

#[test]
fn a_refused_disconnect_closes_the_rail() {
    let mut queue = queue();
    assert_eq!(queue.disconnect(rail(1), 1, Close::Abrupt), Ok(()));
    take_disconnect(&mut queue, 1);
    assert_eq!(queue.done(rail(1), false), Next::Close(rail(1)));
    assert_eq!(queue.free(rail(1), 1, None), Ok(()));
    take_free(&mut queue, 1);
}

#[test]
fn a_full_or_stopped_queue_gives_endpoints_back() {
    let mut queue = queue();
    for ep in 0..LIMIT as u32 {
        assert_eq!(queue.disconnect(rail(ep), ep, Close::Abrupt), Ok(()));
    }
    assert_eq!(queue.free(rail(9), 9, None), Err(9));
    assert_eq!(queue.disconnect(rail(9), 9, Close::Abrupt), Err(9));
    assert_eq!(queue.free(rail(2), 2, None), Ok(()), "it has a place");
    take_disconnect(&mut queue, 0);
    assert_eq!(
        queue.free(rail(9), 9, None),
        Err(9),
        "the call uses its place"
    );
    queue.done(rail(0), true);
    assert_eq!(queue.free(rail(9), 9, None), Ok(()));
    queue.stop();
    take_disconnect(&mut queue, 1);
    queue.done(rail(1), true);
    assert_eq!(queue.free(rail(7), 7, None), Err(7));
    take_free(&mut queue, 2);
}

#[test]
fn the_worker_is_called_once() {
    let mut queue = queue();
    assert!(!queue.call());
    assert_eq!(queue.free(rail(1), 1, None), Ok(()));
    assert!(queue.call() && !queue.call());
    take_free(&mut queue, 1);
    assert_eq!(queue.free(rail(2), 2, None), Ok(()));
    queue.done(rail(1), true);
    assert!(!queue.call(), "it takes the next task itself");
    take_free(&mut queue, 2);
    queue.done(rail(2), true);
    assert!(queue.take().is_none());
    assert_eq!(queue.free(rail(3), 3, None), Ok(()));
    assert!(queue.call());
}

/// A home whose connections have a receive buffer each.
struct Scene {
    queue: Queue,
    /// Buffers of open connections, and of those that are ending.
    open: HashMap<u32, u32>,
    ending: HashMap<u32, u32>,
    free: Vec<u32>,
    /// Buffers that the device may write to.
    device: HashSet<u32>,
    /// The call of the worker: its Endpoint, and whether it frees it.
    call: Option<(u32, bool)>,
    eps: u32,
    closed: u32,
    /// Frees of the home itself.
    own: u32,
}

impl Scene {
    fn new() -> Self {
        Self {
            queue: queue(),
            open: HashMap::new(),
            ending: HashMap::new(),
            free: (0..8).collect(),
            device: HashSet::new(),
            call: None,
            eps: 0,
            closed: 0,
            own: 0,
        }
    }

    fn open(&mut self) {
        if let Some(buffer) = self.free.pop() {
            assert!(
                self.device.insert(buffer),
                "a buffer of an Endpoint that is not freed is used again"
            );
            self.eps += 1;
            self.open.insert(self.eps, buffer);
        }
    }

    fn disconnect(&mut self, ep: u32) {
        // If the queue is full, the home disconnects the Endpoint itself.
        let _ = self.queue.disconnect(rail(ep), ep, Close::Abrupt);
    }

    fn close(&mut self, ep: u32) {
        let buffer = self.open.remove(&ep).expect("an open connection");
        self.ending.insert(ep, buffer);
        if self.queue.free(rail(ep), ep, None).is_err() {
            self.device.remove(&buffer);
            self.own += 1;
            self.freed(ep);
        }
    }

    fn freed(&mut self, ep: u32) {
        let buffer = self.ending.remove(&ep).expect("a connection that ends");
        self.free.push(buffer);
        self.closed += 1;
    }

    /// Begins a call of the worker, or lets it return.
    fn work(&mut self) -> bool {
        let Some((ep, frees)) = self.call.take() else {
            let task = self.queue.take();
            self.call = task.map(|(_, task)| match task {
                Task::Disconnect(ep, _) => (ep, false),
                Task::Free(ep) => (ep, true),
            });
            return self.call.is_some();
        };
        if frees {
            self.device.remove(&self.ending[&ep]);
        }
        if let Next::Freed(..) = self.queue.done(rail(ep), true) {
            assert!(frees, "a rail is closed by a disconnect");
            self.freed(ep);
        }
        true
    }
}

#[test]
fn a_buffer_is_used_again_only_after_the_free_has_returned() {
    let mut own = 0;
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut scene = Scene::new();
        for _ in 0..300 {
            let mut eps: Vec<_> = scene.open.keys().copied().collect();
            eps.sort_unstable();
            match (rng.u8(..5), rng.choice(&eps)) {
                (0, Some(ep)) => scene.disconnect(*ep),
                (1, Some(ep)) => scene.close(*ep),
                (2, _) => _ = scene.work(),
                _ => scene.open(),
            }
        }
        for ep in scene.open.keys().copied().collect::<Vec<_>>() {
            scene.close(ep);
        }
        while scene.work() {}
        assert_eq!(scene.closed, scene.eps, "each rail is closed once");
        assert_eq!(
            (scene.free.len(), scene.device.len()),
            (8, 0),
            "a buffer is lost"
        );
        own += scene.own;
    }
    assert!(own > 0, "the queue was never full");
}

#[test]
fn a_peer_is_connected_again_after_its_endpoint_was_freed() {
    for seed in 0..50 {
        let mut pair = Pair::new(seed, SMALL);
        let receive = pair.receive(CLIENT, 2, 10, 1);
        pair.world.run();
        let node = &mut pair.world.nodes[CLIENT];
        node.engine.disconnect(&mut node.home, pair.peers[CLIENT]);
        let send = pair.unexpected(CLIENT, 3, b"again");
        let mut waited = 0;
        while pair.world.step() {
            if !pair.world.ends[0][CLIENT].freed {
                waited += 1;
                assert_eq!(pair.world.ends.len(), 1, "the peer has no second Endpoint");
                assert!(!pair.is_complete(CLIENT, receive), "its memory is in use");
            }
        }
        assert!(waited > 0);
        assert_eq!(pair.error_of(CLIENT, receive), Some(Error::Reset));
        assert_eq!(pair.error_of(CLIENT, send), None);
        assert_eq!(pair.world.ends.len(), 2);
    }
}
