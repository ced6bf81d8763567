// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    address::Address,
    bindings,
    dto::Dto,
    error::{
        to_result,
        Result, //
    },
    evd::Evd,
    ia::count,
    post::{
        self,
        Refused, //
    },
    pz::Pz,
    reserved::Reserved,
    srq::Srq, //
};
use kernel::{
    ffi::c_void,
    prelude::*, //
};

/// Attributes of an Endpoint. A member of 0 selects the default, except in `max_rdma_read_in` and
/// `max_rdma_read_out`, where it allows no RDMA reads.
pub use crate::bindings::DAT_EP_ATTR as EpAttr;

/// Identity of an Endpoint, as its events name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpId(Handle);

impl EpId {
    pub(crate) fn from_raw(raw: *mut c_void) -> Self {
        Self(Handle::from_raw(raw))
    }
}

/// Event Dispatchers of an Endpoint.
#[derive(Clone, Copy)]
pub struct Evds<'a> {
    /// Completions of receives.
    pub receive: &'a Evd,
    /// Completions of all other DTOs.
    pub request: &'a Evd,
    /// Connection events.
    pub connect: &'a Evd,
}

impl<'a> From<&'a Evd> for Evds<'a> {
    /// Uses one Event Dispatcher for all events.
    fn from(evd: &'a Evd) -> Self {
        Self {
            receive: evd,
            request: evd,
            connect: evd,
        }
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// At once. Outstanding DTOs are flushed.
    Abrupt,
    /// After the outstanding requests.
    Graceful,
}

/// Endpoint (EP): one end of a connection. Its drop ends the connection and frees the buffers of
/// outstanding DTOs.
pub struct Ep {
    handle: Handle,
    pz: Pz,
    _evds: [Evd; 3],
    srq: Option<Srq>,
    reserved: Reserved,
}

impl Ep {
    pub(crate) fn new(
        pz: &Pz,
        evds: Evds<'_>,
        srq: Option<&Srq>,
        attr: Option<&EpAttr>,
    ) -> Result<Self> {
        let (ia, zone) = (pz.0.adapter.ia.raw(), pz.0.handle.raw());
        let [receive, request, connect] =
            [evds.receive, evds.request, evds.connect].map(|evd| evd.handle().raw());
        let attr = attr.map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: `attr` is NULL or valid, and `ep` is valid for writes.
        let handle = Handle::made(|ep| unsafe {
            match srq {
                None => bindings::dat_ep_create(ia, zone, receive, request, connect, attr, ep),
                Some(srq) => bindings::dat_ep_create_with_srq(
                    ia,
                    zone,
                    receive,
                    request,
                    connect,
                    srq.handle().raw(),
                    attr,
                    ep,
                ),
            }
        })?;
        let ep = Self {
            handle,
            pz: pz.clone(),
            _evds: [evds.receive, evds.request, evds.connect].map(Clone::clone),
            srq: srq.cloned(),
            reserved: Reserved::none(),
        };
        ep.reserve()?;
        Ok(ep)
    }

    /// Reserves slots for all DTOs that may be outstanding, beside those of DTOs whose events a
    /// reset has found no room for. These keep their buffers until the Endpoint is freed.
    fn reserve(&self) -> Result {
        let attr = self.attr()?;
        let dtos = [attr.max_recv_dtos, attr.max_request_dtos];
        let dtos = dtos.map(|dtos| usize::try_from(dtos).unwrap_or(0));
        let kept = self.adapter().posted_of(self.handle);
        let number = dtos.iter().sum::<usize>().saturating_add(kept);
        self.reserved.raise_to(self.adapter(), number)
    }

    fn adapter(&self) -> &Adapter {
        &self.pz.0.adapter
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns the identity that events have.
    pub fn id(&self) -> EpId {
        EpId(self.handle)
    }

    /// Starts to connect: `dat_ep_connect`. A [`Connection`](crate::Connection) event reports the
    /// outcome within `timeout` microseconds.
    pub fn connect(&self, to: &Address, conn_qual: u64, timeout: u32, data: &[u8]) -> Result {
        let flags = bindings::DAT_CONNECT_DEFAULT_FLAG;
        self.connect_with(to, conn_qual, timeout, data, flags)
    }

    /// As [`Self::connect`], with a closed ready gate: all events of the connection wait for
    /// [`Self::ready`].
    pub fn connect_gated(&self, to: &Address, conn_qual: u64, timeout: u32, data: &[u8]) -> Result {
        let flags = bindings::KDAPL_READY_GATE_FLAG;
        self.connect_with(to, conn_qual, timeout, data, flags)
    }

    /// Opens the ready gate: `kdapl_ep_ready`. Has no effect on a connection without one.
    pub fn ready(&self) -> Result {
        // SAFETY: The call has no pointers.
        to_result(unsafe { bindings::kdapl_ep_ready(self.handle.raw()) })
    }

    fn connect_with(
        &self,
        to: &Address,
        conn_qual: u64,
        timeout: u32,
        data: &[u8],
        flags: u32,
    ) -> Result {
        // SAFETY: The address and the data are valid for reads during the call.
        to_result(unsafe {
            bindings::dat_ep_connect(
                self.handle.raw(),
                to.as_ptr(),
                conn_qual,
                timeout,
                size(data),
                data.as_ptr().cast(),
                bindings::DAT_QOS_BEST_EFFORT,
                flags,
            )
        })
    }

    /// Connects to a Common Service Point, which listens at an address and a port:
    /// `dat_ep_common_connect`. The outcome is reported as of [`Self::connect`].
    pub fn common_connect(&self, to: &Address, timeout: u32, data: &[u8]) -> Result {
        // SAFETY: The address and the data are valid for reads during the call.
        to_result(unsafe {
            bindings::dat_ep_common_connect(
                self.handle.raw(),
                to.as_ptr(),
                timeout,
                size(data),
                data.as_ptr().cast(),
            )
        })
    }

    /// Posts a DTO. A [`Completion`](crate::Completion) event returns its buffer; a refusal returns
    /// it at once. Context: any.
    #[inline]
    pub fn post(&self, mut dto: Dto) -> Result<(), Refused> {
        let posted = dto.check_zone(&self.pz);
        posted
            .and_then(|()| post::post(self.adapter(), self.handle, &mut dto))
            .map_err(|error| Refused::new(error, dto))
    }

    /// Posts DTOs in their order, up to the first that is refused, which stays in the list with
    /// those that follow it: `kdapl_ep_post_list`. Context: any.
    pub fn post_list(&self, dtos: &mut KVec<Dto>) -> Result {
        post::post_list(self.adapter(), self.handle, dtos)
    }

    /// Ends the connection: `dat_ep_disconnect`.
    pub fn disconnect(&self, close: Close) -> Result {
        let flags = match close {
            Close::Abrupt => bindings::DAT_CLOSE_ABRUPT_FLAG,
            Close::Graceful => bindings::DAT_CLOSE_GRACEFUL_FLAG,
        };
        // SAFETY: The call has no pointers.
        to_result(unsafe { bindings::dat_ep_disconnect(self.handle.raw(), flags) })
    }

    /// Prepares a disconnected Endpoint for the next connection: `dat_ep_reset`. Outstanding DTOs
    /// are reported as far as their Event Dispatcher has room. The others keep their buffers until
    /// the Endpoint is freed.
    pub fn reset(&self) -> Result {
        // SAFETY: The call has no pointers.
        to_result(unsafe { bindings::dat_ep_reset(self.handle.raw()) })?;
        self.connection_is_over();
        // After a failure the next reset reserves for this one, too.
        let _ = self.reserve();
        Ok(())
    }

    /// Makes up for receives that the end of the connection has lost.
    fn connection_is_over(&self) {
        if let Some(srq) = &self.srq {
            // After a failure the next end of a connection reserves for this one, too.
            let _ = srq.replace_lost();
        }
    }

    /// Frees the Endpoint before it is dropped: ends the connection, and drops the memory that its
    /// outstanding DTOs own. Later calls are refused. Events that are queued are delivered, without
    /// buffers.
    ///
    /// # Errors
    ///
    /// INVALID_STATE while an RSP has reserved the Endpoint, or its request is not answered: it
    /// stays, with its memory, until its drop or the close of the adapter. INVALID_HANDLE if it was
    /// freed before, or the adapter is closed.
    pub fn free(&self) -> Result {
        // SAFETY: The call has no pointers.
        to_result(unsafe { bindings::dat_ep_free(self.handle.raw()) })?;
        self.adapter().drop_posted(self.handle);
        self.reserved.release(self.adapter());
        self.connection_is_over();
        Ok(())
    }

    /// Copies the private data of the peer's accept or reject, and returns how many bytes it has
    /// sent, which can be more than `data` has room for. InfiniBand and RoCE pad them with zeros.
    pub fn private_data(&self, data: &mut [u8]) -> Result<usize> {
        let mut length = size(data);
        // SAFETY: The data are valid for writes of `length` bytes, and `length` for a write.
        to_result(unsafe {
            bindings::kdapl_ep_private_data(
                self.handle.raw(),
                &raw mut length,
                data.as_mut_ptr().cast(),
            )
        })?;
        Ok(usize::try_from(length).unwrap_or(0))
    }
}

impl Drop for Ep {
    fn drop(&mut self) {
        // On an error the close of the adapter frees the Endpoint and its memory, or has done so.
        let _ = self.free();
    }
}

/// Returns the size of private data in its C form.
pub(crate) fn size(data: &[u8]) -> i32 {
    count(u32::try_from(data.len()).unwrap_or(u32::MAX))
}
