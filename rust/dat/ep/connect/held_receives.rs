// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives that complete before the connection is reported as established.
//!
//! Over iWARP the device driver connects the queue pair of the active side by itself, and reports
//! that later. The completion of a message that the peer sends at once may be drained before.
//! ESTABLISHED must precede its event, so such events are held back. On every transport they are
//! held back while the ready gate of the connection is closed.
//!
//! There may be thousands of them when the attempt to connect ends, which mostly happens in a
//! handler of `rdma_cm`. The Endpoint's work item reports them in batches. Receives that complete
//! meanwhile are held back, too, and follow them. A receive is outstanding until it is reported, so
//! the last connection event waits for all of them.

use crate::{
    dat::{
        base::{
            slots,
            InUse, //
        },
        ep::{
            receives,
            Ep,
            Inner, //
        },
        evd::Evd,
        prelude::*,
        srq::Holder, //
    },
    model::{
        completion::{
            notification_for,
            Notification,
            WakeMode, //
        },
        dto::{
            Dto,
            DtoResult, //
        },
        ep::{
            Phase,
            ReadyGate, //
        },
        handle::Direction,
        held_receives::{
            Held,
            HeldReceives, //
        },
    },
    sys::user::{
        ChargedArray,
        User, //
    },
};

/// Receives whose events are held back.
pub(in crate::dat::ep) struct HeldBack {
    /// The receives, oldest first.
    queue: HeldReceives<ChargedArray<Held>>,
    /// Counts them at the SRQ; `None` without an SRQ.
    holder: Option<Holder>,
}

impl HeldBack {
    /// Returns a value that holds nothing back.
    pub(in crate::dat::ep) fn none() -> Self {
        Self {
            queue: HeldReceives::new(ChargedArray::empty()),
            holder: None,
        }
    }

    /// Returns whether no event is held back.
    pub(in crate::dat::ep) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Allocates room for so many events, for which `user` is charged.
fn held_storage(user: &User, receives: u32) -> DatResult<ChargedArray<Held>> {
    let receives = usize::try_from(receives).map_err(|_| DatError::memory())?;
    let flags = GFP_KERNEL_ACCOUNT;
    Ok(ChargedArray::filled(user, receives, flags, Held::vacant)?)
}

impl Ep {
    /// Allocates room for the event of every receive, if some may be held back. The thread that
    /// connects or accepts calls it before a peer can send, so that its memory cgroup is charged.
    /// `life` is the life of the Endpoint in which the attempt has begun.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat::ep) fn allocate_held(&self, life: u32) -> DatResult {
        let (capacity, srq, gate) = {
            let inner = self.inner.lock();
            let srq = inner.parts.srq.as_ref().map(InUse::object);
            (inner.receives.capacity(), srq, inner.connection.gate)
        };
        let is_iwarp = self.context.ia.is_iwarp();
        if !is_iwarp && gate == ReadyGate::Open {
            return Ok(());
        }
        match srq {
            None => self.set_held(life, capacity, None),
            Some(srq) => srq
                .hold_back(|limit, holder| self.set_held(life, limit.max(capacity), Some(holder))),
        }
    }

    /// Replaces the room for events that are held back, and the slots of the receives of an SRQ.
    fn set_held(&self, life: u32, needed: u32, holder: Option<Holder>) -> DatResult {
        let mut held = HeldBack {
            queue: HeldReceives::new(held_storage(self.context.ia.user(), needed)?),
            holder,
        };
        let mut slots = match &held.holder {
            None => None,
            Some(_) => Some(receives(needed, &self.context, GFP_KERNEL_ACCOUNT)?),
        };
        let mut inner = self.inner.lock();
        // Nothing is held back from an earlier connection: a reset reports it.
        if inner.life == life && inner.held.is_empty() {
            // The old values are dropped after the lock.
            core::mem::swap(&mut inner.held, &mut held);
            if let Some(slots) = &mut slots {
                // No receive of the SRQ has a slot before the connection.
                core::mem::swap(&mut inner.receives, slots);
            }
        }
        drop(inner);
        Ok(())
    }

    /// Makes room for the event of every receive of the Endpoint's SRQ, which is about to be
    /// lengthened, if some may be held back.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory).
    pub(in crate::dat) fn lengthen_held(&self, srq: u64, receives_of_srq: u32) -> DatResult {
        let is_short = || {
            let inner = self.inner.lock();
            let is_of = inner
                .parts
                .srq
                .as_ref()
                .is_some_and(|own| own.handle() == srq);
            is_of && inner.held.holder.is_some() && inner.receives.capacity() < receives_of_srq
        };
        if !is_short() {
            return Ok(());
        }
        let user = self.context.ia.user();
        let held = held_storage(user, receives_of_srq)?;
        let slots = slots(user, receives_of_srq, GFP_KERNEL_ACCOUNT)?;
        let old = {
            let mut inner = self.inner.lock();
            // Both may have got longer meanwhile, and are returned then.
            (inner.held.queue.grow(held), inner.receives.grow(slots))
        };
        drop(old);
        Ok(())
    }

    /// Reports or discards all events that are held back.
    pub(in crate::dat::ep) fn release_all_held(&self) {
        while self.inner.lock().release_some_held(self.handle()) {}
    }
}

impl Inner {
    /// Holds back the event of a receive that has just completed, if ESTABLISHED or the event of an
    /// earlier receive has to be reported first. Returns `false` if the caller reports it.
    pub(in crate::dat::ep) fn hold_if_early(
        &mut self,
        evd: &Evd,
        slot: u32,
        dto: &Dto,
        result: DtoResult,
    ) -> bool {
        let is_early = self.phase.holds_receives() || !self.held.is_empty();
        let is_unwanted = evd.discards() || self.notification(dto, result) == Notification::None;
        if !is_early || is_unwanted {
            return false;
        }
        // Without room (InfiniBand or RoCE with an open gate) no receive is early.
        let HeldBack { queue, holder } = &mut self.held;
        if !queue.hold(&mut self.receives, slot, *dto, result) {
            return false;
        }
        if let Some(holder) = holder {
            holder.hold();
        }
        evd.reserve_pending();
        self.begin_demand();
        true
    }

    /// Reports some of the events that are held back, unless ESTABLISHED is still to be reported.
    /// Returns whether more are left to report.
    pub(in crate::dat::ep) fn report_held_if_allowed(&mut self, ep: u64) -> bool {
        !self.phase.holds_receives() && self.release_some_held(ep)
    }

    /// Reports some of the events that are held back, or discards them if the Endpoint was freed.
    /// Returns whether more are left.
    pub(in crate::dat::ep) fn release_some_held(&mut self, ep: u64) -> bool {
        let (Some(evd), false) = (&self.parts.recv_evd, self.held.is_empty()) else {
            return false;
        };
        let mode = self.attr.mode(Direction::Receive);
        let is_freed = self.phase == Phase::Freed;
        let mut reported = 0_u32;
        let HeldBack { queue, holder } = &mut self.held;
        let more = queue.take_some(&mut self.receives, |dto, result| {
            reported = reported.saturating_add(1);
            let event = dto.event(ep, result);
            match notification_for(dto.flags, mode, result.status) {
                _ if is_freed => {}
                // The completion has woken the waiter if it was solicited, but there was no event.
                Notification::Quiet if mode != WakeMode::Solicited => evd.report_quietly(&event),
                _ => evd.report(&event),
            }
            evd.release_pending();
        });
        Evd::queue_pump_and_notify(&evd.object());
        if let Some(holder) = holder {
            holder.release(reported);
        }
        self.count_receives(reported);
        more
    }

    /// Returns how the event of a receive is announced.
    fn notification(&self, dto: &Dto, result: DtoResult) -> Notification {
        notification_for(dto.flags, self.attr.mode(Direction::Receive), result.status)
    }
}
