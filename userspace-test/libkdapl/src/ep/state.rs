// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! State and parameters of an endpoint.

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
        /// No connection. Receives may be posted.
        Unconnected = 0, "UNCONNECTED";
        /// No connection; the protection zone is missing.
        UnconfiguredUnconnected = 1, "UNCONFIGURED_UNCONNECTED";
        /// Reserved for a Reserved Service Point.
        Reserved = 2, "RESERVED";
        /// Reserved for a Reserved Service Point; the protection zone is missing.
        UnconfiguredReserved = 3, "UNCONFIGURED_RESERVED";
        /// A request arrived at its Reserved Service Point.
        PassiveConnectionPending = 4, "PASSIVE_CONNECTION_PENDING";
        /// A request arrived at its Reserved Service Point; the protection zone is missing.
        UnconfiguredPassive = 5, "UNCONFIGURED_PASSIVE";
        /// Connecting.
        ActiveConnectionPending = 6, "ACTIVE_CONNECTION_PENDING";
        /// Created for a request that has not been answered.
        TentativeConnectionPending = 7, "TENTATIVE_CONNECTION_PENDING";
        /// Created for a request that has not been answered; the protection zone is missing.
        UnconfiguredTentative = 8, "UNCONFIGURED_TENTATIVE";
        /// Connected.
        Connected = 9, "CONNECTED";
        /// Disconnecting.
        DisconnectPending = 10, "DISCONNECT_PENDING";
        /// Disconnected; [`Ep::reset`] makes it ready for another connection.
        Disconnected = 11, "DISCONNECTED";
        /// A request was accepted on it; the peer has not confirmed yet.
        CompletionPending = 12, "COMPLETION_PENDING";
        /// Connected; several paths were requested, and there is one.
        ConnectedSinglePath = 13, "CONNECTED_SINGLE_PATH";
        /// Connected over several paths.
        ConnectedMultiPath = 14, "CONNECTED_MULTI_PATH";
    }
}

flags! {
    /// `DAT_EP_PARAM_MASK`: a set of fields of an endpoint.
    EpFields: u64 {
        /// The IA.
        IA = KDAPL_EP_FIELD_IA as u64,
        /// State.
        STATE = KDAPL_EP_FIELD_STATE as u64,
        /// Communicator; kDAPL has none.
        COMM = KDAPL_EP_FIELD_COMM as u64,
        /// Local address.
        LOCAL_ADDRESS = KDAPL_EP_FIELD_LOCAL_ADDRESS as u64,
        /// Local port.
        LOCAL_PORT_QUAL = KDAPL_EP_FIELD_LOCAL_PORT_QUAL as u64,
        /// Address of the peer.
        REMOTE_ADDRESS = KDAPL_EP_FIELD_REMOTE_ADDRESS as u64,
        /// Connection qualifier or port of the peer.
        REMOTE_PORT_QUAL = KDAPL_EP_FIELD_REMOTE_PORT_QUAL as u64,
        /// Protection zone.
        PZ = KDAPL_EP_FIELD_PZ as u64,
        /// EVD for receives.
        RECV_EVD = KDAPL_EP_FIELD_RECV_EVD as u64,
        /// EVD for requests.
        REQUEST_EVD = KDAPL_EP_FIELD_REQUEST_EVD as u64,
        /// EVD for connection events.
        CONNECT_EVD = KDAPL_EP_FIELD_CONNECT_EVD as u64,
        /// Shared receive queue.
        SRQ = KDAPL_EP_FIELD_SRQ as u64,
        /// Service type.
        SERVICE_TYPE = KDAPL_EP_FIELD_SERVICE_TYPE as u64,
        /// Maximum size of a message.
        MAX_MESSAGE_SIZE = KDAPL_EP_FIELD_MAX_MESSAGE_SIZE as u64,
        /// Maximum size of an RDMA operation.
        MAX_RDMA_SIZE = KDAPL_EP_FIELD_MAX_RDMA_SIZE as u64,
        /// Quality of service.
        QOS = KDAPL_EP_FIELD_QOS as u64,
        /// Completion flags of receives.
        RECV_COMPLETION_FLAGS = KDAPL_EP_FIELD_RECV_COMPLETION_FLAGS as u64,
        /// Completion flags of requests.
        REQUEST_COMPLETION_FLAGS = KDAPL_EP_FIELD_REQUEST_COMPLETION_FLAGS as u64,
        /// Maximum number of outstanding receives.
        MAX_RECV_DTOS = KDAPL_EP_FIELD_MAX_RECV_DTOS as u64,
        /// Maximum number of outstanding requests.
        MAX_REQUEST_DTOS = KDAPL_EP_FIELD_MAX_REQUEST_DTOS as u64,
        /// Maximum number of segments of a receive.
        MAX_RECV_IOV = KDAPL_EP_FIELD_MAX_RECV_IOV as u64,
        /// Maximum number of segments of a send.
        MAX_REQUEST_IOV = KDAPL_EP_FIELD_MAX_REQUEST_IOV as u64,
        /// Maximum number of incoming RDMA Reads.
        MAX_RDMA_READ_IN = KDAPL_EP_FIELD_MAX_RDMA_READ_IN as u64,
        /// Maximum number of outgoing RDMA Reads.
        MAX_RDMA_READ_OUT = KDAPL_EP_FIELD_MAX_RDMA_READ_OUT as u64,
        /// Soft high watermark in the attributes, which is always 0: see [`Ep::set_watermarks`].
        SRQ_SOFT_HW = KDAPL_EP_FIELD_SRQ_SOFT_HW as u64,
        /// Maximum number of segments of an RDMA Read.
        MAX_RDMA_READ_IOV = KDAPL_EP_FIELD_MAX_RDMA_READ_IOV as u64,
        /// Maximum number of segments of an RDMA Write.
        MAX_RDMA_WRITE_IOV = KDAPL_EP_FIELD_MAX_RDMA_WRITE_IOV as u64,
        /// Time after which a peer that does not respond breaks the connection; an extension of
        /// DAT.
        PEER_TIMEOUT = KDAPL_EP_FIELD_PEER_TIMEOUT,
        /// Time of silence after which an idle connection is broken; an extension of DAT.
        KEEPALIVE = KDAPL_EP_FIELD_KEEPALIVE,
        /// All fields.
        ALL = KDAPL_EP_FIELD_ALL,
    }
}

/// Result of [`Ep::query`]. Fields that were not requested are zero.
#[derive(Clone, Debug)]
pub struct EpQuery {
    /// State of the endpoint.
    pub state: EpState,
    /// Local address: that of the IA, with the port once connected.
    pub local: Option<SocketAddr>,
    /// Address of the peer, once a connect or an accept was called.
    pub remote: Option<SocketAddr>,
    /// The kernel's answer.
    pub raw: kdapl_ep_query,
}

/// Result of [`Ep::status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpStatus {
    /// State of the endpoint.
    pub state: EpState,
    /// No receive is outstanding.
    pub recv_idle: bool,
    /// No request is outstanding.
    pub request_idle: bool,
    /// Number of outstanding receives.
    pub recv_outstanding: u32,
    /// Number of outstanding requests.
    pub request_outstanding: u32,
}

impl Ep {
    /// Returns state, addresses, objects and attributes.
    ///
    /// # Errors
    /// `INVALID_HANDLE/EP` after the endpoint was freed.
    pub fn query(&self) -> Result<EpQuery> {
        self.query_fields(EpFields::ALL)
    }

    /// Like [`query`](Self::query), but returns only `fields`; the others are zero.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for unknown fields; `INVALID_HANDLE/EP` after the endpoint was freed.
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

    /// Returns the state and the number of outstanding operations.
    ///
    /// # Errors
    /// `INVALID_HANDLE/EP` after the endpoint was freed.
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

    /// Limits the receive buffers that the endpoint has: receives that have completed and whose
    /// event was not dequeued. `None` means no limit. One asynchronous event reports that there are
    /// more than `soft`; the connection breaks when there are more than `hard`.
    ///
    /// # Errors
    /// `INVALID_HANDLE/EP` after the endpoint was freed.
    pub fn set_watermarks(&self, soft: Option<u32>, hard: Option<u32>) -> Result<()> {
        let mark = |number: Option<u32>| number.unwrap_or(KDAPL_WATERMARK_INFINITE);
        let mut message = kdapl_ep_watermark {
            handle: self.handle().0,
            soft_high: mark(soft),
            hard_high: mark(hard),
            ..Default::default()
        };
        raw::call(self.device(), call::EP_SET_WATERMARK, &mut message)
    }

    /// Returns the number of receive buffers that the endpoint has, and the number of messages from
    /// the oldest to the newest of them. Posted receives count as well.
    ///
    /// # Errors
    /// `INVALID_HANDLE/EP` after the endpoint was freed.
    pub fn recv_query(&self) -> Result<(u32, u32)> {
        let mut message = kdapl_ep_recv_query { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call::EP_RECV_QUERY, &mut message)?;
        Ok((message.allocated, message.span))
    }
}
