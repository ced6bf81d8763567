// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a field is for, by its name: the one table that a new field may need a line in.

/// What a call makes and another one takes, each with its own row of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Resource {
    /// An Interface Adapter.
    Ia,
    /// A Protection Zone.
    Pz,
    /// An Event Dispatcher.
    Evd,
    /// An Endpoint.
    Ep,
    /// A Public Service Point.
    Psp,
    /// A Reserved Service Point.
    Rsp,
    /// A Common Service Point.
    Csp,
    /// A Connection Request.
    Cr,
    /// A Local Memory Region.
    Lmr,
    /// A Consumer Notification Object.
    Cno,
    /// The `lmr_context` of a region.
    Local,
    /// The `rmr_context` of a region.
    Remote,
    /// A file descriptor other than one of `/dev/kdapl`.
    Fd,
}

/// All of them with their names in a program's text.
pub const RESOURCES: &[(Resource, &str)] = &[
    (Resource::Ia, "ia"),
    (Resource::Pz, "pz"),
    (Resource::Evd, "evd"),
    (Resource::Ep, "ep"),
    (Resource::Psp, "psp"),
    (Resource::Rsp, "rsp"),
    (Resource::Csp, "csp"),
    (Resource::Cr, "cr"),
    (Resource::Lmr, "lmr"),
    (Resource::Cno, "cno"),
    (Resource::Local, "local"),
    (Resource::Remote, "remote"),
    (Resource::Fd, "fd"),
];

/// Slots of each resource.
pub const SLOTS: usize = 8;

/// What a field is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The size of the message.
    Size,
    /// [`KDAPL_ABI_VERSION`](crate::abi).
    Version,
    /// Zero, if the caller is right.
    Zero,
    /// Something that an earlier call made.
    Slot(Resource),
    /// Any number, which comes back.
    Cookie,
    /// The address of elements of this struct, or of bytes if there is none of that name.
    Pointer(&'static str),
    /// How many elements the pointer of this name has.
    Count(&'static str),
    /// The size of an element of this struct.
    ElementSize(&'static str),
    /// Some bits of these.
    Flags(u64),
    /// A number up to this.
    UpTo(u64),
    /// Nanoseconds.
    Time,
    /// A connection qualifier.
    Qualifier,
    /// An IP address and a port.
    Address,
    /// An address of the memory that there is.
    Memory,
    /// Bytes of that memory.
    Length,
    /// The name of a device.
    Name,
    /// Bytes without a meaning.
    Bytes,
}

/// A struct whose fields are one value.
#[must_use]
pub fn whole(name: &str) -> bool {
    name == "kdapl_sockaddr"
}

/// By the field's last name; the first that fits. An empty call fits all.
const RULES: &[(&str, &str, Kind)] = &[
    // The kernel fills an event in.
    ("kdapl_event", "*", Kind::Zero),
    ("", "hdr.size", Kind::Size),
    ("EVD_WAIT", "hdr.flags", Kind::UpTo(1)),
    ("EP_SUBMIT", "hdr.flags", Kind::UpTo(1)),
    ("CNO_WAIT", "hdr.flags", Kind::UpTo(1)),
    ("EP_CONNECT", "hdr.flags", Kind::UpTo(1)),
    ("EP_DUP_CONNECT", "hdr.flags", Kind::UpTo(1)),
    ("EP_COMMON_CONNECT", "hdr.flags", Kind::UpTo(1)),
    ("", "hdr.flags", Kind::Zero),
    ("", "hdr.ret", Kind::Zero),
    ("", "abi_version", Kind::Version),
    ("", "pad", Kind::Zero),
    ("", "reserved", Kind::Zero),
    ("", "remote_address", Kind::Address),
    ("", "local_address", Kind::Address),
    ("LMR_", "address", Kind::Memory),
    ("kdapl_triplet", "address", Kind::Memory),
    ("EP_", "remote.address", Kind::Memory),
    ("kdapl_dto", "remote.address", Kind::Memory),
    ("", "address", Kind::Address),
    ("", "name", Kind::Name),
    ("PZ_", "handle", Kind::Slot(Resource::Pz)),
    ("EVD_", "handle", Kind::Slot(Resource::Evd)),
    ("EP_", "handle", Kind::Slot(Resource::Ep)),
    ("PSP_", "handle", Kind::Slot(Resource::Psp)),
    ("RSP_", "handle", Kind::Slot(Resource::Rsp)),
    ("CSP_", "handle", Kind::Slot(Resource::Csp)),
    ("CR_", "handle", Kind::Slot(Resource::Cr)),
    ("LMR_", "handle", Kind::Slot(Resource::Lmr)),
    ("CNO_", "handle", Kind::Slot(Resource::Cno)),
    ("", "pz", Kind::Slot(Resource::Pz)),
    ("", "cno", Kind::Slot(Resource::Cno)),
    ("", "evd", Kind::Slot(Resource::Evd)),
    ("", "recv_evd", Kind::Slot(Resource::Evd)),
    ("", "request_evd", Kind::Slot(Resource::Evd)),
    ("", "connect_evd", Kind::Slot(Resource::Evd)),
    ("", "ep", Kind::Slot(Resource::Ep)),
    ("", "dup", Kind::Slot(Resource::Ep)),
    ("", "agent_fd", Kind::Slot(Resource::Fd)),
    ("kdapl_triplet", "context", Kind::Slot(Resource::Local)),
    ("", "remote.context", Kind::Slot(Resource::Remote)),
    ("", "cookie", Kind::Cookie),
    ("", "pointer", Kind::Cookie),
    ("", "private_data_size", Kind::Count("private_data")),
    ("", "private_data", Kind::Pointer("bytes")),
    ("", "iov_count", Kind::Count("iov")),
    ("", "iov_size", Kind::ElementSize("kdapl_triplet")),
    ("", "triplet_size", Kind::ElementSize("kdapl_triplet")),
    ("", "iov", Kind::Pointer("kdapl_triplet")),
    ("EP_SUBMIT", "count", Kind::Count("dtos")),
    ("", "dto_size", Kind::ElementSize("kdapl_dto")),
    ("", "dtos", Kind::Pointer("kdapl_dto")),
    ("", "event_size", Kind::ElementSize("kdapl_event")),
    ("", "events", Kind::Pointer("kdapl_event")),
    ("", "max_events", Kind::Count("events")),
    ("", "timeout_ns", Kind::Time),
    ("", "conn_qual", Kind::Qualifier),
    ("EVD_CREATE", "flags", Kind::Flags(0x1f1)),
    ("EP_MODIFY", "mask", Kind::Flags(0x1_0fff_ff80)),
    ("EP_QUERY", "mask", Kind::Flags(0x1_7fff_ffff)),
    ("", "privileges", Kind::Flags(0x73)),
    ("", "dto.flags", Kind::Flags(0x1f)),
    ("kdapl_dto", "flags", Kind::Flags(0x1f)),
    ("", "recv_completion_flags", Kind::Flags(0x16)),
    ("", "request_completion_flags", Kind::Flags(0x14)),
    ("", "flags", Kind::UpTo(3)),
    ("", "operation", Kind::UpTo(12)),
    ("", "qlen", Kind::UpTo(40)),
    ("", "async_evd_qlen", Kind::UpTo(16)),
    ("", "threshold", Kind::UpTo(4)),
    ("", "backlog", Kind::UpTo(4)),
    ("", "vector", Kind::UpTo(2)),
    ("", "index", Kind::UpTo(3)),
    ("", "domain", Kind::UpTo(11)),
    ("", "type", Kind::UpTo(2)),
    ("", "mem_type", Kind::UpTo(2)),
    ("", "va_type", Kind::UpTo(2)),
    ("", "qos", Kind::UpTo(9)),
    ("", "service_type", Kind::UpTo(2)),
    ("", "max_recv_dtos", Kind::UpTo(20)),
    ("", "max_request_dtos", Kind::UpTo(20)),
    ("", "max_recv_iov", Kind::UpTo(5)),
    ("", "max_request_iov", Kind::UpTo(5)),
    ("", "length", Kind::Length),
];

/// What a field of a call, or of a struct that a message points to, is for.
#[must_use]
pub fn of(owner: &str, kind: &str, path: &str, size: usize) -> Kind {
    let fits = |rule: &&(&str, &str, Kind)| {
        owner.starts_with(rule.0) && (rule.1 == "*" || names(rule.1, path))
    };
    match RULES.iter().find(fits) {
        Some((_, _, kind)) => *kind,
        None if whole(kind) => Kind::Address,
        None if size > 8 => Kind::Bytes,
        None => Kind::UpTo(8),
    }
}

/// Whether a rule's name is that of the field, or of its last parts.
fn names(name: &str, path: &str) -> bool {
    path == name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
}

/// Parameters of the module that limit what a user may have.
pub const LIMITS: &[&str] = &[
    "user_adapters",
    "user_objects",
    "user_service_points",
    "user_queue_pairs",
    "user_device_share",
    "user_driver_memory_mb",
];

/// What a program may do besides the ioctls, with the arguments of each.
pub const SYSTEM: &[(&str, &[(&str, Kind)])] = &[
    // Opens /dev/kdapl as the step's file; closes it.
    ("OPEN", &[]),
    ("CLOSE", &[]),
    // Sends the file to the other process; takes one that came as the step's file.
    ("SEND_FILE", &[]),
    ("TAKE_FILE", &[]),
    // Starts the other process, with the files and the memory as they are.
    ("FORK", &[]),
    // Starts the thread of a lane of this process.
    ("START", &[("lane", Kind::UpTo(5))]),
    // Kills the other process; ends this one.
    ("KILL", &[]),
    ("EXIT", &[]),
    // Takes the device away and brings it back, as root.
    ("REPLUG", &[]),
    // Sets a limit of the user's, as root; it lasts until the end of the program.
    ("LIMIT", &[("which", Kind::UpTo(LIMITS.len() as u64 - 1)), ("value", Kind::UpTo(40))]),
    ("SLEEP", &[("timeout_ns", Kind::Time)]),
    ("MAP", &[("address", Kind::Memory), ("length", Kind::Length)]),
    ("UNMAP", &[("address", Kind::Memory), ("length", Kind::Length)]),
    ("DISCARD", &[("address", Kind::Memory), ("length", Kind::Length)]),
    ("PROTECT", &[("address", Kind::Memory), ("length", Kind::Length), ("write", Kind::UpTo(1))]),
    ("TOUCH", &[("address", Kind::Memory), ("length", Kind::Length)]),
    ("EVENTFD", &[]),
    ("FD_CLOSE", &[("fd", Kind::Slot(Resource::Fd))]),
    ("FD_POLL", &[("fd", Kind::Slot(Resource::Fd)), ("timeout_ns", Kind::Time)]),
    ("FD_READ", &[("fd", Kind::Slot(Resource::Fd))]),
    ("POLL", &[("timeout_ns", Kind::Time)]),
    ("READ", &[]),
];
