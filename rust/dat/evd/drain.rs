// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Draining: moves completions from the completion queues to the ring.
//!
//! A drain polls at most [`BUDGET`](crate::model::hand::BUDGET) completions while it holds the
//! consumer's lock. So completions without events, which never fill the ring, keep neither the lock
//! nor a worker.

use super::{
    cqs::EvdCq,
    Consumer,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        completion::Mode,
        hand::{
            Drained,
            Hand,
            Turns, //
        },
        length,
        room::Before, //
    },
    rdma::wc::{
        Batch,
        Wc, //
    },
};

impl Evd {
    /// Moves completions into the ring, as far as it has room. What has none stays where it is.
    pub(super) fn drain(&self, consumer: &mut Consumer) -> Drained {
        self.drain_to(consumer, &mut Hand::closed())
    }

    /// As [`Evd::drain`], the oldest event into a hand.
    pub(super) fn drain_to(&self, consumer: &mut Consumer, hand: &mut Hand<'_>) -> Drained {
        consumer
            .cqs
            .take_turns(|queue| self.drain_queue(queue, hand));
        hand.drained()
    }

    /// Says whether that is enough: the ring or the hand is full, or the budget spent.
    #[inline(always)]
    fn drain_queue(&self, queue: &EvdCq, hand: &mut Hand<'_>) -> bool {
        // Nearly always one is wanted, and there is one or none. In the hand it takes no room of the ring.
        if hand.wants_next() && self.queue.due.count() == 0 {
            match self.drain_next(queue, hand) {
                Looked::Empty => return false,
                Looked::Taken => return true,
                Looked::Another => {}
            }
        }
        self.drain_on(queue, hand)
    }

    /// Looks at the next completion.
    #[inline(always)]
    fn drain_next(&self, queue: &EvdCq, hand: &mut Hand<'_>) -> Looked {
        let before = queue.room.before_look();
        let mut batch = Batch::<1>::new();
        let [completion] = queue.cq.poll(&mut batch, 1) else {
            self.seen_empty(queue, before);
            return Looked::Empty;
        };
        hand.spend(1);
        self.complete(completion, hand);
        if hand.is_full() {
            Looked::Taken
        } else {
            Looked::Another
        }
    }

    /// As [`Evd::drain_queue`], whatever is wanted.
    #[inline(never)]
    fn drain_on(&self, queue: &EvdCq, hand: &mut Hand<'_>) -> bool {
        // Before the first look: by now their queue pairs are destroyed, and all that those have
        // left lies here.
        let before = queue.room.before_look();
        let mut batch = Batch::<{ length::BATCH }>::new();
        while hand.goes_on() {
            // What is posted meanwhile may take this room. Then they are queued beyond the queue length.
            let most = length::batch(self.qlen());
            let room = usize::try_from(self.room()).map_or(most, |room| room.min(most));
            if room == 0 {
                return true;
            }
            let room = hand.at_once(room);
            let completions = queue.cq.poll(&mut batch, room);
            for completion in completions {
                self.complete(completion, hand);
            }
            hand.spend(completions.len());
            if completions.len() < room {
                self.seen_empty(queue, before);
                return false;
            }
        }
        true
    }

    /// A look has found the end of a completion queue.
    fn seen_empty(&self, queue: &EvdCq, before: Before) {
        if let Some(count) = queue.room.seen_empty(before) {
            self.cqs.given_up.sub(count);
        }
    }

    /// Passes a completion to the Endpoint that posted the work request.
    fn complete(&self, completion: &Wc, hand: &mut Hand<'_>) {
        self.domain.endpoints.complete(self, completion, hand);
    }

    /// Arms, and drains what came before that. If that is cut, the pump goes on, and tells of what it finds:
    /// no notification will come of that.
    pub(super) fn arm_and_drain(self: &Arc<Self>, consumer: &mut Consumer) {
        // What they have missed the drain finds.
        let _ = consumer.cqs.arm(false);
        if self.drain(consumer) == Drained::Cut {
            self.make_up();
            // What is solicited the pump does not recognise: the consumer is to look.
            if self.mode() == Mode::Solicited {
                self.notify();
            }
        }
    }

    /// Drains all that lies in the completion queues by now, as far as there is room. Others have the lock
    /// in between.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn drain_now(&self) {
        let mut turns = Turns::new();
        loop {
            let mut consumer = self.consumer.lock();
            let drained = self.drain(&mut consumer);
            if drained == Drained::Done || !turns.another(|| consumer.cqs.depth()) {
                return;
            }
        }
    }
}

/// What a look at the next completion came to.
enum Looked {
    /// There is none.
    Empty,
    /// The hand has its event.
    Taken,
    /// It had no event for the hand.
    Another,
}
