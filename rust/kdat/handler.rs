// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handlers of upcalls.

use crate::{
    adapter::{
        Adapter,
        Handle,
        Held, //
    },
    bindings,
    error::{
        to_result,
        Result, //
    },
    event::Event, //
};
use core::{
    cell::UnsafeCell,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

/// Takes the events of an Event Dispatcher (EVD), one after the other, in their order.
///
/// Context: work item; may sleep. Any call may be made, but no [`Ia`](crate::Ia) may be dropped.
pub trait Handler: Send + 'static {
    /// Takes one event.
    fn handle(&mut self, event: Event);
}

impl<F: FnMut(Event) + Send + 'static> Handler for F {
    fn handle(&mut self, event: Event) {
        self(event);
    }
}

/// Takes the events of an EVD in a soft interrupt, one after the other, in their order. The crate
/// has no closures for it, so that a consumer has to say that a type is made for this context.
///
/// Context: soft interrupt. It must not sleep. It may:
///
/// - post: [`Ep::post`](crate::Ep::post), [`Ep::post_list`](crate::Ep::post_list),
///   [`Srq::post`](crate::Srq::post), [`Evd::post`](crate::Evd::post)
/// - register and invalidate by requests: all calls of an [`Fmr`](crate::Fmr), but its drop
/// - dequeue from other EVDs of this kind
/// - change the bytes of buffers, and make DTOs of them, but not with
///   [`Dto::with`](crate::Dto::with), which allocates
///
/// It must not drop objects of the crate, nor the last [`Buffer`](crate::Buffer) or
/// [`Part`](crate::Part) of a region, nor memory of a DTO: their drops sleep. So a buffer that it
/// does not post again has to be kept for a thread. Spinlocks that it takes are taken elsewhere
/// with soft interrupts off.
pub trait AtomicHandler: Send + 'static {
    /// Takes one event.
    fn handle(&mut self, event: Event);
}

/// Atomic handler, called like others of which one upcall is in progress at a time.
pub(crate) struct Atomic<H>(H);

impl<H: AtomicHandler> Handler for Atomic<H> {
    fn handle(&mut self, event: Event) {
        self.0.handle(event);
    }
}

/// Takes the events of an EVD, several at a time. Context: as of [`Handler`].
pub trait ParallelHandler: Send + Sync + 'static {
    /// Takes one event. Up to 16 threads are in this method at a time.
    fn handle(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync + 'static> ParallelHandler for F {
    fn handle(&self, event: Event) {
        self(event);
    }
}

/// Handler and the adapter of its events, at a fixed address.
struct Cell<H> {
    adapter: Arc<Adapter>,
    handler: UnsafeCell<H>,
}

/// Owner of a [`Cell`]. Borrowing the owner does not borrow the cell, which an upcall may be using.
///
/// # Invariants
///
/// `cell` was made from a box, which this value owns.
struct Owner<H> {
    cell: NonNull<Cell<H>>,
    evd: Handle,
    next: Option<KBox<dyn Held>>,
}

// SAFETY: The handler may be sent, and the owner gives no other access than its drop.
unsafe impl<H: Send> Send for Owner<H> {}

impl<H> Drop for Owner<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. The adapter drops the owner when no upcall is in progress
        // and none will follow.
        drop(unsafe { KBox::from_raw(self.cell.as_ptr()) });
    }
}

impl<H: Send> Held for Owner<H> {
    fn next(&mut self) -> &mut Option<KBox<dyn Held>> {
        &mut self.next
    }

    fn evd(&self) -> Option<Handle> {
        Some(self.evd)
    }
}

/// Returns the event of an upcall.
///
/// # Safety
///
/// `event` is null or valid.
unsafe fn event_of(adapter: &Adapter, event: *const bindings::DAT_EVENT) -> Option<Event> {
    // SAFETY: By the safety requirement.
    let event = unsafe { event.as_ref() }?;
    Some(Event::new(adapter, event))
}

/// Upcall of an exclusive handler.
///
/// # Safety
///
/// `data` is a `Cell<H>`. No other upcall with it is in progress. `event` is null or valid.
unsafe extern "C" fn exclusive<H: Handler>(
    data: *mut c_void,
    event: *const bindings::DAT_EVENT,
    _more: i32,
) {
    // SAFETY: By the safety requirement.
    let cell = unsafe { &*data.cast::<Cell<H>>() };
    // SAFETY: By the safety requirement.
    if let Some(event) = unsafe { event_of(&cell.adapter, event) } {
        // SAFETY: Only upcalls borrow the handler, and there is one at a time.
        unsafe { &mut *cell.handler.get() }.handle(event);
    }
}

/// Upcall of a parallel handler.
///
/// # Safety
///
/// `data` is a `Cell<H>`. `event` is null or valid.
unsafe extern "C" fn parallel<H: ParallelHandler>(
    data: *mut c_void,
    event: *const bindings::DAT_EVENT,
    _more: i32,
) {
    // SAFETY: By the safety requirement.
    let cell = unsafe { &*data.cast::<Cell<H>>() };
    // SAFETY: By the safety requirement.
    if let Some(event) = unsafe { event_of(&cell.adapter, event) } {
        // SAFETY: Only upcalls borrow the handler, and none exclusively.
        unsafe { &*cell.handler.get() }.handle(event);
    }
}

/// Function, policy and handler that an EVD gets.
pub(crate) struct Upcalls<H> {
    handler: H,
    function: unsafe extern "C" fn(*mut c_void, *const bindings::DAT_EVENT, i32),
    policy: u32,
}

impl<H: Handler> Upcalls<H> {
    pub(crate) fn exclusive(handler: H) -> Self {
        Self {
            handler,
            function: exclusive::<H>,
            policy: bindings::DAT_UPCALL_SINGLE_INSTANCE,
        }
    }
}

impl<H: AtomicHandler> Upcalls<Atomic<H>> {
    pub(crate) fn atomic(handler: H) -> Self {
        Self::exclusive(Atomic(handler))
    }
}

impl<H: ParallelHandler> Upcalls<H> {
    pub(crate) fn parallel(handler: H) -> Self {
        Self {
            handler,
            function: parallel::<H>,
            policy: bindings::DAT_UPCALL_MANY,
        }
    }
}

impl<H: Send + 'static> Upcalls<H> {
    /// Gives the handler to the adapter, and enables upcalls: `dat_evd_modify_upcall`. Events that
    /// are queued have upcalls too. Called once for an EVD.
    pub(crate) fn enable(self, adapter: &Arc<Adapter>, evd: Handle) -> Result {
        let cell = Cell {
            adapter: adapter.clone(),
            handler: UnsafeCell::new(self.handler),
        };
        let cell = NonNull::from(KBox::leak(KBox::new(cell, GFP_KERNEL)?));
        // INVARIANT: The cell was made from a box.
        let owner = Owner {
            cell,
            evd,
            next: None,
        };
        adapter.hold(KBox::new(owner, GFP_KERNEL)?);
        let upcall = bindings::DAT_UPCALL_OBJECT {
            instance_data: cell.as_ptr().cast(),
            upcall_func: Some(self.function),
        };
        // SAFETY: The upcall is valid until the adapter drops the handler, which is after the EVD
        // was freed or the adapter closed. `exclusive` is called one at a time by its policy, the
        // only one that the EVD ever has.
        let enabled = to_result(unsafe {
            bindings::dat_evd_modify_upcall(
                evd.raw(),
                self.policy as i32,
                &raw const upcall,
                bindings::DAT_UPCALL_INVOC_ANY,
            )
        });
        if enabled.is_err() {
            adapter.drop_handler(evd);
        }
        enabled
    }
}
