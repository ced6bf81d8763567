// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! OS wait proxy agents, which are signalled with each trigger of a Consumer Notification Object.

use crate::{
    dat::prelude::*,
    sys::eventfd::EventFd, //
};

/// Agent of a kernel consumer: a function.
pub(crate) trait Proxy: Send + Sync {
    /// Reports a trigger. `evd` is the handle of the EVD that has triggered, or 0.
    ///
    /// Context: that of the event. It may be hard IRQ, and spinlocks are held. So the function may
    /// only wake threads or queue work.
    fn call(&self, evd: u64);
}

/// OS wait proxy agent.
pub(crate) enum Agent {
    /// Eventfd of a process.
    EventFd(EventFd),
    /// Function of a kernel consumer.
    Proxy(KBox<dyn Proxy>),
}

impl Agent {
    /// Reports a trigger of this EVD, or of the consumer if `evd` is 0.
    ///
    /// Context: any, including hard IRQ.
    pub(super) fn signal(&self, evd: u64) {
        match self {
            Self::EventFd(eventfd) => eventfd.signal(),
            Self::Proxy(proxy) => proxy.call(evd),
        }
    }
}
