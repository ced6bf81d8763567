// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Interface Adapters.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    address::Address,
    bindings,
    cno::Cno,
    ep::Ep,
    error::{
        to_result,
        Error,
        Result, //
    },
    evd::{
        Evd,
        Streams, //
    },
    points::{
        Csp,
        Rsp, //
    },
    pz::Pz,
    service::{
        Origin,
        Psp, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

/// Limits of an adapter.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests, and receives, that an Endpoint may have outstanding.
    pub dtos: u32,
    /// Events that an Event Dispatcher may hold.
    pub events: u32,
    /// Segments of a send or a receive.
    pub segments: u32,
    /// Segments of an RDMA read.
    pub read_segments: u32,
    /// Segments of an RDMA write.
    pub write_segments: u32,
    /// RDMA reads that an Endpoint may start at a time.
    pub reads_out: u32,
    /// RDMA reads that a peer may start at a time on an Endpoint.
    pub reads_in: u32,
    /// Bytes of a registration.
    pub region: u32,
    /// An RDMA read requires memory that the peer may write, as over iWARP. Buffers and the memory
    /// of [`Pz::map`] are not: a read into them has PRIVILEGES_VIOLATION.
    pub reads_are_writes: bool,
}

/// Interface Adapter (IA): the consumer's view of an RDMA device. Its drop closes the adapter with
/// all objects; those that are left then are refused with INVALID_HANDLE.
///
/// Drop it outside of the adapter's upcalls, for which the close would wait.
pub struct Ia {
    adapter: Arc<Adapter>,
    async_evd: Evd,
}

impl Ia {
    /// Opens the adapter of an RDMA device, a network device or an IP address: `dat_ia_open`.
    /// `async_qlen` is the queue length of its asynchronous Event Dispatcher.
    pub fn open(name: &CStr, async_qlen: u32) -> Result<Self> {
        let mut async_evd = core::ptr::null_mut();
        let ia = Handle::made(|ia| {
            // SAFETY: The name is NUL-terminated, and the other pointers are valid for writes.
            unsafe {
                bindings::dat_ia_openv(
                    name.as_char_ptr(),
                    count(async_qlen),
                    &raw mut async_evd,
                    ia,
                    bindings::DAT_VERSION_MAJOR,
                    bindings::DAT_VERSION_MINOR,
                    1,
                )
            }
        })?;
        Self::own(ia, Handle::from_raw(async_evd))
    }

    /// As [`Ia::open`], in another network namespace than the initial one: `kdapl_ia_open_net`. The
    /// adapter keeps the namespace until it is dropped.
    ///
    /// # Safety
    ///
    /// `net` is a `struct net` of C, to which the caller has a reference during the call.
    pub unsafe fn open_in(net: NonNull<c_void>, name: &CStr, async_qlen: u32) -> Result<Self> {
        let mut async_evd = core::ptr::null_mut();
        let ia = Handle::made(|ia| {
            // SAFETY: The name is NUL-terminated, and the pointers for results are valid for
            // writes. The caller has a reference to the namespace.
            unsafe {
                bindings::kdapl_ia_open_net(
                    name.as_char_ptr(),
                    net.as_ptr().cast(),
                    count(async_qlen),
                    &raw mut async_evd,
                    ia,
                )
            }
        })?;
        Self::own(ia, Handle::from_raw(async_evd))
    }

    /// Wraps an adapter that was opened, or closes it.
    fn own(ia: Handle, async_evd: Handle) -> Result<Self> {
        Self::wrap(ia, async_evd).inspect_err(|_| {
            // SAFETY: The call has no pointers. Nobody else has the handle.
            unsafe { bindings::dat_ia_close(ia.raw(), bindings::DAT_CLOSE_ABRUPT_FLAG) };
        })
    }

    fn wrap(ia: Handle, async_evd: Handle) -> Result<Self> {
        let adapter = Adapter::new(ia).map_err(|_| Error::MEMORY)?;
        Ok(Self {
            async_evd: Evd::of_adapter(&adapter, async_evd)?,
            adapter,
        })
    }

    /// Returns the Event Dispatcher for asynchronous errors, which belongs to the adapter.
    pub fn async_evd(&self) -> &Evd {
        &self.async_evd
    }

    /// Returns the limits of the adapter: `dat_ia_query`.
    pub fn limits(&self) -> Result<Limits> {
        let mut attr = KBox::new(bindings::DAT_IA_ATTR::default(), GFP_KERNEL)?;
        let mut provider = KBox::new(bindings::DAT_PROVIDER_ATTR::default(), GFP_KERNEL)?;
        // SAFETY: `attr` and `provider` are valid for writes, and the other pointer may be NULL.
        to_result(unsafe {
            bindings::dat_ia_query(
                self.adapter.ia.raw(),
                core::ptr::null_mut(),
                bindings::DAT_IA_FIELD_ALL,
                &raw mut *attr,
                bindings::DAT_PROVIDER_FIELD_ALL.into(),
                &raw mut *provider,
            )
        })?;
        let limit = |count: i32| u32::try_from(count).unwrap_or(0);
        Ok(Limits {
            dtos: limit(attr.max_dto_per_ep),
            events: limit(attr.max_evd_qlen),
            segments: limit(attr.max_iov_segments_per_dto),
            read_segments: limit(attr.max_iov_segments_per_rdma_read),
            write_segments: limit(attr.max_iov_segments_per_rdma_write),
            reads_out: limit(attr.max_rdma_read_per_ep_out),
            reads_in: limit(attr.max_rdma_read_per_ep_in),
            region: attr.max_rmr_size,
            reads_are_writes: provider.rdma_write_for_rdma_read_req != 0,
        })
    }

    /// Creates a Protection Zone: `dat_pz_create`.
    pub fn create_pz(&self) -> Result<Pz> {
        Pz::new(&self.adapter)
    }

    /// Creates an Event Dispatcher for events of these streams: `dat_evd_kcreate`. It has at least
    /// `qlen` places.
    pub fn create_evd(&self, streams: Streams, qlen: u32) -> Result<Evd> {
        Evd::new(&self.adapter, streams, qlen)
    }

    /// Creates an Event Dispatcher whose handler is called in soft interrupts:
    /// `kdapl_evd_create_bh`. After `budget` events, 1 to 64, other dispatchers have their turn.
    /// [`Evd::set_atomic_handler`] gives it a handler; without one its events are dequeued.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER for an invalid budget, and for [`Streams::CR`]: only a thread can answer
    /// or reject a request.
    pub fn create_bh_evd(&self, streams: Streams, qlen: u32, budget: u32) -> Result<Evd> {
        Evd::new_bh(&self.adapter, streams, qlen, budget)
    }

    /// Listens for connection requests: `dat_psp_create`. `evd` needs [`Streams::CR`].
    pub fn listen(&self, conn_qual: u64, evd: &Evd) -> Result<Psp> {
        Psp::new(&self.adapter, conn_qual, evd, Origin::Network)
    }

    /// As [`Self::listen`], for requests of other origins, too.
    pub fn listen_for(&self, conn_qual: u64, evd: &Evd, origin: Origin) -> Result<Psp> {
        Psp::new(&self.adapter, conn_qual, evd, origin)
    }

    /// As [`Self::listen`], for a free connection qualifier, which it also returns:
    /// `dat_psp_create_any`.
    pub fn listen_any(&self, evd: &Evd) -> Result<(Psp, u64)> {
        Psp::any(&self.adapter, evd)
    }

    /// Listens for one request, for an unconnected Endpoint: `dat_rsp_create`.
    pub fn reserve(&self, conn_qual: u64, ep: &Ep, evd: &Evd) -> Result<Rsp> {
        Rsp::new(&self.adapter, conn_qual, ep, evd)
    }

    /// Listens at an address of the adapter, at a free port if that is 0: `dat_csp_create`.
    pub fn listen_at(&self, at: &Address, evd: &Evd) -> Result<Csp> {
        Csp::new(&self.adapter, at, evd)
    }

    /// Creates a Consumer Notification Object: `dat_cno_create`.
    pub fn create_cno(&self) -> Result<Cno> {
        Cno::new(&self.adapter)
    }
}

impl Drop for Ia {
    fn drop(&mut self) {
        if self.adapter.close().is_ok() {
            return;
        }
        pr_err!("an upcall has dropped its own adapter, which stays open: this module is pinned\n");
        // The adapter has pointers into this module.
        core::mem::forget(self.adapter.clone());
        // SAFETY: The module is loaded while its code runs, so that it has references to take.
        unsafe {
            kernel::bindings::__module_get((&raw const kernel::bindings::__this_module).cast_mut())
        };
    }
}

/// Converts a count to its C form.
pub(crate) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
