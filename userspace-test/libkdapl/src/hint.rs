// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Remedies for errors, in one sentence each.

use crate::codes::{Subtype, Type};
use std::io;

/// Returns the meaning of a DAT code and a remedy.
pub(crate) fn for_dat(kind: Type, subtype: Subtype) -> &'static str {
    match (kind, subtype) {
        (Type::INVALID_STATE, subtype) => for_state(subtype),
        (Type::INVALID_HANDLE, subtype) => for_handle(subtype),
        (Type::ABORT, _) => {
            "the IA was closed, or the CNO lost its last EVD, during the call: stop waiting on it"
        }
        (Type::CONN_QUAL_IN_USE, _) => {
            "another program listens on that connection qualifier; choose another one"
        }
        (Type::CONN_QUAL_UNAVAILABLE, _) => {
            "no such port may be used here: below 1024 it needs CAP_NET_BIND_SERVICE, 299 is \
             kDAPL's own; choose another one"
        }
        (Type::PORT_IN_USE, _) => "another program listens on that port; choose another one, or 0",
        (Type::COMM_NOT_SUPPORTED, _) => "listen at an IPv4 or IPv6 address, as a stream",
        (Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY) => {
            "out of memory, over the limit on locked memory (ulimit -l), or over a limit of the \
             module (debugfs/kdapl/users)"
        }
        (Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEVD) => {
            "the event queue has no room for what is asked of it: take events from it first, or \
             create a longer one"
        }
        (Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP) => {
            "no local port is free for a connect, or the endpoint has as many operations as it \
             takes: free endpoints, or wait for completions"
        }
        (Type::INSUFFICIENT_RESOURCES, _) => "free objects that are no longer needed",
        (Type::INTERNAL_ERROR, _) => "the kernel log (dmesg) says more",
        (Type::INVALID_PARAMETER, Subtype(37..=46)) => {
            "the argument with that number is out of its range"
        }
        (Type::INVALID_PARAMETER, _) => "an argument is out of its range; see the IA's limits",
        (Type::LENGTH_ERROR, _) => "a length is zero or goes past the end of its region",
        (Type::MODEL_NOT_SUPPORTED, _) => "this device or this version does not offer that",
        (Type::NOT_IMPLEMENTED, _) => "this version of the module does not offer that",
        (Type::PROVIDER_NOT_FOUND, _) => {
            "no RDMA device with that name, port, network device or address; 'kdapltest devices' \
             lists them, 'rdma link add rxe0 type rxe netdev DEVICE' makes one on any network \
             device"
        }
        (Type::PRIVILEGES_VIOLATION, _) => {
            "the region lacks a privilege that the operation needs; of dat_ia_open: only \
             CAP_SYS_RAWIO opens this device (docs/drivers.md)"
        }
        (Type::PROTECTION_VIOLATION, _) => {
            "a segment is in no region of the endpoint's PZ, or exceeds it: check address, length \
             and PZ"
        }
        (Type::QUEUE_EMPTY, _) => "no event is waiting",
        (Type::QUEUE_FULL, _) => "dequeue events first, or create the EVD with a longer queue",
        (Type::TIMEOUT_EXPIRED, _) => "nothing happened in the time given",
        (Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNREACHABLE) => {
            "no route leads to that address through this device"
        }
        (Type::INVALID_ADDRESS, _) => "give an IPv4 or IPv6 address that this device can reach",
        (Type::INTERRUPTED_CALL, _) => "a signal arrived; call again, nothing was lost",
        _ => "see the DAT specification",
    }
}

fn for_state(subtype: Subtype) -> &'static str {
    match subtype {
        Subtype::INVALID_STATE_EVD_CONFIG_NOTIFY | Subtype::INVALID_STATE_EVD_CONFIG_SOLICITED => {
            "the EVD's endpoints select which completions wake: wait for one event at a time"
        }
        Subtype::INVALID_STATE_EP_UNCONNECTED => "the endpoint is not connected yet",
        Subtype::INVALID_STATE_EP_ACTCONNPENDING => {
            "the endpoint is connecting; wait for its connection event"
        }
        Subtype::INVALID_STATE_EP_COMPLPENDING => {
            "the endpoint is being accepted; wait for its connection event"
        }
        Subtype::INVALID_STATE_EP_PASSCONNPENDING | Subtype::INVALID_STATE_EP_TENTCONNPENDING => {
            "a connection request uses the endpoint; accept or reject the request"
        }
        Subtype::INVALID_STATE_EP_RESERVED => {
            "the endpoint is reserved for a service point; free the service point first"
        }
        Subtype::INVALID_STATE_EP_UNCONFIGURED
        | Subtype::INVALID_STATE_EP_UNCONFRESERVED
        | Subtype::INVALID_STATE_EP_UNCONFPASSIVE
        | Subtype::INVALID_STATE_EP_UNCONFTENTATIVE => {
            "the endpoint has no PZ or not all its EVDs; modify it first"
        }
        Subtype::INVALID_STATE_EP_CONNECTED => "the endpoint is connected; disconnect it first",
        Subtype::INVALID_STATE_EP_DISCONNECTED => {
            "the endpoint is disconnected; reset it for a new connection"
        }
        Subtype::INVALID_STATE_EP_DISCPENDING => {
            "the endpoint is disconnecting; wait for DISCONNECTED"
        }
        Subtype::INVALID_STATE_EVD_IN_USE => {
            "endpoints or listeners still feed this EVD; free them first"
        }
        Subtype::INVALID_STATE_EVD_WAITER => {
            "another thread already waits on this EVD; one waiter per EVD"
        }
        Subtype::INVALID_STATE_IA_IN_USE => {
            "the IA still has objects; free them or close it abruptly"
        }
        Subtype::INVALID_STATE_LMR_IN_USE => {
            "an RMR is bound to this region: unbind or free the RMR first"
        }
        Subtype::INVALID_STATE_PZ_IN_USE => {
            "endpoints or regions still belong to this PZ; free them first"
        }
        _ => "the object is not in a state that allows this",
    }
}

fn for_handle(subtype: Subtype) -> &'static str {
    match subtype {
        Subtype::INVALID_HANDLE_IA => "the IA is not open; open it first, or again",
        Subtype::INVALID_HANDLE_EVD_CR => "the EVD is gone, or was created without the CR flag",
        Subtype::INVALID_HANDLE_EVD_REQUEST | Subtype::INVALID_HANDLE_EVD_RECV => {
            "the EVD is gone, or was created without the DTO flag"
        }
        Subtype::INVALID_HANDLE_EVD_CONN => {
            "the EVD is gone, or was created without the CONNECTION flag"
        }
        Subtype::INVALID_HANDLE_CR => "the request was already answered, or the peer gave up",
        _ => "the object was freed, or belongs to another IA",
    }
}

/// Returns a remedy for an errno of `open("/dev/kdapl")`.
pub(crate) fn for_open(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => {
            "the module is not loaded; load it: modprobe kdapl"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "you may not use the device; run as root, or have an administrator give your group \
             access to it"
        }
        Some(libc::EMFILE | libc::ENFILE) => "too many open files; close some (ulimit -n)",
        _ => "the kernel log (dmesg) may say more",
    }
}

/// Returns a remedy for an errno of a message.
pub(crate) fn for_transport(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOTTY) => "the loaded module does not know this call: it is too old",
        Some(libc::EINVAL | libc::E2BIG) => {
            "library and loaded module disagree on the message: install both from one version"
        }
        Some(libc::EFAULT) => "an address in the call is not mapped",
        Some(libc::EINTR) => "a signal arrived; call again",
        Some(libc::ENOMEM) => "the kernel is out of memory",
        Some(libc::EAGAIN) => "no event or no room is there; poll the file and try again",
        Some(libc::EPERM) => "the EVD is unwaitable; allow waits, or make the file non-blocking",
        Some(libc::EPIPE) => "the EVD was freed, or its IA closed; open a file of another EVD",
        Some(libc::EBADF) => "the file cannot be written; create the EVD with EvdFlags::SOFTWARE",
        _ => "the kernel log (dmesg) may say more",
    }
}
