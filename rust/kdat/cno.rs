// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Consumer Notification Objects.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    bindings,
    error::{
        kind,
        to_result,
        Result, //
    },
    evd::EvdId, //
};
use kernel::sync::Arc;

/// Consumer Notification Object (CNO): waits for many Event Dispatchers, which trigger it
/// ([`Evd::set_cno`](crate::Evd::set_cno)). It has no agent.
///
/// Its drop frees it, unless a dispatcher triggers it or a thread waits: then it is freed with the
/// adapter.
pub struct Cno {
    handle: Handle,
    _adapter: Arc<Adapter>,
}

impl Cno {
    pub(crate) fn new(adapter: &Arc<Adapter>) -> Result<Self> {
        let none = bindings::DAT_OS_WAIT_PROXY_AGENT::default();
        let handle = Handle::made(|cno| {
            // SAFETY: `cno` is valid for writes, and there is no agent.
            unsafe { bindings::dat_cno_create(adapter.ia.raw(), none, cno) }
        })?;
        Ok(Self {
            handle,
            _adapter: adapter.clone(),
        })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// Waits up to `timeout` microseconds for a trigger, without end for `None`: `dat_cno_wait`.
    /// Returns the dispatcher that has triggered, or `None` for [`Self::trigger`].
    ///
    /// # Errors
    ///
    /// QUEUE_EMPTY if the time is over; ABORT when the adapter is closed, or when no dispatcher
    /// triggers the CNO any more; INTERRUPTED_CALL after a signal.
    pub fn wait(&self, timeout: Option<u32>) -> Result<Option<EvdId>> {
        let mut evd = core::ptr::null_mut();
        let timeout = timeout.unwrap_or(u32::MAX);
        // SAFETY: `evd` is valid for writes.
        to_result(unsafe { bindings::dat_cno_wait(self.handle.raw(), timeout, &raw mut evd) })?;
        Ok((!evd.is_null()).then(|| EvdId::from_raw(evd)))
    }

    /// As [`Self::wait`], without waiting. Returns `None` if there is no trigger.
    pub fn poll(&self) -> Result<Option<Option<EvdId>>> {
        match self.wait(Some(0)) {
            Ok(trigger) => Ok(Some(trigger)),
            Err(error) if error.kind() == kind::QUEUE_EMPTY => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Triggers the CNO as a dispatcher does: `dat_cno_trigger`.
    pub fn trigger(&self) -> Result {
        // SAFETY: The call has no pointers.
        to_result(unsafe { bindings::dat_cno_trigger(self.handle.raw()) })
    }
}

impl Drop for Cno {
    fn drop(&mut self) {
        // SAFETY: The call has no pointers.
        unsafe { bindings::dat_cno_free(self.handle.raw()) };
    }
}
