// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of one connection, or of one attempt to connect.

use super::repeat::Repeat;
use crate::{
    dat::{
        base::PrivateData,
        ep::Qos,
        prelude::*, //
    },
    model::{
        ep::ReadyGate,
        keepalive::Keepalive, //
    },
    rdma::{
        addr::SockAddr,
        cm::CmId,
        qp::ReadDepth, //
    },
    sys::{
        jiffies::Jiffies,
        wait::Deadline, //
    },
};

/// Addresses of a connection.
pub(in crate::dat::ep) struct Addresses {
    pub(in crate::dat::ep) local: SockAddr,
    pub(in crate::dat::ep) remote: SockAddr,
    /// Connection qualifier of the connect call, or port of the peer whose request was accepted.
    pub(in crate::dat::ep) remote_qual: u64,
    /// Connection qualifier at the peer's address to which `dat_ep_dup_connect` connects another
    /// Endpoint.
    pub(in crate::dat::ep) dup_qual: Option<u64>,
}

impl Addresses {
    /// The addresses of an Endpoint without a connection.
    fn of(local: SockAddr) -> Self {
        Self {
            local,
            remote: SockAddr::default(),
            remote_qual: 0,
            dup_qual: None,
        }
    }
}

/// Progress of an attempt to connect, from the connect call until the connection is established.
pub(in crate::dat::ep) struct Attempt {
    /// Private data for the peer, until the request is sent.
    pub(in crate::dat::ep) own_data: PrivateData,
    /// Time at which the attempt ends with TIMED_OUT.
    pub(in crate::dat::ep) deadline: Deadline,
    pub(in crate::dat::ep) repeat: Repeat,
    /// The route is resolved, and the request waits until the preposted receives are posted.
    pub(in crate::dat::ep) request_waits: bool,
    /// The peer has accepted. The QP is made ready, and then the confirmation is sent.
    pub(in crate::dat::ep) confirms: bool,
    /// The QP is being made ready for a peer that has accepted. It receives before it can send.
    pub(in crate::dat::ep) readies_qp: bool,
}

impl Attempt {
    /// An attempt that has not begun.
    pub(in crate::dat::ep) fn new(own_data: PrivateData, deadline: Deadline, qos: Qos) -> Self {
        Self {
            own_data,
            deadline,
            repeat: Repeat::new(qos),
            request_waits: false,
            confirms: false,
            readies_qp: false,
        }
    }
}

/// State of one connection, or of one attempt to connect. A reset replaces it.
pub(in crate::dat::ep) struct Connection {
    /// ID of `rdma_cm`.
    pub(in crate::dat::ep) id: Option<Arc<CmId>>,
    pub(in crate::dat::ep) addresses: Addresses,
    pub(in crate::dat::ep) attempt: Attempt,
    /// The peer has sent the connection request.
    pub(in crate::dat::ep) is_passive: bool,
    /// Ready gate of the attempt or connection.
    pub(in crate::dat::ep) gate: ReadyGate,
    /// Private data of the peer, from the last connection event.
    pub(in crate::dat::ep) peer_data: PrivateData,
    /// Numbers of RDMA reads that both sides accept, once they are known. Over iWARP the driver
    /// reports them with the establishment.
    pub(in crate::dat::ep) read_depth: Option<ReadDepth>,
    /// Runs of the work item for which the end by the peer's disconnect still waits for
    /// acknowledgements.
    pub(in crate::dat::ep) grace_runs: usize,
    /// Time at which the completion of the last message was drained.
    pub(in crate::dat::ep) last_receive: Option<Jiffies>,
    /// Value of `last_receive` at the last tick of the keepalive.
    pub(in crate::dat::ep) seen_receive: Option<Jiffies>,
    pub(in crate::dat::ep) keepalive: Keepalive,
}

impl Connection {
    /// The state of an Endpoint without a connection, whose address is `local`.
    pub(in crate::dat::ep) fn none(local: SockAddr) -> Self {
        Self {
            id: None,
            addresses: Addresses::of(local),
            attempt: Attempt::new(PrivateData::EMPTY, Deadline::Never, Qos::BestEffort),
            is_passive: false,
            gate: ReadyGate::Open,
            peer_data: PrivateData::EMPTY,
            read_depth: None,
            grace_runs: 0,
            last_receive: None,
            seen_receive: None,
            keepalive: Keepalive::default(),
        }
    }

    /// Takes one of the grace runs. Returns whether one was left.
    pub(in crate::dat::ep) fn spend_grace_run(&mut self) -> bool {
        let left = self.grace_runs.checked_sub(1);
        self.grace_runs = left.unwrap_or(0);
        left.is_some()
    }
}
