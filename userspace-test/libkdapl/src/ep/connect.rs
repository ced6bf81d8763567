// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connecting and disconnecting an endpoint.

use super::Ep;
use crate::error::Result;
use crate::raw::{self, call};
use crate::sys::*;
use crate::time::{Monotonic, Until};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Manner of a close or a disconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Close {
    /// At once; outstanding operations are flushed.
    Abrupt = KDAPL_CLOSE_ABRUPT,
    /// Endpoint: after the requests posted so far have completed. IA: only if it has no objects.
    Graceful = KDAPL_CLOSE_GRACEFUL,
}

/// Quality of service requested from the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Qos {
    /// No preference.
    #[default]
    BestEffort = KDAPL_QOS_BEST_EFFORT,
    /// Throughput over latency.
    HighThroughput = KDAPL_QOS_HIGH_THROUGHPUT,
    /// Latency over throughput.
    LowLatency = KDAPL_QOS_LOW_LATENCY,
    /// Lowest priority.
    Economy = KDAPL_QOS_ECONOMY,
    /// Highest priority.
    Premium = KDAPL_QOS_PREMIUM,
}

/// Use of several paths by one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Multipath {
    /// A single path.
    #[default]
    No = 0,
    /// Several paths if they exist. With one path the state is CONNECTED_SINGLE_PATH.
    Requested = KDAPL_CONNECT_MULTIPATH_REQUESTED,
    /// Several paths. Refused if there is only one.
    Required = KDAPL_CONNECT_MULTIPATH_REQUIRED,
}

/// Options of a connect.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectOptions<'a> {
    /// Time to connect, not zero; `None`: until the transport ends the attempt.
    pub timeout: Option<Duration>,
    /// Point in time at which the attempt ends; replaces `timeout`.
    pub until: Option<Monotonic>,
    /// Private data of the request.
    pub private_data: &'a [u8],
    /// Requested quality of service.
    pub qos: Qos,
    /// Requested use of several paths.
    pub multipath: Multipath,
    /// Closes the ready gate: ESTABLISHED and all later events wait for [`Ep::ready`].
    pub gated: bool,
}

impl Ep {
    /// Calls [`connect_with`](Self::connect_with) with a time-out and private data.
    ///
    /// # Errors
    /// Those of [`connect_with`](Self::connect_with).
    pub fn connect(
        &self,
        address: IpAddr,
        conn_qual: u64,
        timeout: Option<Duration>,
        private_data: &[u8],
    ) -> Result<()> {
        let options = ConnectOptions { timeout, private_data, ..Default::default() };
        self.connect_with(SocketAddr::new(address, 0), conn_qual, &options)
    }

    /// Starts to connect to the service point `conn_qual` at `address`, whose port is ignored. The
    /// outcome is an event on the connection EVD, at the latest when the time-out expires.
    ///
    /// # Errors
    /// `INVALID_STATE` unless unconnected; `INVALID_PARAMETER` for a time-out or a qualifier of 0,
    /// or for too much private data; `INVALID_ADDRESS` if there is no route; `MODEL_NOT_SUPPORTED`
    /// for [`Multipath::Required`].
    pub fn connect_with(
        &self,
        address: SocketAddr,
        conn_qual: u64,
        options: &ConnectOptions<'_>,
    ) -> Result<()> {
        let mut message = self.connect_message(address, conn_qual, options);
        raw::call(self.device(), call::EP_CONNECT, &mut message)
    }

    /// Makes the message of a connect.
    pub(crate) fn connect_message(
        &self,
        mut address: SocketAddr,
        conn_qual: u64,
        options: &ConnectOptions<'_>,
    ) -> kdapl_ep_connect {
        address.set_port(0);
        let until = options.until.map_or(Until::after(options.timeout), Until::at);
        let mut hdr = until.hdr();
        if options.gated {
            hdr.flags |= KDAPL_FLAG_READY_GATE;
        }
        kdapl_ep_connect {
            hdr,
            handle: self.handle().0,
            remote_address: address.into(),
            conn_qual,
            private_data: options.private_data.as_ptr() as u64,
            private_data_size: options.private_data.len() as u32,
            timeout_ns: until.timeout_ns,
            qos: options.qos as u32,
            flags: options.multipath as u32,
            ..Default::default()
        }
    }

    /// Starts to connect to the peer of `other`, an endpoint of the same IA. If `other` accepted
    /// its connection, the call uses the peer's address and the qualifier of the local service
    /// point, on the assumption that both sides of a service use the same qualifier.
    ///
    /// # Errors
    /// `INVALID_HANDLE/HANDLE2` and `INVALID_STATE` also for `other`, which must be connected;
    /// otherwise those of [`connect_with`](Self::connect_with).
    pub fn dup_connect(
        &self,
        other: &Self,
        timeout: Option<Duration>,
        private_data: &[u8],
        qos: Qos,
    ) -> Result<()> {
        let mut message = kdapl_ep_dup_connect {
            handle: self.handle().0,
            dup: other.handle().0,
            private_data: private_data.as_ptr() as u64,
            private_data_size: private_data.len() as u32,
            timeout_ns: Until::after(timeout).timeout_ns,
            qos: qos as u32,
            ..Default::default()
        };
        raw::call(self.device(), call::EP_DUP_CONNECT, &mut message)
    }

    /// Starts to connect to the common service point at `address`, with best effort.
    ///
    /// # Errors
    /// `INVALID_ADDRESS` without a port; otherwise those of [`connect_with`](Self::connect_with).
    pub fn common_connect(
        &self,
        address: SocketAddr,
        timeout: Option<Duration>,
        private_data: &[u8],
    ) -> Result<()> {
        let mut message = kdapl_ep_common_connect {
            handle: self.handle().0,
            remote_address: address.into(),
            private_data: private_data.as_ptr() as u64,
            private_data_size: private_data.len() as u32,
            timeout_ns: Until::after(timeout).timeout_ns,
            ..Default::default()
        };
        raw::call(self.device(), call::EP_COMMON_CONNECT, &mut message)
    }

    /// Opens the ready gate that the connect or the accept has closed. The events that it held back
    /// are reported, ESTABLISHED first. Does nothing if the gate is open.
    ///
    /// # Errors
    /// `INVALID_STATE` unless the endpoint connects, accepts or is connected.
    pub fn ready(&self) -> Result<()> {
        let mut message = kdapl_handle { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call::EP_READY, &mut message)
    }

    /// Returns the private data of the peer's accept or reject; empty before.
    ///
    /// # Errors
    /// `INVALID_HANDLE/EP` after the endpoint was freed.
    pub fn private_data(&self) -> Result<Vec<u8>> {
        let mut message = kdapl_ep_private_data { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call::EP_PRIVATE_DATA, &mut message)?;
        let size = (message.size as usize).min(message.data.len());
        Ok(message.data[..size].to_vec())
    }

    /// Starts to disconnect. DISCONNECTED follows the last completion. On an unconnected endpoint,
    /// flushes the receives; there is no connection event. Does nothing if the connection has ended
    /// already.
    ///
    /// # Errors
    /// `INVALID_STATE` while the endpoint is unconfigured, or reserved for a service point or a
    /// request.
    pub fn disconnect(&self, how: Close) -> Result<()> {
        let mut message = kdapl_ep_disconnect {
            handle: self.handle().0,
            flags: how as u32,
            ..Default::default()
        };
        self.without_mapping(|| raw::call(self.device(), call::EP_DISCONNECT, &mut message))
    }

    /// Makes a disconnected endpoint unconnected, ready for another connection. Completions that
    /// are not dequeued yet are kept. Does nothing to an unconnected endpoint.
    ///
    /// # Errors
    /// `INVALID_STATE` (with the state) in every other state.
    pub fn reset(&self) -> Result<()> {
        let mut message = kdapl_handle { handle: self.handle().0, ..Default::default() };
        self.without_mapping(|| raw::call(self.device(), call::EP_RESET, &mut message))
    }
}
