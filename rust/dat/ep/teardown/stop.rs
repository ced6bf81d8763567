// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Stops a freed Endpoint, and takes all its completions before its queue pair (QP) is destroyed.
//!
//! Drivers differ in their treatment of completions that a destroyed QP has left in a completion
//! queue (CQ). Most discard them: receives of a Shared Receive Queue (SRQ) among them would never
//! complete. qedr dereferences the QP when it polls one of them. So the QP is moved to ERR, and the
//! CQs are [emptied](crate::dat::evd::Evd::drain_fully) until nothing is outstanding. That takes a
//! working device milliseconds. The wait for another one is limited.

use super::super::{
    distinct,
    Ep,
    EpQp,
    Inner,
    CONNECT, //
};
use super::flush;
use crate::{
    dat::{
        base::Objects,
        evd::Evd,
        prelude::*, //
    },
    model::{
        ep::{
            may_free,
            Call,
            Phase, //
        },
        handle::{
            PerDirection,
            SrqWrId,
            WrId,
            LIVES, //
        },
    },
    rdma::wc::Wc,
    sys::{
        memcg::Payer,
        workqueue::cancel_delayed, //
    },
};

/// Milliseconds without progress after which the completions of freed Endpoints are given up. A
/// driver that does not report the last receive from an SRQ takes 200.
const FREED_FLUSH_MS: u32 = 300;

/// Waits until `unfinished` returns 0, as [`flush`], for freed Endpoints.
///
/// Context: process; sleeps.
pub(in crate::dat) fn flush_freed(unfinished: impl Fn() -> u32) {
    flush(FREED_FLUSH_MS, unfinished);
}

impl Inner {
    /// Returns the number of completions that the device may have yet to report, or that were not
    /// taken.
    pub(super) fn unfinished(&self) -> u32 {
        self.receives
            .outstanding()
            .saturating_add(self.requests.outstanding())
            .saturating_add(self.connection.keepalive.probes())
            .saturating_add(self.srq_receives.are_expected().into())
    }

    /// Returns whether the QP was never connected, and nothing was posted to it. Such a QP has
    /// nothing to flush, and is destroyed without waiting for the workers of its provider.
    ///
    /// The result is stable once the Endpoint is freed.
    fn has_unused_qp(&self) -> bool {
        self.connection.id.is_none()
            && self.requests.outstanding() == 0
            && self.receives.outstanding() == 0
            && self.preposted_count == Some(0)
    }
}

impl Ep {
    /// Returns whether the Endpoint was freed.
    pub(in crate::dat::ep) fn is_freed(&self) -> bool {
        self.inner.lock().phase == Phase::Freed
    }

    /// Returns whether the Endpoint is in this life, neither freed nor reset since.
    pub(in crate::dat::ep) fn is_in_life(&self, life: u32) -> bool {
        let inner = self.inner.lock();
        inner.phase != Phase::Freed && inner.life == life
    }

    /// Checks that the Endpoint was not freed. A freed one keeps its handle while completions are
    /// left.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE.
    pub(crate) fn expect_not_freed(&self) -> DatResult {
        match self.is_freed() {
            true => Err(Phase::Freed.invalid_state_error()),
            false => Ok(()),
        }
    }

    /// Frees the Endpoint with this handle: `dat_ep_free`. Completions find it by its handle, so
    /// the handle stays until all are taken. But the Endpoint is freed for all calls.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE; INVALID_STATE for an Endpoint of a service point.
    pub(in crate::dat::ep) fn free_handle(eps: &Objects<Self>, handle: u64) -> DatResult {
        let ep = eps.get(handle)?;
        may_free(ep.inner.lock().phase)?;
        ep.await_acknowledgement();
        let ep = eps.check(handle, |ep| {
            let mut inner = ep.inner.lock();
            may_free(inner.phase)?;
            ep.become_freed(&mut inner);
            Ok(())
        })?;
        ep.stop_freed();
        flush_freed(|| ep.drain_unfinished());
        let freeing = eps.begin_free();
        let taken = eps.take(handle, |_| Ok(()));
        let is_mine = taken.map(|ep| ep.end(freeing)).is_ok();
        // The removal of the device releases the queue pair of an Endpoint in the table, and a
        // close of the adapter takes the Endpoint out of it.
        if !is_mine || eps.is_closed() {
            eps.await_frees();
        }
        Ok(())
    }

    /// Frees the Endpoint for all calls, and stops its QP and its connection, if no other thread
    /// does.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn stop(self: &Arc<Self>) {
        let is_first = {
            let mut inner = self.inner.lock();
            let is_first = inner.freed_in.is_none();
            if is_first {
                self.become_freed(&mut inner);
            }
            is_first
        };
        if is_first {
            self.stop_freed();
        }
    }

    /// Enters the last phase. From here on no event is reported.
    fn become_freed(&self, inner: &mut Inner) {
        inner.freed_in = Some(inner.phase);
        self.enter(inner, Call::Free.into(), Phase::Freed);
        // No completion would show the end of unsignalled requests.
        self.close_end_or_give_up(inner);
    }

    /// Stops QP and connection of a freed Endpoint.
    fn stop_freed(self: &Arc<Self>) {
        let (life, id, demand, is_unused) = {
            let mut inner = self.inner.lock();
            let is_unused = inner.has_unused_qp();
            if is_unused {
                inner.srq_receives.end();
            }
            (
                inner.life,
                inner.connection.id.clone(),
                (inner.demand.take(), inner.watch.take()),
                is_unused,
            )
        };
        cancel_delayed::<_, CONNECT>(self);
        drop(demand);
        self.release_all_held();
        if !is_unused {
            self.fail_qp(life);
        }
        if let Some(id) = id {
            id.disconnect();
        }
    }

    /// Empties the completion queues, if completions may be left. Returns the number of those that
    /// are.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn drain_unfinished(&self) -> u32 {
        if self.inner.lock().unfinished() == 0 {
            return 0;
        }
        self.drain_evds_fully(Payer::Caller);
        self.inner.lock().unfinished()
    }

    /// Returns the EVDs of receives and of requests, unless one is missing.
    pub(super) fn dto_evds(&self) -> Option<PerDirection<Arc<Evd>>> {
        self.inner.lock().parts.dto_evds()
    }

    /// Polls all completions of both EVDs: see [`Evd::drain_fully`].
    ///
    /// Context: process; sleeps.
    ///
    /// [`Evd::drain_fully`]: crate::dat::evd::Evd::drain_fully
    pub(in crate::dat) fn drain_evds_fully(&self, payer: Payer<'_>) {
        if let Some(evds) = self.dto_evds() {
            for evd in distinct(&evds) {
                evd.drain_fully(payer);
            }
        }
    }

    /// Destroys the QP. If completions of it may be left, and the driver would use the destroyed QP
    /// when it polls one, the EVDs destroy it when they poll no more.
    ///
    /// The device writes to no receive of a kernel consumer afterwards, although the ID may keep a
    /// failed QP that is [connecting](EpQp::end_delay). A process has no memory that such a QP
    /// could write to: none can be registered with its driver.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat::ep) fn destroy_qp(&self, qp: Option<Arc<EpQp>>) {
        let Some(qp) = qp else { return };
        if self.context.ia.is_of_kernel && qp.end_delay() {
            flush_freed(|| self.drain_unfinished());
        }
        let is_dangerous = qp.is_used_by_late_polls() && self.unpolled() != 0;
        let evds = is_dangerous.then(|| self.dto_evds()).flatten();
        if let Some(evds) = evds {
            evds.receives.keep(qp.clone());
            evds.requests.keep(qp.clone());
        }
        drop(qp);
    }

    /// Returns the number of completions of this life that are not polled, at most. Those that were
    /// polled may have their slots still, because a full EVD has no room for their events.
    ///
    /// Context: process; sleeps.
    pub(super) fn unpolled(&self) -> u32 {
        let (unfinished, life, evds) = {
            let inner = self.inner.lock();
            (inner.unfinished(), inner.life, inner.parts.dto_evds())
        };
        let (Some(evds), 1..) = (evds, unfinished) else {
            return unfinished;
        };
        let is_mine = |completion: &Wc| self.has_posted(completion, life);
        // Read after the slots: a completion that leaves the spill meanwhile counts as not polled.
        let polled = distinct(&evds).map(|evd| evd.count_spilled(is_mine));
        unfinished.saturating_sub(polled.fold(0, u32::saturating_add))
    }

    /// Returns whether a completion is that of a DTO or a probe of the Endpoint in this life.
    fn has_posted(&self, completion: &Wc, life: u32) -> bool {
        let (raw, key) = (completion.wr_id(), self.handle.key());
        let wr = WrId::from_raw(raw);
        SrqWrId::from_raw(raw).is_none()
            && wr.life == life % LIVES
            && (wr.ep, wr.generation) == (key.index, key.short_generation())
    }
}
