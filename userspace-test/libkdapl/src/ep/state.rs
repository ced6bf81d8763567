// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What an endpoint tells about itself.

use super::Ep;
use crate::address;
use crate::error::Result;
use crate::event::numbered;
use crate::flags::flags;
use crate::raw::{self, call};
use crate::sys::*;
use std::fmt;
use std::net::SocketAddr;

numbered! {
    /// `DAT_EP_STATE`.
    EpState {
        /// No connection; receives may be posted.
        Unconnected = 0, "UNCONNECTED";
        /// No connection, and its zone or an event queue is missing.
        UnconfiguredUnconnected = 1, "UNCONFIGURED_UNCONNECTED";
        /// Kept for a reserved service point.
        Reserved = 2, "RESERVED";
        /// Kept for a reserved service point, and something is missing.
        UnconfiguredReserved = 3, "UNCONFIGURED_RESERVED";
        /// A request came in on its reserved service point.
        PassiveConnectionPending = 4, "PASSIVE_CONNECTION_PENDING";
        /// A request came in on its reserved service point, and something is missing.
        UnconfiguredPassive = 5, "UNCONFIGURED_PASSIVE";
        /// Connecting.
        ActiveConnectionPending = 6, "ACTIVE_CONNECTION_PENDING";
        /// Made for a request that waits for an answer.
        TentativeConnectionPending = 7, "TENTATIVE_CONNECTION_PENDING";
        /// Made for a request that waits for an answer, and something is missing.
        UnconfiguredTentative = 8, "UNCONFIGURED_TENTATIVE";
        /// Up.
        Connected = 9, "CONNECTED";
        /// Going down.
        DisconnectPending = 10, "DISCONNECT_PENDING";
        /// Down; [`Ep::reset`] makes it good for another connection.
        Disconnected = 11, "DISCONNECTED";
        /// A request was accepted with it; the peer has not confirmed.
        CompletionPending = 12, "COMPLETION_PENDING";
        /// Up; several paths were asked for, and there is one.
        ConnectedSinglePath = 13, "CONNECTED_SINGLE_PATH";
        /// Up, over several paths.
        ConnectedMultiPath = 14, "CONNECTED_MULTI_PATH";
    }
}

flags! {
    /// `DAT_EP_PARAM_MASK`: which fields of an endpoint are meant.
    EpFields: u64 {
        /// The IA.
        IA = KDAPL_EP_FIELD_IA as u64,
        /// The state.
        STATE = KDAPL_EP_FIELD_STATE as u64,
        /// The communicator; kDAPL has none.
        COMM = KDAPL_EP_FIELD_COMM as u64,
        /// This side's address.
        LOCAL_ADDRESS = KDAPL_EP_FIELD_LOCAL_ADDRESS as u64,
        /// This side's port.
        LOCAL_PORT_QUAL = KDAPL_EP_FIELD_LOCAL_PORT_QUAL as u64,
        /// The peer's address.
        REMOTE_ADDRESS = KDAPL_EP_FIELD_REMOTE_ADDRESS as u64,
        /// The peer's qualifier or port.
        REMOTE_PORT_QUAL = KDAPL_EP_FIELD_REMOTE_PORT_QUAL as u64,
        /// The protection zone.
        PZ = KDAPL_EP_FIELD_PZ as u64,
        /// The EVD of receives.
        RECV_EVD = KDAPL_EP_FIELD_RECV_EVD as u64,
        /// The EVD of requests.
        REQUEST_EVD = KDAPL_EP_FIELD_REQUEST_EVD as u64,
        /// The EVD of connection events.
        CONNECT_EVD = KDAPL_EP_FIELD_CONNECT_EVD as u64,
        /// The shared receive queue; kDAPL has none yet.
        SRQ = KDAPL_EP_FIELD_SRQ as u64,
        /// The service type.
        SERVICE_TYPE = KDAPL_EP_FIELD_SERVICE_TYPE as u64,
        /// The longest message.
        MAX_MESSAGE_SIZE = KDAPL_EP_FIELD_MAX_MESSAGE_SIZE as u64,
        /// The longest RDMA transfer.
        MAX_RDMA_SIZE = KDAPL_EP_FIELD_MAX_RDMA_SIZE as u64,
        /// The quality of service.
        QOS = KDAPL_EP_FIELD_QOS as u64,
        /// The completion flags of receives.
        RECV_COMPLETION_FLAGS = KDAPL_EP_FIELD_RECV_COMPLETION_FLAGS as u64,
        /// The completion flags of requests.
        REQUEST_COMPLETION_FLAGS = KDAPL_EP_FIELD_REQUEST_COMPLETION_FLAGS as u64,
        /// The receives that may be outstanding.
        MAX_RECV_DTOS = KDAPL_EP_FIELD_MAX_RECV_DTOS as u64,
        /// The requests that may be outstanding.
        MAX_REQUEST_DTOS = KDAPL_EP_FIELD_MAX_REQUEST_DTOS as u64,
        /// Segments of a receive.
        MAX_RECV_IOV = KDAPL_EP_FIELD_MAX_RECV_IOV as u64,
        /// Segments of a send.
        MAX_REQUEST_IOV = KDAPL_EP_FIELD_MAX_REQUEST_IOV as u64,
        /// RDMA reads of the peer in flight.
        MAX_RDMA_READ_IN = KDAPL_EP_FIELD_MAX_RDMA_READ_IN as u64,
        /// RDMA reads of this side in flight.
        MAX_RDMA_READ_OUT = KDAPL_EP_FIELD_MAX_RDMA_READ_OUT as u64,
        /// The soft high watermark of a shared receive queue; kDAPL has none yet.
        SRQ_SOFT_HW = KDAPL_EP_FIELD_SRQ_SOFT_HW as u64,
        /// Segments of an RDMA read.
        MAX_RDMA_READ_IOV = KDAPL_EP_FIELD_MAX_RDMA_READ_IOV as u64,
        /// Segments of an RDMA write.
        MAX_RDMA_WRITE_IOV = KDAPL_EP_FIELD_MAX_RDMA_WRITE_IOV as u64,
        /// How long a peer that does not answer is borne; DAT has no such field.
        PEER_TIMEOUT = KDAPL_EP_FIELD_PEER_TIMEOUT,
        /// All that there are.
        ALL = KDAPL_EP_FIELD_ALL,
    }
}

/// What [`Ep::query`] tells. What was not asked for is zero.
#[derive(Clone, Debug)]
pub struct EpQuery {
    /// Where it is in its life.
    pub state: EpState,
    /// This side: the IA's address, with the port once connected.
    pub local: Option<SocketAddr>,
    /// The peer, from the connect or accept on.
    pub remote: Option<SocketAddr>,
    /// All of it.
    pub raw: kdapl_ep_query,
}

/// What [`Ep::status`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpStatus {
    /// Where it is in its life.
    pub state: EpState,
    /// No receive is outstanding.
    pub recv_idle: bool,
    /// No request is outstanding.
    pub request_idle: bool,
    /// Receives outstanding.
    pub recv_outstanding: u32,
    /// Requests outstanding.
    pub request_outstanding: u32,
}

impl Ep {
    /// State, addresses, parts and attributes.
    ///
    /// # Errors
    /// `INVALID_HANDLE/EP` once freed.
    pub fn query(&self) -> Result<EpQuery> {
        self.query_fields(EpFields::ALL)
    }

    /// [`query`](Self::query), but only for `fields`; the others come as zero.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for unknown fields; `INVALID_HANDLE/EP` once freed.
    pub fn query_fields(&self, fields: EpFields) -> Result<EpQuery> {
        let mut message =
            kdapl_ep_query { handle: self.handle().0, mask: fields.0, ..Default::default() };
        raw::call(self.device(), call::EP_QUERY, &mut message)?;
        Ok(EpQuery {
            state: message.state.into(),
            local: address::decode(&message.local_address),
            remote: address::decode(&message.remote_address),
            raw: message,
        })
    }

    /// State and what is outstanding.
    ///
    /// # Errors
    /// `INVALID_HANDLE/EP` once freed.
    pub fn status(&self) -> Result<EpStatus> {
        let mut message = kdapl_ep_status { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call::EP_GET_STATUS, &mut message)?;
        Ok(EpStatus {
            state: message.state.into(),
            recv_idle: message.recv_idle != 0,
            request_idle: message.request_idle != 0,
            recv_outstanding: message.recv_outstanding,
            request_outstanding: message.request_outstanding,
        })
    }
}
