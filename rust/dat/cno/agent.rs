// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! OS wait proxy agents: what is told of each trigger of a CNO.

use crate::{
    dat::prelude::*,
    sys::eventfd::EventFd, //
};

/// A function of a consumer in the kernel.
pub(crate) trait Proxy: Send + Sync {
    /// `evd` is the one that has triggered, or 0.
    ///
    /// Context: that of the event, which may be hard IRQ, with spinlocks held: only wakes or queues.
    fn call(&self, evd: u64);
}

/// What is told of each trigger.
pub(crate) enum Agent {
    /// An eventfd of a process.
    EventFd(EventFd),
    /// A function in the kernel.
    Proxy(KBox<dyn Proxy>),
}

impl Agent {
    /// Tells of a trigger by this EVD, or by none if that is 0. Context: any, including hard IRQ.
    pub(super) fn signal(&self, evd: u64) {
        match self {
            Self::EventFd(eventfd) => eventfd.signal(),
            Self::Proxy(proxy) => proxy.call(evd),
        }
    }
}
