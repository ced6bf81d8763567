// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From the completion queue to the ring, and who does it.
//!
//! The completion callback only wakes; see [`cq::Handler`]. Whoever is woken drains. The pump is a
//! work item that drains while there is *demand*: a waiter for many events is not to be woken
//! before there are that many, and an Endpoint that winds up owes its last event once all its DTOs
//! are reported, whether or not anybody waits for them. It also drains where some completions are not to
//! wake anybody ([`Mode::Unsignalled`]): which, only a look at them tells.
//!
//! A drain looks at [so many](crate::model::hand::BUDGET) completions at most while it has the consumer's
//! lock. So completions without events, which never fill the ring, keep neither the lock nor a worker.

use super::{
    queue::Queue,
    Consumer,
    Evd, //
};
use crate::{
    model::{
        completion::Mode,
        event::{
            Event,
            Fault, //
        },
        hand::{
            Drained,
            Hand,
            Turns, //
        },
        handle::WrId,
        length,
        room::Before,
    },
    rdma::{
        cq::{
            self,
            Armed, //
        },
        wc::{
            Batch,
            Wc, //
        },
    },
    sys::workqueue::queue,
};
use kernel::{
    impl_has_work,
    sync::{
        atomic::{
            Acquire,
            Full, //
        },
        Arc,
        ArcBorrow, //
    },
    workqueue::WorkItem, //
};

/// DAT's reason of an asynchronous EVD event: overflow.
const REASON_OVERFLOW: u32 = 0;

impl Evd {
    /// Moves completions into the ring, as far as it has room. What has none stays where it is.
    pub(super) fn drain(&self, consumer: &mut Consumer) -> Drained {
        self.drain_to(consumer, &mut Hand::closed())
    }

    /// As [`Evd::drain`], the oldest event into a hand.
    pub(super) fn drain_to(&self, consumer: &mut Consumer, hand: &mut Hand<'_>) -> Drained {
        consumer
            .queues
            .take_turns(|queue| self.drain_queue(queue, hand));
        hand.drained()
    }

    /// Says whether that is enough: the ring or the hand is full, or the budget spent.
    #[inline(always)]
    fn drain_queue(&self, queue: &Queue, hand: &mut Hand<'_>) -> bool {
        // Nearly always one is wanted, and there is one or none. In the hand it takes no room of the ring.
        if hand.wants_next() && self.due.count() == 0 {
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
    fn drain_next(&self, queue: &Queue, hand: &mut Hand<'_>) -> Looked {
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
    fn drain_on(&self, queue: &Queue, hand: &mut Hand<'_>) -> bool {
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
    fn seen_empty(&self, queue: &Queue, before: Before) {
        if let Some(count) = queue.room.seen_empty(before) {
            self.given_up.sub(count);
        }
    }

    /// Hands a completion to the Endpoint that posted the work request.
    fn complete(&self, completion: &Wc, hand: &mut Hand<'_>) {
        let wr = WrId::from_raw(completion.wr_id());
        // None: the Endpoint was freed, and its events with it.
        if let Some(ep) = self.objects.poster(wr) {
            ep.complete(self, wr, completion, hand);
        }
    }

    /// Whether completions may lie here whose DTOs are given up.
    pub(in crate::dat) fn has_given_up(&self) -> bool {
        self.given_up.load_acquire() != 0
    }

    /// Whether as many events lie here as may: nothing is drained before the consumer takes some.
    pub(in crate::dat) fn is_full(&self) -> bool {
        self.ring.len() >= self.qlen()
    }

    /// How many events lie here, or are to find room.
    pub(super) fn queued_or_due(&self) -> u32 {
        self.due.or_queued(&self.ring)
    }

    /// How many events the queue length leaves room for.
    pub(super) fn room(&self) -> u32 {
        self.qlen().saturating_sub(self.queued_or_due())
    }

    /// One more event is to find room here, until [`Evd::end_due`].
    pub(in crate::dat) fn begin_due(&self) {
        self.due.begin();
    }

    /// One event less: it was reported, or will never be. The caller [makes up](Evd::make_up) for room that
    /// nobody learns of.
    pub(in crate::dat) fn end_due(&self) {
        self.due.end();
    }

    /// There is room again that was kept for others: without it an EVD may have seemed empty, and what
    /// came was told to nobody.
    pub(in crate::dat) fn make_up(this: &Arc<Self>) {
        this.untold.swap(true);
        let _ = queue().enqueue(this.clone());
    }

    /// Starts the pump, if it has stopped for want of room. The consumer has made room, or what was due
    /// is here, and a pump that looked meanwhile has counted it twice.
    pub(super) fn pump_again(self: &Arc<Self>) {
        if self.demand.load(Acquire) != 0 || (self.untold.load_acquire() && self.is_watched()) {
            let _ = queue().enqueue(self.clone());
        }
    }

    /// There is room for more events than before, or for less.
    pub(super) fn was_resized(this: &Arc<Self>) {
        if this.due.count() == 0 {
            this.pump_again();
        } else {
            Self::make_up(this);
        }
    }

    /// Drains once, sometime soon.
    pub(in crate::dat) fn drain_soon(this: &Arc<Self>) {
        let _ = queue().enqueue(this.clone());
    }

    /// There is one more reason to drain without a waiter, until the drop of what this returns.
    pub(in crate::dat) fn begin_demand(this: &Arc<Self>) -> Demand {
        this.demand.fetch_add(1, Full);
        let _ = queue().enqueue(this.clone());
        Demand(this.clone())
    }

    /// Drains, and arms if anybody is to know of what comes; `owes` says that nobody else tells of what it
    /// finds. If that is cut, it queues the pump again, and others have the lock and the worker first.
    fn pump(this: &Arc<Self>, owes: bool) {
        let mut consumer = this.consumer.lock();
        let mut hand = Hand::closed();
        let mut drained = this.drain_to(&mut consumer, &mut hand);
        let mut armed = Armed::Missed;
        while armed == Armed::Missed
            && drained == Drained::Done
            && consumer.queues.count() != 0
            && this.room() != 0
        {
            let all = this.demand.load(Acquire) != 0;
            if !all && !this.is_watched() {
                break;
            }
            armed = consumer.queues.arm(all);
            // What came between the drain and the arming.
            drained = this.drain_to(&mut consumer, &mut hand);
        }
        // Who makes room starts the pump again, if there is more to tell: the consumer, or what was due.
        if owes && (this.room() == 0 || drained == Drained::Cut) {
            this.untold.swap(true);
        }
        if drained == Drained::Cut {
            let _ = queue().enqueue(this.clone());
        }
    }

    /// Arms, and drains what came before that. If that is cut, the pump goes on, and tells of what it finds:
    /// no notification will come of that.
    pub(super) fn arm_and_drain(this: &Arc<Self>, consumer: &mut Consumer) {
        // What they have missed the drain finds.
        let _ = consumer.queues.arm(false);
        if this.drain(consumer) == Drained::Cut {
            Self::make_up(this);
            // What is solicited the pump does not recognise: the consumer is to look.
            if this.mode() == Mode::Solicited {
                this.notify();
            }
        }
    }

    /// Whether somebody waits, here or at the CNO, or has upcalls. The callback may have left it to the
    /// pump to wake them, for streams that are gone by now: so it leaves the completion queues armed for
    /// what comes next.
    fn is_watched(&self) -> bool {
        self.waiter.is_taken() || self.link.is_live() || self.upcalls.are_made()
    }

    /// Whether the callback tells of each completion, so that the pump need not.
    fn callback_tells(&self) -> bool {
        match self.mode() {
            Mode::Threshold => true,
            // Solicited: a failure may come unsolicited.
            Mode::Unsignalled | Mode::Solicited => false,
        }
    }

    /// Tells of what the pump has found, and not again of what was told before.
    fn tell(&self) {
        let is_new = self.ring.has_loud() && self.told.load() != self.ring.newest_loud();
        // What is solicited wakes by itself, and nothing else does; but for the failures at the end.
        let may_wait = self.mode() != Mode::Solicited || self.demand.load(Acquire) != 0;
        let is_stuck = may_wait && self.is_stuck();
        if is_stuck {
            self.bell.ring();
            self.waiter.wake();
        }
        if is_new || is_stuck {
            self.notify();
        }
    }

    /// Whether anything lies here that somebody is to be told of.
    pub(super) fn has_news(&self) -> bool {
        self.ring.has_loud() || self.is_stuck()
    }

    /// Whether so many events lie here that others, of which somebody is to be told, may wait behind them.
    fn is_stuck(&self) -> bool {
        self.ring.len() != 0 && self.room() == 0
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
            if drained == Drained::Done || !turns.another(|| consumer.queues.depth()) {
                return;
            }
        }
    }

    /// Events were lost: says so on the asynchronous EVD.
    ///
    /// Context: any, including hard IRQ.
    pub(super) fn overflowed(&self) {
        let event = Event::Async {
            fault: Fault::EvdOverflow,
            object: self.handle,
            reason: REASON_OVERFLOW,
        };
        // If that is full as well, or is the one that overflowed, there is nobody left to tell.
        let _ = self.async_evd.as_ref().map(|evd| evd.post(&event));
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

/// A reason to drain without a waiter.
pub(in crate::dat) struct Demand(Arc<Evd>);

impl Drop for Demand {
    fn drop(&mut self) {
        self.0.demand.fetch_sub(1, Full);
    }
}

impl_has_work! {
    impl HasWork<Self> for Evd { self.pump }
}

impl WorkItem for Evd {
    type Pointer = Arc<Self>;

    /// The pump: drains, and leaves the completion queues armed for as long as there is demand.
    fn run(this: Arc<Self>) {
        // Before the pump: what comes from now on has a run of its own, and the streams may be gone after.
        let owes = this.untold.swap(false) || !this.callback_tells();
        Self::pump(&this, owes);
        if owes || !this.callback_tells() {
            this.tell();
        }
    }
}

impl cq::Handler for Evd {
    fn completed(this: ArcBorrow<'_, Self>) {
        let looks_first = this.mode() == Mode::Unsignalled;
        if looks_first {
            this.untold.swap(true);
        } else {
            this.bell.ring();
            if !this.wanted.counts() {
                this.waiter.wake();
            }
            this.notify();
        }
        if looks_first || this.demand.load(Acquire) != 0 {
            // If it is queued already the reference comes back, and is not the last: the
            // completion queue has one.
            let _ = queue().enqueue(Arc::from(this));
        }
    }

    fn failed(this: ArcBorrow<'_, Self>) {
        this.overflowed();
    }
}
