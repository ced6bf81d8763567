// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connecting and disconnecting.

use super::Ep;
use crate::error::Result;
use crate::raw::{self, call};
use crate::sys::*;
use crate::time::{Monotonic, Until};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How to close or disconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Close {
    /// At once; what is outstanding is flushed.
    Abrupt = KDAPL_CLOSE_ABRUPT,
    /// An endpoint: after the requests posted so far. An IA: only if it has no objects.
    Graceful = KDAPL_CLOSE_GRACEFUL,
}

/// The quality of service asked of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Qos {
    /// As everybody else.
    #[default]
    BestEffort = KDAPL_QOS_BEST_EFFORT,
    /// Bytes before latency.
    HighThroughput = KDAPL_QOS_HIGH_THROUGHPUT,
    /// Latency before bytes.
    LowLatency = KDAPL_QOS_LOW_LATENCY,
    /// What others leave.
    Economy = KDAPL_QOS_ECONOMY,
    /// Before others.
    Premium = KDAPL_QOS_PREMIUM,
}

/// Whether a connection may use several paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Multipath {
    /// One path.
    #[default]
    No = 0,
    /// Several if there are; with one the state is CONNECTED_SINGLE_PATH.
    Requested = KDAPL_CONNECT_MULTIPATH_REQUESTED,
    /// Several or none: refused where there is one.
    Required = KDAPL_CONNECT_MULTIPATH_REQUIRED,
}

/// How to connect.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectOptions<'a> {
    /// How long to try, not zero; `None`: until the transport gives up.
    pub timeout: Option<Duration>,
    /// Until when to try, instead.
    pub until: Option<Monotonic>,
    /// For the peer, who sees it with the request.
    pub private_data: &'a [u8],
    /// Asked of the network.
    pub qos: Qos,
    /// Asked of the network.
    pub multipath: Multipath,
}

impl Ep {
    /// [`connect_with`](Self::connect_with) of a time-out and private data.
    ///
    /// # Errors
    /// As there.
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

    /// Starts to connect to the service point `conn_qual` at `address`, of whose parts the port does
    /// not matter. The outcome is an event on the connection EVD, at the latest when the time is up.
    ///
    /// # Errors
    /// `INVALID_STATE` unless unconnected; `INVALID_PARAMETER` for no time, no qualifier or too
    /// much private data; `INVALID_ADDRESS` if no way leads there; `MODEL_NOT_SUPPORTED` for
    /// [`Multipath::Required`].
    pub fn connect_with(
        &self,
        mut address: SocketAddr,
        conn_qual: u64,
        options: &ConnectOptions<'_>,
    ) -> Result<()> {
        address.set_port(0);
        let until = options.until.map_or(Until::after(options.timeout), Until::at);
        let mut message = kdapl_ep_connect {
            hdr: until.hdr(),
            handle: self.handle().0,
            remote_address: address.into(),
            conn_qual,
            private_data: options.private_data.as_ptr() as u64,
            private_data_size: options.private_data.len() as u32,
            timeout_ns: until.timeout_ns,
            qos: options.qos as u32,
            flags: options.multipath as u32,
            ..Default::default()
        };
        raw::call(self.device(), call::EP_CONNECT, &mut message)
    }

    /// Starts to connect to where `other`, an endpoint of the same IA, is connected to. If `other`
    /// accepted its connection, that is its peer's address and the qualifier of the service point
    /// here: both sides of a service are taken to have the same.
    ///
    /// # Errors
    /// `INVALID_HANDLE/HANDLE2` and `INVALID_STATE` also for `other`, which must be connected; the
    /// rest as for [`connect_with`](Self::connect_with).
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

    /// Starts to connect to the common service point at `address`, best effort.
    ///
    /// # Errors
    /// `INVALID_ADDRESS` without a port; the rest as for [`connect_with`](Self::connect_with).
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

    /// What the peer sent with its accept or its reject; nothing before.
    ///
    /// # Errors
    /// `INVALID_HANDLE/EP` once freed.
    pub fn private_data(&self) -> Result<Vec<u8>> {
        let mut message = kdapl_ep_private_data { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call::EP_PRIVATE_DATA, &mut message)?;
        let size = (message.size as usize).min(message.data.len());
        Ok(message.data[..size].to_vec())
    }

    /// Starts to disconnect; DISCONNECTED follows the last completion. An unconnected endpoint
    /// gets its receives back, flushed, and no connection event. Where the end has come already
    /// nothing more happens.
    ///
    /// # Errors
    /// `INVALID_STATE` while unconfigured, or kept for a service point or a request.
    pub fn disconnect(&self, how: Close) -> Result<()> {
        let mut message = kdapl_ep_disconnect {
            handle: self.handle().0,
            flags: how as u32,
            ..Default::default()
        };
        raw::call(self.device(), call::EP_DISCONNECT, &mut message)
    }

    /// Makes a disconnected endpoint unconnected, ready for another connection. Completions that
    /// wait to be dequeued are not lost. Does nothing to an unconnected one.
    ///
    /// # Errors
    /// `INVALID_STATE` in every other state, with its name.
    pub fn reset(&self) -> Result<()> {
        let mut message = kdapl_handle { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call::EP_RESET, &mut message)
    }
}
