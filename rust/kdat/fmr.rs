// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that requests on the queue of an Endpoint register and invalidate: fast memory
//! registration (FMR).
//!
//! A registration owns its memory until an event proves that it has ended, or the LMR was freed:
//!
//! ```text
//!   Fmr::register(memory) --> peers access the memory --> Fmr::invalidate, or the peer does it
//!                                                          |
//!                    Fmr::ended(&completion) -> memory <---+
//! ```

use crate::{
    adapter::{
        Handle,
        Held, //
    },
    bindings,
    dto::Remote,
    ep::Ep,
    error::{
        to_result,
        Error,
        Result, //
    },
    event::Completion,
    pz::Pz,
    shared::Access,
    slots::Posted, //
};
use core::ptr::NonNull;
use kernel::{
    bindings::scatterlist,
    prelude::*, //
};

/// Scatterlist, which is not mapped for DMA.
#[derive(Clone, Copy)]
pub struct List {
    /// First entry.
    pub first: NonNull<scatterlist>,
    /// Number of entries.
    pub entries: u32,
    /// The kernel's address of the first byte, which the device takes for the memory.
    pub address: u64,
    /// Number of bytes.
    pub length: u32,
}

/// Memory of the consumer, as a scatterlist.
///
/// # Safety
///
/// `list` returns a scatterlist with this number of entries, which is valid while the value is
/// borrowed. The memory that it names stays allocated until the value is dropped, and no references
/// to its bytes exist before.
pub unsafe trait Scattered: Send + 'static {
    /// Returns the list.
    fn list(&self) -> List;
}

/// Memory at a fixed address, which the adapter can keep.
struct Cell<M> {
    memory: Option<M>,
    next: Option<KBox<dyn Held>>,
}

impl<M: Scattered> Held for Cell<M> {
    fn next(&mut self) -> &mut Option<KBox<dyn Held>> {
        &mut self.next
    }
}

/// End of a registration, as a completion proves it.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    /// Adapter of the event.
    pub(crate) ia: Handle,
    /// Position of the event among the events and registrations of the adapter.
    pub(crate) position: u64,
    /// RMR context that a peer has invalidated, or 0.
    pub(crate) rmr_context: u32,
    /// LMR whose registration a request has ended, and position of that registration.
    pub(crate) registration: (Handle, u64),
}

/// LMR that requests register and invalidate, for memory of the type `M`. Its drop ends a
/// registration, and drops the memory.
pub struct Fmr<M: Scattered> {
    lmr: Handle,
    pz: Pz,
    rmr_context: u32,
    /// Position of the registration.
    since: u64,
    cell: Option<KBox<Cell<M>>>,
}

impl<M: Scattered> Fmr<M> {
    pub(crate) fn new(pz: &Pz, max_pages: u32) -> Result<Self> {
        let cell = Cell {
            memory: None,
            next: None,
        };
        let cell = KBox::new(cell, GFP_KERNEL)?;
        let (ia, zone) = (pz.0.adapter.ia.raw(), pz.0.handle.raw());
        // SAFETY: `lmr` is valid for writes.
        let lmr = Handle::made(|lmr| unsafe {
            bindings::dat_lmr_allocate(ia, zone, max_pages, bindings::DAT_LMR_SCOPE_PZ, lmr)
        })?;
        Ok(Self {
            lmr,
            pz: pz.clone(),
            rmr_context: 0,
            since: 0,
            cell: Some(cell),
        })
    }

    /// Returns whether a registration has the memory.
    pub fn is_registered(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| cell.memory.is_some())
    }

    /// Registers memory by a request on the queue of a connected Endpoint: `dat_lmr_fmr`. Returns
    /// the memory as the peer has to name it, for a later message on the same
    /// Endpoint. The LMR has a registration until [`Self::ended`] returns the memory.
    ///
    /// Only a request that fails has an event, of the operation
    /// [`Operation::Register`](crate::Operation::Register). Context: any.
    ///
    /// # Errors
    ///
    /// INVALID_STATE (LMR in use) if memory is registered. An error returns the memory.
    pub fn register(&mut self, memory: M, access: Access, ep: &Ep) -> Result<Remote, (Error, M)> {
        self.register_with(bindings::DAT_COMPLETION_SUPPRESS_FLAG, memory, access, ep)
    }

    /// As [`Self::register`], but the device reports a success with the next request of the
    /// Endpoint only, which costs it less. The caller posts one right away. The LMR can be
    /// registered again after that request has completed. Context: any.
    ///
    /// # Errors
    ///
    /// As of [`Self::register`].
    pub fn register_with_next(
        &mut self,
        memory: M,
        access: Access,
        ep: &Ep,
    ) -> Result<Remote, (Error, M)> {
        self.register_with(
            bindings::KDAPL_COMPLETION_WITH_NEXT_FLAG,
            memory,
            access,
            ep,
        )
    }

    fn register_with(
        &mut self,
        flags: u32,
        memory: M,
        access: Access,
        ep: &Ep,
    ) -> Result<Remote, (Error, M)> {
        let in_use = bindings::DAT_INVALID_STATE_LMR_IN_USE;
        let in_use = Error::new(bindings::DAT_INVALID_STATE, in_use);
        let Some(cell) = self.cell.as_mut().filter(|cell| cell.memory.is_none()) else {
            return Err((in_use, memory));
        };
        self.since = self.pz.0.adapter.next_position();
        match fast_register(self.lmr, &memory, access, (ep, flags)) {
            Ok(remote) => {
                self.rmr_context = remote.context;
                cell.memory = Some(memory);
                Ok(remote)
            }
            Err(error) => Err((error, memory)),
        }
    }

    /// Ends the registration by a request on the queue of a connected Endpoint:
    /// `dat_lmr_invalidate`. Its event has the operation
    /// [`Operation::Invalidate`](crate::Operation::Invalidate) and this `context`. Context: any.
    pub fn invalidate(&self, ep: &Ep, context: u64) -> Result {
        let adapter = &self.pz.0.adapter;
        let posted = || Posted {
            invalidates: (self.lmr, self.since),
            context,
            ..Posted::default()
        };
        let as_64 = adapter.slots.insert(ep.handle(), posted)?;
        // SAFETY: The call has no pointers.
        let ret = unsafe {
            let cookie = bindings::DAT_CONTEXT { as_64 };
            let flags = bindings::DAT_COMPLETION_DEFAULT_FLAG;
            bindings::dat_lmr_invalidate(self.lmr.raw(), ep.handle().raw(), cookie, flags)
        };
        to_result(ret).inspect_err(|_| drop(adapter.slots.take(as_64)))
    }

    /// Returns the memory if this completion says that the registration has ended: that of the
    /// invalidation, or that of a receive whose message has invalidated the RMR context.
    pub fn ended(&mut self, completion: &Completion) -> Option<M> {
        let end = completion.ended;
        let by_this_side = end.registration == (self.lmr, self.since);
        // A context is that of another registration after 256 more.
        let by_peer = end.rmr_context != 0
            && end.rmr_context == self.rmr_context
            && end.position > self.since;
        let is_this = end.ia == self.pz.0.adapter.ia && (by_this_side || by_peer);
        let cell = self.cell.as_mut().filter(|_| is_this)?;
        cell.memory.take()
    }
}

/// Posts the request of a registration.
fn fast_register<M: Scattered>(
    lmr: Handle,
    memory: &M,
    access: Access,
    (ep, flags): (&Ep, u32),
) -> Result<Remote> {
    let list = memory.list();
    let description = bindings::DAT_REGION_DESCRIPTION {
        for_platform: list.first.as_ptr().cast(),
    };
    // A number that no slot has: a failed registration has no context.
    let cookie = bindings::DAT_CONTEXT { as_64: u64::MAX };
    let mut remote = Remote {
        address: list.address,
        length: list.length,
        context: 0,
    };
    // SAFETY: By the safety requirements of the trait the list is valid during the call, and its
    // memory is until the value is dropped. The caller keeps it until the registration has ended.
    // The output pointers are valid for writes, or NULL where the header allows it.
    to_result(unsafe {
        bindings::dat_lmr_fmr(
            lmr.raw(),
            bindings::DAT_MEM_TYPE_PLATFORM,
            description,
            list.entries,
            access.local() | access.privileges(),
            bindings::DAT_VA_TYPE_VA,
            ep.handle().raw(),
            cookie,
            flags,
            core::ptr::null_mut(),
            &raw mut remote.context,
        )
    })?;
    Ok(remote)
}

impl<M: Scattered> Drop for Fmr<M> {
    fn drop(&mut self) {
        // SAFETY: The call has no pointers.
        let freed = unsafe { bindings::dat_lmr_free(self.lmr.raw()) };
        // On an error the adapter is closed or being closed, or a completion is outstanding.
        if let Some(cell) = self.cell.take() {
            self.pz.0.adapter.drop_memory(freed, cell);
        }
    }
}
