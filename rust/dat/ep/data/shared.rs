// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives that an Endpoint takes from a Shared Receive Queue (SRQ).
//!
//! A receive belongs to the SRQ until its completion is taken from the completion queue. Then it
//! gets a slot of the Endpoint for the moment, and is handled as a receive of the Endpoint.
//!
//! An Endpoint does not know how many receives its queue pair (QP) has taken. So at the end of a
//! connection it waits until the driver reports the last one, and until the completions that are
//! queued then are drained. The drivers of iWARP report it by the return from the call that stops
//! the QP.

use super::{
    complete::receive_result,
    Shares, //
};
use crate::{
    dat::{
        ep::{
            Ep,
            EpAttr,
            EpContext,
            LAST_RECEIVE, //
        },
        evd::Evd,
        prelude::*,
        srq::{
            Membership,
            Srq,
            TakenReceive, //
        },
    },
    model::{
        cq_room::Mark,
        direct_event::DirectEvent,
        ep::Phase,
        handle::{
            Direction,
            WrId,
            LIVES, //
        },
    },
    rdma::{
        device::Transport,
        wc::Wc, //
    },
    sys::{
        memcg::Payer,
        workqueue::{
            cancel_delayed,
            queue, //
        },
    },
};
use kernel::{
    impl_has_delayed_work,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

/// Milliseconds that a driver has to report the last receive.
const LAST_RECEIVE_MS: u32 = 200;

/// Milliseconds between the first two attempts to drain a completion queue whose EVD is full. Each
/// further pause is twice as long, up to [`LONGEST_FULL_MS`].
const FULL_MS: u32 = 10;

/// Longest pause between two such attempts in milliseconds. So the attempts of all Endpoints that a
/// user may have take little of a processor. An EVD that was full for as long delays the end of a
/// connection by as much again.
const LONGEST_FULL_MS: u32 = 5_120;

/// Number of slots for receives taken from an SRQ. One is enough, because an Endpoint's completions
/// are handled one at a time.
const TAKEN: u32 = 1;

/// Mark after the completions of receives from an SRQ.
#[derive(Clone, Copy)]
struct AfterLast {
    mark: Mark,
    /// The driver had reported the last receive before the mark was set, so no completion follows.
    is_sure: bool,
}

/// State of the receives that a connection takes from an SRQ.
pub(in crate::dat::ep) struct SrqReceives {
    /// Whether the QP may take receives, or completions of those may be queued.
    are_expected: bool,
    /// Mark after the last receive. Set by the driver's report, or by the time-out in its place.
    after_last: Option<AfterLast>,
    /// Milliseconds until the next attempt to take the last receives while the EVD is full.
    pause: u32,
}

impl SrqReceives {
    /// The state without a connection.
    pub(in crate::dat::ep) const fn none() -> Self {
        Self {
            are_expected: false,
            after_last: None,
            pause: FULL_MS,
        }
    }

    /// Begins the receives of a connection, which takes some if the Endpoint has an SRQ.
    pub(in crate::dat::ep) fn begin(&mut self, has_srq: bool) {
        self.are_expected = has_srq;
        self.after_last = None;
    }

    /// Ends the receives: the QP takes none, and all completions were taken or are given up.
    pub(in crate::dat::ep) fn end(&mut self) {
        self.are_expected = false;
    }

    /// Returns whether the QP may take receives, or completions of those may be queued.
    pub(in crate::dat::ep) fn are_expected(&self) -> bool {
        self.are_expected
    }

    /// Returns the pause until the next attempt to take the last receives, in milliseconds. The
    /// one after it is twice as long.
    fn next_pause(&mut self) -> u32 {
        let next = self.pause.saturating_mul(2).min(LONGEST_FULL_MS);
        core::mem::replace(&mut self.pause, next)
    }
}

/// Returns the number of slots for receives. Over iWARP events may be held back, and a receive has
/// a slot until its event is reported.
pub(in crate::dat::ep) fn receive_slots(
    srq: Option<&Srq>,
    context: &EpContext,
    attr: &EpAttr,
) -> u32 {
    match srq {
        None => attr.max_recv_dtos,
        Some(srq) if context.ia.is_iwarp() => srq.limit(),
        Some(_) => TAKEN,
    }
}

/// Objects that a QP keeps until it is destroyed.
pub(crate) struct Kept {
    shares: Arc<Shares>,
    member: Option<Arc<Membership>>,
}

impl Kept {
    pub(in crate::dat::ep) fn new(shares: Arc<Shares>, member: Option<Arc<Membership>>) -> Self {
        Self { shares, member }
    }

    /// Releases the objects of a QP that was destroyed.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat::ep) fn end(self) {
        if let Some(member) = self.member {
            member.leave(self.shares.has_taken_all());
            self.shares.receives().evd().note_life_ended();
        }
        Shares::end(self.shares);
    }

    /// Releases the objects of a QP that cannot be destroyed. Its completions keep their room.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat::ep) fn leak(self) {
        self.shares.stay();
        self.end();
    }
}

impl Ep {
    /// Returns the SRQ.
    pub(in crate::dat::ep) fn srq(&self) -> Option<Arc<Srq>> {
        let inner = self.inner.lock();
        inner.parts.srq.as_ref().map(|srq| srq.object())
    }

    /// Takes a completion of a receive from the SRQ: see [`Ep::complete`].
    #[inline(never)]
    pub(in crate::dat) fn complete_shared(
        self: Arc<Self>,
        evd: &Evd,
        taken: &TakenReceive,
        completion: &Wc,
        direct: &mut DirectEvent<'_>,
    ) {
        let slot = {
            let mut inner = self.inner.lock();
            if inner.life != taken.life {
                return;
            }
            inner.receives.post(taken.dto)
        };
        let life = taken.life % LIVES;
        match slot {
            Some(slot) => {
                let wr = WrId::new(slot, life, Direction::Receive, self.handle.key());
                self.complete(evd, wr, completion, direct);
            }
            // The slots are as many as receives may be held back, so one is free.
            None => {
                let mut dto = taken.dto;
                let result = receive_result(completion, &mut dto);
                self.inner.lock().note_invalidation(&dto, result);
                evd.report_drained(&dto.event(self.handle(), result));
                self.watch_receive(&mut self.inner.lock());
            }
        }
    }

    /// Expects the report of the last receive, of a QP that was stopped. Context: any.
    pub(in crate::dat::ep) fn expect_last_receive(self: &Arc<Self>) {
        if !self.inner.lock().srq_receives.are_expected() {
            return;
        }
        let delay = match self.context.ia.attr().transport {
            Transport::Iwarp => 0,
            Transport::Ib | Transport::Roce => LAST_RECEIVE_MS,
        };
        self.end_receives_after(delay);
    }

    /// Ends the receives: the driver has reported the last one. Some drivers report it again for
    /// each packet of the peer, so only the first report of a connection counts. Context: any,
    /// including hard IRQ.
    pub(in crate::dat::ep) fn end_receives(self: &Arc<Self>) {
        if self.awaits_last_receive.swap(false) {
            cancel_delayed::<_, LAST_RECEIVE>(self);
            self.end_receives_after(0);
        }
    }

    /// Drains the completions that were queued at the first call, or at the first call after the
    /// driver's report. Returns whether all were drained, and whether more may follow.
    ///
    /// Context: process; sleeps.
    fn take_last(&self) -> TakeLast {
        let is_sure = !self.awaits_last_receive.load_acquire();
        let (shares, after_last, is_freed) = {
            let inner = self.inner.lock();
            let is_freed = inner.phase == Phase::Freed;
            (
                inner.shares.clone(),
                inner.srq_receives.after_last,
                is_freed,
            )
        };
        let Some(shares) = shares else {
            return TakeLast::Taken { is_sure };
        };
        let is_taken = if is_freed {
            // Without events, they need no room in the ring.
            let payer = Payer::Other(self.context.ia.mem_cgroup());
            shares.receives().evd().drain_fully(payer)
        } else {
            let known = after_last.filter(|known| known.is_sure == is_sure);
            let after_last = known.unwrap_or_else(|| {
                let mark = shares.receives().mark();
                AfterLast { mark, is_sure }
            });
            self.inner.lock().srq_receives.after_last = Some(after_last);
            shares.receives().has_passed(after_last.mark)
        };
        Shares::end(shares);
        if is_taken {
            TakeLast::Taken { is_sure }
        } else {
            TakeLast::Left
        }
    }

    fn end_receives_after(self: &Arc<Self>, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds);
        let _ = queue().enqueue_delayed::<_, LAST_RECEIVE>(self.clone(), delay);
    }
}

/// Result of [`Ep::take_last`].
enum TakeLast {
    /// Completions are left, because their EVD is full.
    Left,
    /// All are taken. Without the driver's report another may follow.
    Taken { is_sure: bool },
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { LAST_RECEIVE }> for Ep { self.last_receive_work }
}

impl WorkItem<LAST_RECEIVE> for Ep {
    type Pointer = Arc<Self>;

    /// Takes the completions of the last receives, all of which are queued, and continues the end
    /// of the connection.
    fn run(this: Arc<Self>) {
        let TakeLast::Taken { is_sure } = this.take_last() else {
            let pause = this.inner.lock().srq_receives.next_pause();
            this.end_receives_after(pause);
            return;
        };
        let stopped_by_itself = {
            let mut inner = this.inner.lock();
            inner.srq_receives = SrqReceives::none();
            this.awaits_last_receive.swap(false);
            if let Some(shares) = &inner.shares {
                shares.set_taken_all(is_sure);
            }
            inner.phase.is_connected()
        };
        if stopped_by_itself {
            this.break_unless_cm_reports();
        }
        this.settle();
    }
}
