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
        AtomicHandler,
        Handler,
        ParallelHandler,
        Upcalls, //
    },
    ia::count,
    reserved::{
        Reserved,
        BATCH,
        TAKERS, //
    }, //
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

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
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
    kind: Kind,
    has_handler: Atomic<bool>,
    reserved: Reserved,
}

/// Kind of an Event Dispatcher.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It waits, or has upcalls in threads.
    Threads,
    /// It has upcalls in soft interrupts.
    SoftInterrupts,
    /// It belongs to the adapter, which frees it.
    OfAdapter,
}

impl Dispatcher {
    fn free(&self) -> Result {
        // SAFETY: The call has no pointers.
        to_result(unsafe { bindings::dat_evd_free(self.handle.raw()) })?;
        self.adapter.drop_handler(self.handle);
        self.reserved.release(&self.adapter);
        Ok(())
    }

    /// Reserves slots for the DTOs whose events may be queued.
    fn reserve(&self, qlen: u32) -> Result {
        let number = (qlen as usize).saturating_add(BATCH + TAKERS);
        self.reserved.raise_to(&self.adapter, number)
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        if self.kind != Kind::OfAdapter {
            // On an error the adapter keeps the handler until it is closed. That is so in an upcall
            // of this EVD, which is in progress.
            let _ = self.free();
        }
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
        Self::wrap(adapter, handle, Kind::Threads, streams)
    }

    pub(crate) fn new_bh(
        adapter: &Arc<Adapter>,
        streams: Streams,
        qlen: u32,
        budget: u32,
    ) -> Result<Self> {
        if streams.has(Streams::CR) {
            return Err(Error::new(bindings::DAT_INVALID_PARAMETER, 0));
        }
        // SAFETY: As above.
        let handle = Handle::made(|evd| unsafe {
            bindings::kdapl_evd_create_bh(
                adapter.ia.raw(),
                count(qlen),
                bindings::DAT_UPCALL_DISABLE as i32,
                core::ptr::null(),
                count(budget),
                streams.0,
                evd,
            )
        })?;
        Self::wrap(adapter, handle, Kind::SoftInterrupts, streams)
    }

    pub(crate) fn of_adapter(adapter: &Arc<Adapter>, handle: Handle) -> Result<Self> {
        Self::wrap(adapter, handle, Kind::OfAdapter, Streams(0))
    }

    fn wrap(adapter: &Arc<Adapter>, handle: Handle, kind: Kind, streams: Streams) -> Result<Self> {
        let dispatcher = Dispatcher {
            adapter: adapter.clone(),
            handle,
            kind,
            has_handler: Atomic::new(false),
            reserved: Reserved::none(),
        };
        let evd = Self(Arc::new(dispatcher, GFP_KERNEL)?);
        if streams.has(Streams::DTO) {
            evd.reserve()?;
        }
        Ok(evd)
    }

    /// Reserves slots for all events that may be queued.
    fn reserve(&self) -> Result {
        self.0.reserve(self.qlen()?)
    }

    /// Reserves slots after a change of the length, if the EVD has some.
    pub(crate) fn reserve_again(&self) -> Result {
        if self.0.reserved.is_none() {
            return Ok(());
        }
        self.reserve()
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

    /// Takes the oldest event, or returns QUEUE_EMPTY: `dat_evd_dequeue`. Context: process,
    /// or any for an EVD of [`Ia::create_bh_evd`](crate::Ia::create_bh_evd).
    pub fn dequeue(&self) -> Result<Event> {
        let mut event = bindings::DAT_EVENT::default();
        // SAFETY: `event` is valid for writes.
        to_result(unsafe { bindings::dat_evd_dequeue(self.0.handle.raw(), &raw mut event) })?;
        Ok(Event::new(&self.0.adapter, &event))
    }

    /// Queues a software event, which carries a number: `dat_evd_post_se`. Context: any.
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
    /// INVALID_STATE (EVD in use) if it has a handler. INVALID_PARAMETER if it makes upcalls in
    /// soft interrupts.
    pub fn set_handler(&self, handler: impl Handler) -> Result {
        self.enable(Upcalls::exclusive(handler), Kind::Threads)
    }

    /// As [`Self::set_handler`], for an EVD of [`Ia::create_bh_evd`](crate::Ia::create_bh_evd).
    ///
    /// # Errors
    ///
    /// INVALID_STATE (EVD in use) if it has a handler. INVALID_PARAMETER if it makes upcalls in
    /// threads.
    pub fn set_atomic_handler(&self, handler: impl AtomicHandler) -> Result {
        self.enable(Upcalls::atomic(handler), Kind::SoftInterrupts)
    }

    /// As [`Self::set_handler`], with several events at a time.
    ///
    /// # Errors
    ///
    /// As of [`Self::set_handler`].
    pub fn set_parallel_handler(&self, handler: impl ParallelHandler) -> Result {
        self.enable(Upcalls::parallel(handler), Kind::Threads)
    }

    /// Frees the dispatcher before its last clone is dropped, and drops its handler. Waits for the
    /// upcall in progress. It ends a handler that keeps Endpoints of this dispatcher, although
    /// these keep the dispatcher. Endpoints that use it are freed before.
    ///
    /// # Errors
    ///
    /// INVALID_STATE in one of its own upcalls and in an interrupt, while a thread waits, while an
    /// Endpoint or a service point reports here, and for the dispatcher of an adapter: it stays,
    /// with its handler, until its last clone is dropped or the adapter closed. INVALID_HANDLE if
    /// it was freed before, or the adapter is closed.
    pub fn free(&self) -> Result {
        self.0.free()
    }

    fn enable<H: Send + 'static>(&self, upcalls: Upcalls<H>, kind: Kind) -> Result {
        if (self.0.kind == Kind::SoftInterrupts) != (kind == Kind::SoftInterrupts) {
            return Err(Error::new(bindings::DAT_INVALID_PARAMETER, 0));
        }
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
