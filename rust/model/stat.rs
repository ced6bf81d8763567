// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Statistics of an open Interface Adapter.

use super::traffic::Traffic;

/// Bytes of the name of a process, with the zero byte at the end.
pub(crate) const PROCESS_NAME_LEN: usize = 16;

/// Bytes of the name of a device, with the zero byte at the end.
pub(crate) const ADAPTER_NAME_LEN: usize = 64;

/// Consumer of an Interface Adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Process that opened the adapter, as a number in the reader's PID namespace. 0 for a kernel
    /// module, and for a process that has no number there.
    pub(crate) pid: u32,
    /// User of that process, as a number in the reader's user namespace.
    pub(crate) uid: u32,
    /// Name that the process had then. Empty for a kernel module.
    pub(crate) name: [u8; PROCESS_NAME_LEN],
    pub(crate) is_kernel: bool,
}

/// Numbers of existing objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectCounts {
    pub(crate) pzs: u32,
    pub(crate) lmrs: u32,
    pub(crate) rmrs: u32,
    pub(crate) cnos: u32,
    pub(crate) evds: u32,
    pub(crate) eps: u32,
    pub(crate) srqs: u32,
    pub(crate) psps: u32,
    pub(crate) rsps: u32,
    pub(crate) csps: u32,
    pub(crate) crs: u32,
}

/// Numbers of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionCounts {
    /// Present connections.
    pub(crate) current: u32,
    /// Connections that were established since the adapter was opened.
    pub(crate) established: u64,
    /// Connections that have ended with BROKEN since then.
    pub(crate) broken: u64,
}

/// Statistics of an open Interface Adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Name of the device, with a zero byte at the end.
    pub(crate) adapter_name: [u8; ADAPTER_NAME_LEN],
    pub(crate) owner: Owner,
    /// Nanoseconds since the adapter was opened.
    pub(crate) age_ns: u64,
    pub(crate) objects: ObjectCounts,
    pub(crate) connections: ConnectionCounts,
    /// Data Transfer Operations that have completed since the adapter was opened.
    pub(crate) traffic: Traffic,
    /// Requests that are posted and have not completed.
    pub(crate) requests: u32,
    /// Receives that are posted to Endpoints and have not completed.
    pub(crate) receives: u32,
    /// Events that are queued in all Event Dispatchers.
    pub(crate) events: u64,
    /// Threads that wait for an Event Dispatcher or a Consumer Notification Object.
    pub(crate) waiters: u32,
    /// Bytes of all Local Memory Regions.
    pub(crate) memory: u64,
}
