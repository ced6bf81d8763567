// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! OS wait proxy agents, which are signalled with each trigger of a Consumer Notification Object.

use super::Cno;
use crate::{
    dat::prelude::*,
    model::cno::AgentTrigger,
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
    /// Eventfd of a process. It counts triggers; [`Cno::take_for_agent`] returns their EVDs.
    EventFd(EventFd),
    /// Function of a kernel consumer.
    Proxy(KBox<dyn Proxy>),
}

impl Cno {
    /// Takes a trigger for the thread of a process that calls its agent, and returns the EVD's
    /// handle, or 0 for a trigger by the consumer. Waits take the same triggers, independently.
    ///
    /// Context: process; does not sleep.
    ///
    /// # Errors
    ///
    /// * QUEUE_EMPTY if the agent has taken all triggers since it was set, or is no eventfd;
    /// * ABORT if the CNO is closed.
    pub(crate) fn take_for_agent(&self) -> DatResult<u64> {
        loop {
            let taken = {
                let mut inner = self.inner.lock();
                if inner.closed {
                    return Err(Kind::Abort.into());
                }
                inner.table.take_for_agent()
            };
            match taken {
                None => return Err(Kind::QueueEmpty.into()),
                Some(AgentTrigger::Consumer) => return Ok(0),
                Some(AgentTrigger::Evd(_, evd)) if self.sources.exists(evd) => return Ok(evd),
                // The EVD was freed in the meantime.
                Some(AgentTrigger::Evd(slot, evd)) => {
                    self.inner.lock().table.clear_for_agent(slot, evd);
                }
            }
        }
    }
}
