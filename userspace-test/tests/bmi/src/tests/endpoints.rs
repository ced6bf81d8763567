// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The queue of Endpoints that a worker disconnects and frees.

use super::pair::{
    Pair,
    CLIENT, //
};
use crate::{
    bmi::engine::{
        ending_places,
        Close,
        Ending,
        Endings,
        EndsEndpoints,
        Error,
        Key,
        Next,
        PeerId,
        RailId,
        Task, //
    },
    sim::SMALL,
};
use std::{
    cell::RefCell,
    collections::{
        HashMap,
        HashSet, //
    },
    rc::Rc,
};

/// Rails that the queue takes: few, so that it is full at times.
const LIMIT: usize = ending_places(1) / 16;

type Queue = Endings<u64, Vec<Option<Ending<u64>>>>;

fn queue() -> Queue {
    Endings::new((0..LIMIT).map(|_| None).collect())
}

fn rail(number: u64) -> RailId {
    RailId {
        peer: PeerId(Key::from_raw(number)),
        session: 1,
        rail: 0,
    }
}

fn number(rail: RailId) -> u64 {
    rail.peer.0.index().into()
}

/// Takes the next task, which has to be a free of this Endpoint.
fn take_free(queue: &mut Queue, ep: u64) {
    let task = queue.take();
    assert!(
        matches!(task, Some((id, Task::Free(found))) if (id, found) == (rail(ep), ep)),
        "{task:?}"
    );
}

fn take_disconnect(queue: &mut Queue, ep: u64) {
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
    for ep in 0..LIMIT as u64 {
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

/// Buffers that the device may write to.
type Device = Rc<RefCell<HashSet<u32>>>;

/// An Endpoint with a receive. The drop frees it.
struct Ep {
    buffer: u32,
    device: Device,
}

impl Drop for Ep {
    fn drop(&mut self) {
        self.device.borrow_mut().remove(&self.buffer);
    }
}

type EpQueue = Endings<Rc<Ep>, Vec<Option<Ending<Rc<Ep>>>>>;

/// A home whose connections have a receive buffer each.
struct Scene {
    queue: EpQueue,
    open: HashMap<u64, Rc<Ep>>,
    /// Buffers of connections that are ending.
    ending: HashMap<u64, u32>,
    free: Vec<u32>,
    device: Device,
    /// The call of the worker.
    call: Option<(RailId, Task<Rc<Ep>>)>,
    eps: u64,
    closed: u64,
    /// Frees of the home itself.
    own: u32,
}

impl EndsEndpoints for Scene {
    type Ep = Rc<Ep>;
    type Places = Vec<Option<Ending<Rc<Ep>>>>;

    fn endings(&mut self) -> &mut EpQueue {
        &mut self.queue
    }

    fn ep_of(&self, rail: RailId) -> Option<Rc<Ep>> {
        self.open.get(&number(rail)).cloned()
    }

    fn take_ep(&mut self, rail: RailId) -> Option<Rc<Ep>> {
        let ep = self.open.remove(&number(rail))?;
        self.ending.insert(number(rail), ep.buffer);
        Some(ep)
    }

    fn disconnect_ep(_ep: &Rc<Ep>, _how: Close) -> bool {
        true
    }

    fn closed(&mut self, _rail: RailId, _reason: Option<Error>) {
        self.closed += 1;
    }

    fn freed(&mut self, rail: RailId, reason: Option<Error>) {
        let buffer = self.ending.remove(&number(rail));
        self.free.push(buffer.expect("a connection that ends"));
        self.closed(rail, reason);
    }
}

impl Scene {
    fn new() -> Self {
        Self {
            queue: Endings::new((0..LIMIT).map(|_| None).collect()),
            open: HashMap::new(),
            ending: HashMap::new(),
            free: (0..8).collect(),
            device: Device::default(),
            call: None,
            eps: 0,
            closed: 0,
            own: 0,
        }
    }

    fn open(&mut self) {
        if let Some(buffer) = self.free.pop() {
            assert!(
                self.device.borrow_mut().insert(buffer),
                "a buffer of an Endpoint that is not freed is used again"
            );
            self.eps += 1;
            let device = self.device.clone();
            self.open.insert(self.eps, Rc::new(Ep { buffer, device }));
        }
    }

    fn close(&mut self, ep: u64) {
        let closed = self.closed;
        self.close_rail(rail(ep), None);
        self.own += u32::from(self.closed > closed);
    }

    /// Begins a call of the worker, or lets it return.
    fn work(&mut self) -> bool {
        let Some((rail, task)) = self.call.take() else {
            self.call = self.queue.take();
            return self.call.is_some();
        };
        let (closed, frees) = (self.closed, matches!(task, Task::Free(_)));
        let succeeded = Self::carry_out(task);
        self.task_done(rail, succeeded);
        assert!(
            frees || self.closed == closed,
            "a rail is closed by a disconnect"
        );
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
            match (rng.u8(..20), rng.choice(&eps)) {
                (0..4, Some(ep)) => scene.begin_disconnect(rail(*ep), Close::Abrupt),
                (4..8, Some(ep)) => scene.close(*ep),
                (8..12, _) => _ = scene.work(),
                // A request finds no Endpoint.
                (12, _) => scene.carry_out_waiting(),
                _ => scene.open(),
            }
        }
        for ep in scene.open.keys().copied().collect::<Vec<_>>() {
            scene.close(ep);
        }
        while scene.work() {}
        assert_eq!(scene.closed, scene.eps, "each rail is closed once");
        assert_eq!(
            (scene.free.len(), scene.device.borrow().len()),
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
