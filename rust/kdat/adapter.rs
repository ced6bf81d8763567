// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of an open adapter that its objects share.

use crate::{
    bindings,
    error::{
        kind,
        to_result,
        Result, //
    },
    reserved::SPARE,
    slots::Slots, //
};
use kernel::{
    ffi::c_void,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};

/// Handle of a DAT object: a number, which kDAPL checks in each call.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle(usize);

impl Handle {
    /// DAT_HANDLE_NULL.
    pub(crate) const NULL: Self = Self(0);

    /// Converts a handle from its C form.
    pub(crate) fn from_raw(raw: *mut c_void) -> Self {
        Self(raw.addr())
    }

    /// Converts a handle to its C form, which is never dereferenced.
    pub(crate) fn raw(self) -> *mut c_void {
        core::ptr::without_provenance_mut(self.0)
    }

    /// Returns the handle that a call writes to its output argument.
    pub(crate) fn made(call: impl FnOnce(*mut *mut c_void) -> u32) -> Result<Self> {
        let mut handle = core::ptr::null_mut();
        to_result(call(&raw mut handle))?;
        Ok(Self::from_raw(handle))
    }
}

/// Value that the adapter keeps, in a list without allocations.
pub(crate) trait Held: Send {
    /// Returns the link to the next value.
    fn next(&mut self) -> &mut Option<KBox<dyn Held>>;

    /// Returns the Event Dispatcher whose handler this is.
    fn evd(&self) -> Option<Handle> {
        None
    }
}

/// List of values.
#[derive(Default)]
struct List(Option<KBox<dyn Held>>);

impl List {
    fn push(&mut self, mut value: KBox<dyn Held>) {
        *value.next() = self.0.take();
        self.0 = Some(value);
    }

    fn pop(&mut self) -> Option<KBox<dyn Held>> {
        let mut first = self.0.take()?;
        self.0 = first.next().take();
        Some(first)
    }

    /// Takes the handler of an Event Dispatcher out of the list.
    fn take(&mut self, evd: Handle) -> Option<KBox<dyn Held>> {
        let mut others = Self::default();
        let mut found = None;
        while let Some(value) = self.pop() {
            if value.evd() == Some(evd) {
                found = Some(value);
            } else {
                others.push(value);
            }
        }
        *self = others;
        found
    }
}

impl Drop for List {
    /// Drops one value after the other: a recursion might exceed the stack.
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// Values that are dropped after the close of the adapter. Fields are protected by `Adapter::keep`.
struct Keep {
    /// The adapter is closed: there are no upcalls and no DMA.
    is_closed: bool,
    held: List,
}

/// Sizes of the table of slots.
#[derive(Default)]
struct Capacity {
    chunks: usize,
    slots: usize,
    /// Number of slots that objects have reserved.
    reserved: usize,
}

/// The table is too small.
struct Short {
    /// Number of chunks that it has.
    chunks: usize,
}

/// Open adapter. Its objects have references to it.
#[pin_data]
pub(crate) struct Adapter {
    pub(crate) ia: Handle,
    #[pin]
    keep: Mutex<Keep>,
    #[pin]
    capacity: Mutex<Capacity>,
    pub(crate) slots: Slots,
    /// Number of completions and registrations.
    position: Atomic<u64>,
}

impl Adapter {
    /// Makes the state of an adapter that was opened.
    pub(crate) fn new(ia: Handle) -> Result<Arc<Self>, kernel::error::Error> {
        let keep = Keep {
            is_closed: false,
            held: List::default(),
        };
        Arc::pin_init(
            pin_init!(Self {
                ia,
                keep <- new_mutex!(keep, "kdat::Adapter::keep"),
                capacity <- new_mutex!(Capacity::default(), "kdat::Adapter::capacity"),
                slots: Slots::new(),
                position: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Raises the reservation of an object, which is `mine`, to a number of slots. Those are
    /// allocated unless others were released. Context: process; sleeps.
    pub(crate) fn reserve(&self, mine: &Atomic<usize>, number: usize) -> Result {
        while let Err(Short { chunks }) = self.try_reserve(mine, number) {
            // Without the lock: reclaim may wait for a thread that releases its slots.
            let chunk = Slots::chunk(chunks)?;
            let mut capacity = self.capacity.lock();
            if capacity.chunks == chunks {
                capacity.slots += self.slots.add(chunks, chunk)?;
                capacity.chunks += 1;
            }
        }
        Ok(())
    }

    /// Raises the reservation of an object, if the table is large enough.
    fn try_reserve(&self, mine: &Atomic<usize>, number: usize) -> Result<(), Short> {
        let mut capacity = self.capacity.lock();
        let more = number.saturating_sub(mine.load(Relaxed));
        let reserved = capacity.reserved.saturating_add(more);
        if capacity.slots < reserved.saturating_add(SPARE) {
            let chunks = capacity.chunks;
            return Err(Short { chunks });
        }
        capacity.reserved = reserved;
        mine.fetch_add(more, Relaxed);
        Ok(())
    }

    /// Lets others reserve the slots of an object. Context: process; sleeps.
    pub(crate) fn release(&self, mine: &Atomic<usize>) {
        let mut capacity = self.capacity.lock();
        capacity.reserved = capacity.reserved.saturating_sub(mine.xchg(0, Relaxed));
    }

    /// Returns the position of a completion or of a registration among all of them.
    pub(crate) fn next_position(&self) -> u64 {
        self.position.fetch_add(1, Full)
    }

    /// Drops the memory of an LMR, if `freed` says that it was freed. Otherwise the device may
    /// access the memory: until the adapter is closed, or for ever if the driver has failed to
    /// destroy the region (INTERNAL_ERROR).
    pub(crate) fn drop_memory(&self, freed: u32, memory: KBox<dyn Held>) {
        match to_result(freed) {
            Ok(()) => drop(memory),
            Err(error) if error.kind() == kind::INTERNAL_ERROR => core::mem::forget(memory),
            Err(_) => self.hold(memory),
        }
    }

    /// Keeps a value until the adapter is closed, or drops it if it is closed.
    pub(crate) fn hold(&self, value: KBox<dyn Held>) {
        let mut keep = self.keep.lock();
        if !keep.is_closed {
            keep.held.push(value);
            return;
        }
        drop(keep);
        drop(value);
    }

    /// Drops the handler of an Event Dispatcher that was freed.
    pub(crate) fn drop_handler(&self, evd: Handle) {
        let handler = self.keep.lock().held.take(evd);
        drop(handler);
    }

    /// Drops the buffers of an Endpoint or a Shared Receive Queue that was freed. The device
    /// accesses none of them any more.
    pub(crate) fn drop_posted(&self, owner: Handle) {
        self.drop_posted_of(Some(owner));
    }

    /// Returns the number of DTOs that an Endpoint or a Shared Receive Queue has posted.
    pub(crate) fn posted_of(&self, owner: Handle) -> usize {
        let mut index = 0;
        core::iter::from_fn(|| self.slots.next_of(Some(owner), &mut index)).count()
    }

    fn drop_posted_of(&self, owner: Option<Handle>) {
        let mut index = 0;
        while let Some(cookie) = self.slots.next_of(owner, &mut index) {
            // `None` if an event has it.
            drop(self.slots.take(cookie));
        }
    }

    /// Closes the adapter, and drops all that was kept for it. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_STATE in an upcall of the adapter. It stays open.
    pub(crate) fn close(&self) -> Result {
        // SAFETY: The call has no pointers.
        let ret = unsafe { bindings::dat_ia_close(self.ia.raw(), bindings::DAT_CLOSE_ABRUPT_FLAG) };
        to_result(ret)?;
        let held = {
            let mut keep = self.keep.lock();
            keep.is_closed = true;
            core::mem::take(&mut keep.held)
        };
        // Outside of the lock: both drop values of the consumer, which make calls of this crate.
        self.drop_posted_of(None);
        drop(held);
        Ok(())
    }
}
