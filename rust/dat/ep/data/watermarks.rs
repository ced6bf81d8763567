// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Number of receive buffers that an Endpoint has, and its high watermarks.
//!
//! The watermarks keep an Endpoint whose events the consumer does not take from using up a Shared
//! Receive Queue. A receive that has completed counts until the consumer takes its event. While
//! there is a watermark, the completions are drained as they arrive.

use crate::{
    dat::{
        ep::{
            Ep,
            Inner, //
        },
        evd::{
            Evd,
            ReceiveReports, //
        },
        prelude::*, //
    },
    model::{
        ep::Phase,
        event::{
            AsyncEvent,
            Event, //
        },
        watermarks::{
            Exceeded,
            Marks,
            Watermarks, //
        },
    },
};

/// Reason of an asynchronous event of an Endpoint in DAT: soft high watermark.
const REASON_SOFT_HIGH_WATERMARK: u32 = 2;

/// Watermarks of an Endpoint that has some.
pub(in crate::dat::ep) struct RecvWatch {
    watermarks: Watermarks,
    _reports: ReceiveReports,
}

impl Inner {
    /// Counts receives whose events were just queued.
    pub(in crate::dat::ep) fn count_receives(&mut self, count: u32) {
        if let Some(watch) = &mut self.watch {
            watch.watermarks.add(count);
        }
    }

    /// Counts a receive whose event the consumer has taken.
    pub(in crate::dat::ep) fn take_receive(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.watermarks.take_one();
        }
    }
}

impl Ep {
    /// Implements `dat_ep_set_watermark`. The soft watermark is reported by one asynchronous event,
    /// the hard one breaks the connection. Either may happen during this call.
    ///
    /// Has no effect without an EVD for receives, whose events are discarded.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * INVALID_HANDLE (Endpoint) if the Endpoint was freed;
    /// * INSUFFICIENT_RESOURCES (memory) without memory.
    pub(crate) fn set_watermarks(self: &Arc<Self>, marks: Marks) -> DatResult {
        let room = marks
            .any()
            .then(|| KBox::<RecvWatch>::new_uninit(GFP_KERNEL_ACCOUNT))
            .transpose()?;
        // The lock keeps the EVD from being replaced. The lock of `preposted` is unsuitable: a
        // handler of `rdma_cm` takes it, and this call waits for the EVD's consumer and counts all
        // events.
        let _past_lives = self.past_lives.lock();
        let evd = self.recv_evd()?;
        let Some(room) = room.filter(|_| !evd.discards()) else {
            let old = self.inner.lock().watch.take();
            drop(old);
            return Ok(());
        };
        let mut watch = KBox::write(
            room,
            RecvWatch {
                watermarks: Watermarks::new(marks, 0),
                _reports: evd.report_receives(),
            },
        );
        // Both are dropped after the locks.
        let replaced = self.with_queued_receives(&evd, |inner, count| {
            // A freed Endpoint reports no events, and no later call would remove its watermarks.
            if inner.phase == Phase::Freed {
                return Err((Phase::Freed.invalid_state_error(), watch));
            }
            watch.watermarks.add(count);
            let old = inner.watch.replace(watch);
            self.check_watermarks(inner);
            Ok(old)
        });
        replaced.map(drop).map_err(|(error, _watch)| error)
    }

    /// Implements `dat_ep_recv_query`: returns the number of receive buffers that the Endpoint has.
    /// These are the receives that are posted to it, and those whose event the consumer has not
    /// taken.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (Endpoint) if the Endpoint was freed.
    pub(crate) fn receive_buffers(&self) -> DatResult<u32> {
        let evd = self.recv_evd()?;
        evd.drain_all();
        Ok(self.with_queued_receives(&evd, |inner, queued| {
            inner.receives_outstanding().saturating_add(queued)
        }))
    }

    fn recv_evd(&self) -> DatResult<Arc<Evd>> {
        let inner = self.inner.lock();
        let evds = inner.parts.dto_evds();
        let evds = evds.ok_or_else(|| inner.phase.invalid_state_error())?;
        Ok(evds.receives)
    }

    /// Calls a function with the number of queued receives, under the lock.
    fn with_queued_receives<R>(&self, evd: &Evd, commit: impl FnOnce(&mut Inner, u32) -> R) -> R {
        let mut queued = evd.queued_receives(self.handle());
        loop {
            let mut inner = self.inner.lock();
            if queued.is_current() {
                return commit(&mut inner, queued.count());
            }
            drop(inner);
            // The loop ends: no event is taken meanwhile, so the ring becomes full at last.
            queued.recount();
        }
    }

    /// Counts a receive that has just completed. [`Inner::take_receive`] has to follow if its event
    /// is not queued.
    pub(in crate::dat::ep) fn watch_receive(self: &Arc<Self>, inner: &mut Inner) {
        inner.count_receives(1);
        self.check_watermarks(inner);
    }

    /// Counts a receive whose event the consumer has taken.
    pub(in crate::dat) fn receive_taken(&self) {
        self.inner.lock().take_receive();
    }

    /// Counts receives whose flush was just queued. The connection has ended, so only the soft
    /// watermark matters.
    pub(in crate::dat::ep) fn count_flushed(&self, inner: &mut Inner, count: u32) {
        inner.count_receives(count);
        let _ = self.report_soft(inner);
    }

    /// Reports a soft watermark that is exceeded. Breaks the connection if the hard one is.
    pub(in crate::dat::ep) fn check_watermarks(self: &Arc<Self>, inner: &mut Inner) {
        if self.report_soft(inner) && inner.phase.is_connected() {
            self.break_soon();
        }
    }

    /// Reports a soft watermark that is exceeded. Returns whether the hard one is exceeded.
    fn report_soft(&self, inner: &mut Inner) -> bool {
        let Some(watch) = &mut inner.watch else {
            return false;
        };
        let Exceeded { soft, hard } = watch.watermarks.check();
        if soft {
            self.context.report(&Event::Async {
                cause: AsyncEvent::EpBroken,
                object: self.handle(),
                reason: REASON_SOFT_HIGH_WATERMARK,
            });
        }
        hard
    }
}
