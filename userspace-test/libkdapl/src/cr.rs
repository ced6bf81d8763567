// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connection Requests (CRs), which arrive at a service point and are accepted, rejected or handed
//! off.

use crate::address;
use crate::ep::{Ep, EpState};
use crate::error::Result;
use crate::object::Handle;
use crate::raw::{self, call, Call, Device};
use crate::sys::*;
use std::net::SocketAddr;
use std::sync::Arc;

/// Result of [`Cr::query`].
#[derive(Clone, Debug)]
pub struct CrQuery {
    /// Address of the peer.
    pub remote: Option<SocketAddr>,
    /// Port of the peer.
    pub remote_port_qual: u64,
    /// Endpoint that is reserved for the request or came with it.
    pub local_ep: Option<Handle>,
    /// Private data of the request; the transport may pad them with zeros.
    pub private_data: Vec<u8>,
}

/// A connection request. Can be answered once. Dropping an unanswered request rejects it.
#[derive(Debug)]
pub struct Cr {
    device: Arc<Device>,
    handle: Handle,
    answered: bool,
    /// The endpoint that came with the request has been returned to a caller.
    ep_given: bool,
}

impl Cr {
    pub(crate) fn arrived(device: &Arc<Device>, handle: Handle) -> Self {
        Self { device: device.clone(), handle, answered: false, ep_given: false }
    }

    /// Returns the kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns the peer's address and private data.
    ///
    /// # Errors
    /// `INVALID_HANDLE/CR` after the request was answered.
    pub fn query(&self) -> Result<CrQuery> {
        let mut message = kdapl_cr_query { handle: self.handle.0, ..Default::default() };
        raw::call(&self.device, call::CR_QUERY, &mut message)?;
        let size = (message.private_data_size as usize).min(message.private_data.len());
        Ok(CrQuery {
            remote: address::decode(&message.remote_address),
            remote_port_qual: message.remote_port_qual,
            local_ep: (message.local_ep != 0).then_some(Handle(message.local_ep)),
            private_data: message.private_data[..size].to_vec(),
        })
    }

    /// Returns the endpoint that the kernel created for this request, if any. Only the first call
    /// returns it; its caller owns the endpoint.
    ///
    /// Use [`Ep::modify`] to supply a protection zone, and the EVDs whose events are wanted, then
    /// [`accept`](Self::accept) with `None`. A reject frees the endpoint.
    ///
    /// # Errors
    /// `INVALID_HANDLE/CR` after the request was answered.
    pub fn provided_ep(&mut self) -> Result<Option<Ep>> {
        let Some(handle) = self.query()?.local_ep else {
            return Ok(None);
        };
        let mut message = kdapl_ep_query {
            handle: handle.0,
            mask: KDAPL_EP_FIELD_STATE.into(),
            ..Default::default()
        };
        raw::call(&self.device, call::EP_QUERY, &mut message)?;
        // An endpoint that the program reserved would be passive. It already has an owner.
        let tentative = matches!(
            EpState::from(message.state),
            EpState::TentativeConnectionPending | EpState::UnconfiguredTentative
        );
        if !tentative || self.ep_given {
            return Ok(None);
        }
        self.ep_given = true;
        Ok(Some(Ep::provided(&self.device, handle)))
    }

    /// Accepts the request on `ep`, which must be unconnected. With `None`, accepts on the endpoint
    /// that is reserved for the request or came with it. The outcome is an event on the endpoint's
    /// connection EVD. After an error the request can still be answered.
    ///
    /// # Errors
    /// `INVALID_STATE` of the endpoint, `INVALID_HANDLE/EP` if the request requires another
    /// endpoint, `INVALID_PARAMETER` for too much private data.
    pub fn accept<'a>(&mut self, ep: impl Into<Option<&'a Ep>>, private_data: &[u8]) -> Result<()> {
        self.accept_with_flags(ep, private_data, 0)
    }

    /// As [`accept`](Self::accept), with a closed ready gate: ESTABLISHED and all later events of
    /// the connection wait for [`Ep::ready`].
    ///
    /// # Errors
    /// Those of [`accept`](Self::accept).
    pub fn accept_gated<'a>(
        &mut self,
        ep: impl Into<Option<&'a Ep>>,
        private_data: &[u8],
    ) -> Result<()> {
        self.accept_with_flags(ep, private_data, KDAPL_FLAG_READY_GATE)
    }

    fn accept_with_flags<'a>(
        &mut self,
        ep: impl Into<Option<&'a Ep>>,
        private_data: &[u8],
        flags: u32,
    ) -> Result<()> {
        let ep = ep.into().map_or(0, |ep| ep.handle().0);
        self.answer(call::CR_ACCEPT, ep, private_data, flags)
    }

    /// Rejects the request. The peer gets PEER_REJECTED with `private_data`. A reserved endpoint
    /// becomes unconnected; an endpoint that came with the request is freed.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for too much private data.
    pub fn reject(&mut self, private_data: &[u8]) -> Result<()> {
        self.answer(call::CR_REJECT, 0, private_data, 0)
    }

    /// Passes the request to the service point `conn_qual` of the same device and address, in any
    /// process. It arrives there with its private data as if the peer had connected to that service
    /// point. After an error the request can still be answered here.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` or `CONN_QUAL_UNAVAILABLE` if there is no such service point,
    /// `PRIVILEGES_VIOLATION` if it belongs to another user and the caller lacks CAP_NET_ADMIN,
    /// `INSUFFICIENT_RESOURCES` if its backlog is full.
    pub fn handoff(&mut self, conn_qual: u64) -> Result<()> {
        let mut message =
            kdapl_cr_handoff { handle: self.handle.0, conn_qual, ..Default::default() };
        raw::call(&self.device, call::CR_HANDOFF, &mut message)?;
        self.answered = true;
        Ok(())
    }

    /// Returns the handle and leaves the request unanswered in the kernel, for another owner.
    #[must_use]
    pub fn into_handle(mut self) -> Handle {
        self.answered = true;
        self.handle
    }

    fn answer(
        &mut self,
        call: Call<kdapl_cr_answer>,
        ep: u64,
        private_data: &[u8],
        flags: u32,
    ) -> Result<()> {
        let mut message = kdapl_cr_answer {
            hdr: kdapl_hdr { flags, ..Default::default() },
            handle: self.handle.0,
            ep,
            private_data: private_data.as_ptr() as u64,
            private_data_size: private_data.len() as u32,
            ..Default::default()
        };
        raw::call(&self.device, call, &mut message)?;
        self.answered = true;
        Ok(())
    }
}

impl Drop for Cr {
    fn drop(&mut self) {
        if !self.answered {
            // The peer may have cancelled the request already.
            let _ = self.reject(&[]);
        }
    }
}
