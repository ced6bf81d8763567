// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Event Dispatchers.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    bindings,
    cno::Cno,
    error::{
        to_result,
        Error,
        Result, //
    },
    event::Event,
    handler::{
        Handler,
        ParallelHandler,
        Upcalls, //
    },
    ia::count, //
};
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full, //
        },
        Arc, //
    },
};

/// Event streams that an Event Dispatcher takes.
#[derive(Clone, Copy)]
pub struct Streams(u32);

impl Streams {
    /// Connection requests.
    pub const CR: Self = Self(bindings::DAT_EVD_CR_FLAG);
    /// Completions of DTOs.
    pub const DTO: Self = Self(bindings::DAT_EVD_DTO_FLAG);
    /// Connection events.
    pub const CONNECTION: Self = Self(bindings::DAT_EVD_CONNECTION_FLAG);
    /// Completions of binds.
    pub const RMR_BIND: Self = Self(bindings::DAT_EVD_RMR_BIND_FLAG);
    /// Software events.
    pub const SOFTWARE: Self = Self(bindings::DAT_EVD_SOFTWARE_FLAG);
}

impl core::ops::BitOr for Streams {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Dispatcher that is freed after the Endpoints and service points that use it.
struct Dispatcher {
    adapter: Arc<Adapter>,
    handle: Handle,
    /// The adapter frees it.
    is_async: bool,
    has_handler: Atomic<bool>,
}

impl Dispatcher {
    fn free(&self) {
        if self.is_async {
            return;
        }
        // SAFETY: The call has no pointers.
        let ret = unsafe { bindings::dat_evd_free(self.handle.raw()) };
        // On an error the adapter keeps the handler until it is closed. That is so in an upcall of
        // this EVD, which is in progress.
        if ret == bindings::DAT_SUCCESS {
            self.adapter.drop_handler(self.handle);
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.free();
    }
}

/// Identity of an Event Dispatcher, as a trigger of a [`Cno`] names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvdId(Handle);

impl EvdId {
    pub(crate) fn from_raw(raw: *mut c_void) -> Self {
        Self(Handle::from_raw(raw))
    }
}

/// Event Dispatcher (EVD): a queue of events. Clones are the same queue.
///
/// A handler that has a clone keeps the EVD until the adapter is closed.
#[derive(Clone)]
pub struct Evd(Arc<Dispatcher>);

impl Evd {
    pub(crate) fn new(adapter: &Arc<Adapter>, streams: Streams, qlen: u32) -> Result<Self> {
        // SAFETY: `evd` is valid for writes. No upcall is needed without upcalls.
        let handle = Handle::made(|evd| unsafe {
            bindings::dat_evd_kcreate(
                adapter.ia.raw(),
                count(qlen),
                bindings::DAT_UPCALL_DISABLE as i32,
                core::ptr::null(),
                streams.0,
                evd,
            )
        })?;
        Self::wrap(adapter, handle, false)
    }

    pub(crate) fn of_adapter(adapter: &Arc<Adapter>, handle: Handle) -> Result<Self> {
        Self::wrap(adapter, handle, true)
    }

    fn wrap(adapter: &Arc<Adapter>, handle: Handle, is_async: bool) -> Result<Self> {
        let dispatcher = Dispatcher {
            adapter: adapter.clone(),
            handle,
            is_async,
            has_handler: Atomic::new(false),
        };
        Ok(Self(Arc::new(dispatcher, GFP_KERNEL)?))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.0.handle
    }

    /// Returns the identity that triggers have.
    pub fn id(&self) -> EvdId {
        EvdId(self.0.handle)
    }

    /// Triggers a CNO for each event that is queued from now on, or none: `dat_evd_modify_cno`.
    pub fn set_cno(&self, cno: Option<&Cno>) -> Result {
        let cno = cno.map_or(Handle::NULL, Cno::handle);
        // SAFETY: The call has no pointers.
        to_result(unsafe { bindings::dat_evd_modify_cno(self.0.handle.raw(), cno.raw()) })
    }

    /// Waits up to `timeout` microseconds for an event, without end for `None`: `dat_evd_wait`.
    pub fn wait(&self, timeout: Option<u32>) -> Result<Event> {
        let timeout = timeout.unwrap_or(u32::MAX);
        let mut event = bindings::DAT_EVENT::default();
        // SAFETY: `event` is valid for writes, and the last pointer may be NULL.
        to_result(unsafe {
            bindings::dat_evd_wait(
                self.0.handle.raw(),
                timeout,
                1,
                &raw mut event,
                core::ptr::null_mut(),
            )
        })?;
        Ok(Event::new(&self.0.adapter, &event))
    }

    /// Takes the oldest event, or returns QUEUE_EMPTY: `dat_evd_dequeue`.
    pub fn dequeue(&self) -> Result<Event> {
        let mut event = bindings::DAT_EVENT::default();
        // SAFETY: `event` is valid for writes.
        to_result(unsafe { bindings::dat_evd_dequeue(self.0.handle.raw(), &raw mut event) })?;
        Ok(Event::new(&self.0.adapter, &event))
    }

    /// Queues a software event, which carries a number: `dat_evd_post_se`.
    pub fn post(&self, number: u64) -> Result {
        let mut event = bindings::DAT_EVENT {
            event_number: bindings::DAT_SOFTWARE_EVENT,
            ..Default::default()
        };
        event.event_data.software_event_data = bindings::DAT_SOFTWARE_EVENT_DATA {
            pointer: core::ptr::without_provenance_mut(number as usize),
        };
        // SAFETY: `event` is valid for reads. Its pointer is a number.
        to_result(unsafe { bindings::dat_evd_post_se(self.0.handle.raw(), &raw const event) })
    }

    /// Hands all events to `handler` from now on, those that are queued first. An EVD has one
    /// handler at most, and no waiter beside it.
    ///
    /// # Errors
    ///
    /// INVALID_STATE (EVD in use) if it has a handler.
    pub fn set_handler(&self, handler: impl Handler) -> Result {
        self.enable(Upcalls::exclusive(handler))
    }

    /// As [`Self::set_handler`], with several events at a time.
    ///
    /// # Errors
    ///
    /// As of [`Self::set_handler`].
    pub fn set_parallel_handler(&self, handler: impl ParallelHandler) -> Result {
        self.enable(Upcalls::parallel(handler))
    }

    /// Frees the dispatcher before its last clone is dropped, and drops its handler. Waits for the
    /// upcall in progress. It ends a handler that keeps Endpoints of this dispatcher, although
    /// these keep the dispatcher. Endpoints that use it are freed before. Has no effect in one of
    /// its own upcalls, while a thread waits, while a service point reports here, and on the
    /// dispatcher of an adapter.
    pub fn free(&self) {
        self.0.free();
    }

    fn enable<H: Send + 'static>(&self, upcalls: Upcalls<H>) -> Result {
        if self.0.has_handler.xchg(true, Full) {
            let in_use = bindings::DAT_INVALID_STATE_EVD_IN_USE;
            return Err(Error::new(bindings::DAT_INVALID_STATE, in_use));
        }
        let enabled = upcalls.enable(&self.0.adapter, self.0.handle);
        if enabled.is_err() {
            self.0.has_handler.xchg(false, Full);
        }
        enabled
    }
}
