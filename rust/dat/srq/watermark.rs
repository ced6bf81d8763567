// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Low watermark of a Shared Receive Queue (SRQ).

use super::Srq;
use crate::{
    dat::{
        evd::Evd,
        prelude::*, //
    },
    model::{
        atomic::{
            AtomicBool,
            AtomicU32, //
        },
        event::{
            AsyncEvent,
            Event, //
        },
    },
    rdma::srq::Handler, //
};
use kernel::sync::ArcBorrow;

/// Reason of an asynchronous event of an SRQ in DAT: low watermark.
const REASON_LOW_WATERMARK: u32 = 2;

/// Low watermark, and the EVD for its event. A driver reports in any context, so no lock protects
/// it.
pub(super) struct Watermark {
    evd: Arc<Evd>,
    low: AtomicU32,
    /// The event is not reported yet.
    armed: AtomicBool,
}

impl Watermark {
    /// Creates a watermark that is off.
    pub(super) fn new(evd: Arc<Evd>) -> Self {
        Self {
            evd,
            low: AtomicU32::new(0),
            armed: AtomicBool::new(false),
        }
    }

    /// Returns the watermark.
    pub(super) fn get(&self) -> u32 {
        self.low.load_acquire()
    }

    /// Sets the watermark; 0 turns it off. The caller serialises calls.
    pub(super) fn arm(&self, low: u32) {
        self.low.store_release(low);
        self.armed.swap(low != 0);
    }

    /// Reports the event, unless it was reported since the watermark was set. Context: any.
    pub(super) fn report(&self, srq: u64) {
        if self.armed.swap(false) {
            self.evd.report(&Event::Async {
                cause: AsyncEvent::EpBroken,
                object: srq,
                reason: REASON_LOW_WATERMARK,
            });
        }
    }
}

impl Handler for Srq {
    fn limit_reached(this: ArcBorrow<'_, Self>) {
        this.watermark.report(this.handle());
    }
}
