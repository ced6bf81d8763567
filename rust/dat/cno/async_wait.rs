// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waits on a Consumer Notification Object (CNO) without a thread.

use super::{
    wait::{
        WaitResult,
        WaiterCount, //
    },
    Cno, //
};
use crate::{
    dat::prelude::*,
    sys::wait::{
        HasHead,
        Head,
        WaitEntry,
        Wake, //
    },
};
use core::task::Poll;

impl HasHead for Cno {
    fn head(&self) -> &Head {
        self.sleepers.head()
    }
}

/// Wait on a CNO without a thread. The drop ends the wait.
pub(crate) struct CnoAsyncWait {
    cno: Arc<Cno>,
    /// Value of `Inner::deserted` when the wait began.
    deserted: u32,
    // Dropped in this order. Leaves the wait queue first, and then passes a trigger that this
    // waiter has not used to another waiter.
    entry: Option<WaitEntry<Cno>>,
    _count: WaiterCount<Arc<Cno>>,
}

impl CnoAsyncWait {
    /// Becomes a waiter of the CNO.
    pub(crate) fn new(cno: Arc<Cno>) -> Self {
        let count = WaiterCount::new(cno.clone());
        let deserted = cno.inner.lock().deserted;
        Self {
            cno,
            deserted,
            entry: None,
            _count: count,
        }
    }

    /// Lets triggers call `waker`. A [poll](CnoAsyncWait::poll) has to follow.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.entry = Some(WaitEntry::new(self.cno.clone(), waker)?);
        Ok(())
    }

    /// Takes a trigger if there is one, and returns the handle of its EVD, or 0 for a trigger by
    /// the consumer. If there is none, the next one calls the waker.
    ///
    /// Context: process; sleeps for short times only.
    ///
    /// # Errors
    ///
    /// ABORT: see [`Cno::wait`].
    pub(crate) fn poll(&mut self) -> Poll<DatResult<u64>> {
        loop {
            self.cno.recheck();
            let taken = self.cno.inner.lock().take(self.deserted);
            match taken {
                None => return Poll::Pending,
                Some(WaitResult::Evd(evd)) if self.cno.sources.exists(evd) => {
                    return Poll::Ready(Ok(evd))
                }
                // The EVD was freed in the meantime; or EVDs have to be checked.
                Some(WaitResult::Evd(_) | WaitResult::Unchecked) => {}
                Some(WaitResult::TriggeredByConsumer) => return Poll::Ready(Ok(0)),
                Some(WaitResult::End) => return Poll::Ready(Err(Kind::Abort.into())),
            }
        }
    }
}
