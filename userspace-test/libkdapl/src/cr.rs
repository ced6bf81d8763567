// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connection Requests: what comes to a service point and wants an answer.

use crate::address;
use crate::ep::{Ep, EpState};
use crate::error::Result;
use crate::object::Handle;
use crate::raw::{self, call, Call, Device};
use crate::sys::*;
use std::net::SocketAddr;
use std::sync::Arc;

/// What [`Cr::query`] tells.
#[derive(Clone, Debug)]
pub struct CrQuery {
    /// Who asks.
    pub remote: Option<SocketAddr>,
    /// The port that the request came from.
    pub remote_port_qual: u64,
    /// The endpoint that is reserved for it or came with it.
    pub local_ep: Option<Handle>,
    /// What the peer gave to its connect; the transport may pad it with zeros.
    pub private_data: Vec<u8>,
}

/// A request for a connection, to be answered once. Dropped unanswered, it is rejected.
#[derive(Debug)]
pub struct Cr {
    device: Arc<Device>,
    handle: Handle,
    answered: bool,
    /// The endpoint that came with it, for whoever asks first.
    ep_given: bool,
}

impl Cr {
    pub(crate) fn arrived(device: &Arc<Device>, handle: Handle) -> Self {
        Self { device: device.clone(), handle, answered: false, ep_given: false }
    }

    /// The kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Who asks, and with which private data.
    ///
    /// # Errors
    /// `INVALID_HANDLE/CR` once answered.
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

    /// The endpoint that the kernel made for this request, if it did, and the first time only:
    /// whoever gets it owns it. Give it a zone and event queues with [`Ep::modify`], then
    /// [`accept`](Self::accept) with `None`. A reject takes it away again.
    ///
    /// # Errors
    /// `INVALID_HANDLE/CR` once answered.
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
        // A reserved one would be passive, and has an owner.
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

    /// Accepts on `ep`, which must be unconnected, or with `None` on the endpoint that is
    /// reserved for the request or came with it. The outcome is an event on its connection EVD.
    /// After an error the request can still be answered.
    ///
    /// # Errors
    /// `INVALID_STATE` of the endpoint, `INVALID_HANDLE/EP` if it takes another one,
    /// `INVALID_PARAMETER` for too much private data.
    pub fn accept<'a>(&mut self, ep: impl Into<Option<&'a Ep>>, private_data: &[u8]) -> Result<()> {
        let ep = ep.into().map_or(0, |ep| ep.handle().0);
        self.answer(call::CR_ACCEPT, ep, private_data)
    }

    /// Refuses: the peer gets PEER_REJECTED and `private_data`. A reserved endpoint is
    /// unconnected again, one that came with the request is gone.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for too much private data.
    pub fn reject(&mut self, private_data: &[u8]) -> Result<()> {
        self.answer(call::CR_REJECT, 0, private_data)
    }

    /// Gives the request to the service point `conn_qual` of the same device and address, in
    /// whatever process: it arrives there as if it had come for that, private data and all.
    /// After an error the request can still be answered here.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` or `CONN_QUAL_UNAVAILABLE` if nobody listens there,
    /// `PRIVILEGES_VIOLATION` if that is another user without CAP_NET_ADMIN,
    /// `INSUFFICIENT_RESOURCES` if as many requests wait there as may.
    pub fn handoff(&mut self, conn_qual: u64) -> Result<()> {
        let mut message =
            kdapl_cr_handoff { handle: self.handle.0, conn_qual, ..Default::default() };
        raw::call(&self.device, call::CR_HANDOFF, &mut message)?;
        self.answered = true;
        Ok(())
    }

    /// Leaves the request unanswered in the kernel, for whoever has its handle.
    #[must_use]
    pub fn into_handle(mut self) -> Handle {
        self.answered = true;
        self.handle
    }

    fn answer(&mut self, call: Call<kdapl_cr_answer>, ep: u64, private_data: &[u8]) -> Result<()> {
        let mut message = kdapl_cr_answer {
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
            // The peer may have given up already.
            let _ = self.reject(&[]);
        }
    }
}
