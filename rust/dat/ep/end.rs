// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How an Endpoint ends: freed, failed, or left alone by its device.

use super::{
    Ep,
    Inner,
    CONNECT,
    FAILURE, //
};
use crate::{
    model::{
        ep::{
            Effects,
            Input,
            Phase, //
        },
        event::{
            DtoStatus,
            Event, //
        },
        handle::{
            Direction,
            LIVES, //
        },
    },
    rdma::qp,
    sys::workqueue::{
        cancel_delayed,
        cancel_delayed_sync,
        queue, //
    },
};
use kernel::{
    impl_has_delayed_work,
    sync::{
        Arc,
        ArcBorrow, //
    },
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta, //
    },
    workqueue::WorkItem, //
};

/// Milliseconds that an answer has for leaving before the QP is stopped.
const LAST_WORDS_MS: u32 = 20;

/// Milliseconds that `rdma_cm` has for telling why a QP has stopped.
const OTHER_NEWS_MS: u32 = 1_000;

/// Milliseconds that a device that goes has for completing what flushes.
const FLUSH_TRIES: u32 = 100;

impl Ep {
    /// Freed, whatever it was doing: lets go of everything and reports nothing any more.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn shutdown(this: &Arc<Self>) {
        this.hide_trace();
        let (qp, id, demand) = {
            let mut inner = this.inner.lock();
            this.enter(&mut inner, Input::Free, Phase::Freed);
            (inner.qp.clone(), inner.id.clone(), inner.demand.take())
        };
        cancel_delayed::<_, CONNECT>(this);
        cancel_delayed::<_, FAILURE>(this);
        drop(demand);
        if let Some(qp) = qp {
            // Fails if the device is dead already, and then there is nothing to stop.
            let _ = qp.fail();
        }
        if let Some(id) = id {
            id.disconnect();
        }
        this.let_go();
        // What failed up to here has had its QP fail again; nobody is left to fail from now on.
        cancel_delayed_sync::<_, FAILURE>(this);
        let parts = core::mem::take(&mut this.inner.lock().parts);
        drop(parts);
    }

    /// The device goes: the connection breaks, what is outstanding flushes, and the Endpoint lets go
    /// of QP and id.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn device_removed(this: &Arc<Self>) {
        let _ = Self::feed(this, Input::DeviceRemoved, None);
        this.flush();
        this.let_go();
        Self::perform(this, Effects::NONE, None);
    }

    /// Parts with id and QP, and gives up what has not completed by then: it never will.
    fn let_go(&self) {
        let (qp, id) = {
            let mut inner = self.inner.lock();
            (inner.qp.take(), inner.id.take())
        };
        // In this order: no event comes once the id is gone, no completion once the QP is.
        drop(id);
        drop(qp);
        // What has completed by now still lies in the completion queues, and counts there.
        self.drain();
        self.preposted.lock().clear();
        let mut inner = self.inner.lock();
        let waiting = inner.waiting.take().unwrap_or(0);
        let receives = inner.receives.clear().saturating_add(waiting);
        let requests = inner.requests.clear();
        inner.parts.end_receives(receives);
        inner.parts.end_requests(requests);
    }

    /// Another life begins: what the last one has posted completes no more. There is no QP any more.
    pub(super) fn begin_life(&self) {
        self.drain();
        let mut inner = self.inner.lock();
        inner.life = inner.life.wrapping_add(1) % LIVES;
        self.report_flushed(&inner, Direction::Receive);
        self.report_flushed(&inner, Direction::Request);
        let (receives, requests) = (inner.receives.clear(), inner.requests.clear());
        inner.parts.end_receives(receives);
        inner.parts.end_requests(requests);
    }

    /// Reports what is in flight as flushed, as far as there is room.
    fn report_flushed(&self, inner: &Inner, direction: Direction) {
        let (slots, evd) = match direction {
            Direction::Receive => (&inner.receives, inner.parts.recv_evd()),
            Direction::Request => (&inner.requests, inner.parts.request_evd()),
        };
        let mut next = 0;
        while let (Ok(evd), Some((slot, dto))) = (evd, slots.busy_from(next)) {
            let reported = evd.report_if_room(&Event::Dto {
                ep: self.handle(),
                cookie: dto.cookie,
                status: DtoStatus::Flushed,
                operation: dto.operation,
                length: 0,
                rmr_context: 0,
            });
            if !reported {
                return;
            }
            next = slot.saturating_add(1);
        }
    }

    /// Drains both EVDs.
    fn drain(&self) {
        let evds = self.inner.lock().parts.dto_evds();
        if let Some((receives, requests)) = evds {
            receives.drain_now();
            requests.drain_now();
        }
    }

    /// Gives the device a moment to complete what flushes.
    pub(super) fn flush(&self) {
        for _ in 0..FLUSH_TRIES {
            self.drain();
            let status = self.status();
            if status.receives == 0 && status.requests == 0 {
                return;
            }
            fsleep(Delta::from_millis(1));
        }
    }

    /// The QP has failed at this side: ends the connection, once the answer that tells the peer what
    /// was wrong has had time to leave. A QP that is moved to ERR sends no answer any more.
    ///
    /// Context: any that may take a spinlock.
    pub(super) fn break_soon(this: &Arc<Self>) {
        Self::break_after(this, LAST_WORDS_MS);
    }

    /// The QP was found stopped: the connection ends as broken, unless `rdma_cm` tells of another end
    /// soon.
    ///
    /// Context: any that may take a spinlock.
    pub(super) fn break_later(this: &Arc<Self>) {
        Self::break_after(this, OTHER_NEWS_MS);
    }

    fn break_after(this: &Arc<Self>, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds);
        let _ = queue().enqueue_delayed::<_, FAILURE>(this.clone(), delay);
    }
}

impl qp::Handler for Ep {
    fn failed(this: ArcBorrow<'_, Self>) {
        Self::break_soon(&Arc::from(this));
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { FAILURE }> for Ep { self.failure }
}

impl WorkItem<FAILURE> for Ep {
    type Pointer = Arc<Self>;

    /// The peer knows by now.
    fn run(this: Arc<Self>) {
        let _ = Self::feed(&this, Input::Broken, None);
    }
}
