// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Maps the name of a field to its use. A new field of the header may need a line here.

/// Types of objects that calls create and other calls use. Each has its own slots.
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
    /// A Remote Memory Region.
    Rmr,
    /// A Shared Receive Queue.
    Srq,
    /// A Consumer Notification Object.
    Cno,
    /// The `lmr_context` of a region.
    Local,
    /// The `rmr_context` of a region.
    Remote,
    /// A file descriptor other than one of `/dev/kdapl`.
    Fd,
    /// A window of mapped events or posts.
    Map,
}

/// Names of the resources in a program's text.
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
    (Resource::Rmr, "rmr"),
    (Resource::Srq, "srq"),
    (Resource::Cno, "cno"),
    (Resource::Local, "local"),
    (Resource::Remote, "remote"),
    (Resource::Fd, "fd"),
    (Resource::Map, "map"),
];

/// Slots of each resource.
pub const SLOTS: usize = 8;

/// Uses of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The size of the message.
    Size,
    /// [`KDAPL_ABI_VERSION`](crate::abi).
    Version,
    /// Zero in a valid message.
    Zero,
    /// An object that an earlier call created.
    Slot(Resource),
    /// Any number, which the kernel returns in an event.
    Cookie,
    /// The address of elements of this struct, or of bytes if no struct has that name.
    Pointer(&'static str),
    /// The number of elements at the pointer of this name.
    Count(&'static str),
    /// The size of an element of this struct.
    ElementSize(&'static str),
    /// A combination of these bits.
    Flags(u64),
    /// A number up to this one.
    UpTo(u64),
    /// Nanoseconds.
    Time,
    /// A connection qualifier.
    Qualifier,
    /// An IP address and a port.
    Address,
    /// An address in the program's memory.
    Memory,
    /// A number of bytes of that memory.
    Length,
    /// The name of a device.
    Name,
    /// Any bytes.
    Bytes,
}

/// A struct whose fields are a single value.
#[must_use]
pub fn whole(name: &str) -> bool {
    name == "kdapl_sockaddr"
}

/// Uses by call and last part of the field's name. The first match counts. An empty call matches
/// all.
const RULES: &[(&str, &str, Kind)] = &[
    // The kernel writes events.
    ("kdapl_event", "*", Kind::Zero),
    ("", "hdr.size", Kind::Size),
    ("EVD_WAIT", "hdr.flags", Kind::UpTo(1)),
    ("EP_SUBMIT", "hdr.flags", Kind::Flags(0x9)),
    ("EP_POST", "hdr.flags", Kind::Flags(0x8)),
    ("CNO_WAIT", "hdr.flags", Kind::UpTo(3)),
    ("URING_STREAM", "hdr.flags", Kind::UpTo(1)),
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
    ("RMR_", "segment.address", Kind::Memory),
    ("RMR_", "segment.context", Kind::Slot(Resource::Local)),
    ("RMR_", "handle", Kind::Slot(Resource::Rmr)),
    ("SRQ_", "handle", Kind::Slot(Resource::Srq)),
    ("URING_STREAM", "handle", Kind::Slot(Resource::Evd)),
    // The number of a command in the ring of its lane.
    ("URING_CANCEL", "user_data", Kind::UpTo(8)),
    ("", "srq", Kind::Slot(Resource::Srq)),
    ("", "lmr", Kind::Slot(Resource::Lmr)),
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
    ("EP_MODIFY", "mask", Kind::Flags(0x3_0fff_ff80)),
    ("EP_QUERY", "mask", Kind::Flags(0x3_7fff_ffff)),
    ("", "privileges", Kind::Flags(0x73)),
    ("", "dto.flags", Kind::Flags(0x1f)),
    ("kdapl_dto", "flags", Kind::Flags(0x1f)),
    ("", "recv_completion_flags", Kind::Flags(0x16)),
    ("", "request_completion_flags", Kind::Flags(0x14)),
    ("", "flags", Kind::UpTo(3)),
    // Up to 12, and 0x100 and 0x101.
    ("", "operation", Kind::Flags(0x10f)),
    ("", "qlen", Kind::UpTo(40)),
    ("", "async_evd_qlen", Kind::UpTo(16)),
    ("", "threshold", Kind::UpTo(4)),
    ("", "backlog", Kind::UpTo(4)),
    ("", "vector", Kind::UpTo(2)),
    ("", "index", Kind::UpTo(3)),
    ("IA_STAT", "serial", Kind::UpTo(8)),
    ("PORT_GET", "device", Kind::UpTo(3)),
    ("PORT_GET", "port", Kind::UpTo(2)),
    ("PORT_GET", "address_index", Kind::UpTo(3)),
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
    ("", "keepalive_ms", Kind::UpTo(8_000)),
    ("", "length", Kind::Length),
];

/// Returns the use of a field of a call, or of a struct that a message points to.
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

/// Returns whether a rule's name is that of the field, or of its last parts.
fn names(name: &str, path: &str) -> bool {
    path == name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
}

/// Module parameters that limit the resources of a user.
pub const LIMITS: &[&str] = &[
    "user_adapters",
    "user_objects",
    "user_service_points",
    "user_queue_pairs",
    "user_device_share",
    "user_driver_memory_mb",
    "user_module_memory_mb",
    "user_pinned_memory_mb",
    "user_port_share",
];

/// Actions of a program besides the ioctls, with their arguments.
pub const SYSTEM: &[(&str, &[(&str, Kind)])] = &[
    // Opens /dev/kdapl as the step's file; closes it.
    ("OPEN", &[]),
    ("CLOSE", &[]),
    // Sends the file to the other process; receives one as the step's file.
    ("SEND_FILE", &[]),
    ("TAKE_FILE", &[]),
    // Starts the other process, with a copy of files and memory.
    ("FORK", &[]),
    // Starts the thread of a lane of this process.
    ("START", &[("lane", Kind::UpTo(5))]),
    // Kills the other process; exits this one.
    ("KILL", &[]),
    ("EXIT", &[]),
    // Removes the device and adds it again, as root.
    ("REPLUG", &[]),
    // Sets a limit of the user, as root, until the end of the program.
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
    (
        "FD_READ",
        &[("fd", Kind::Slot(Resource::Fd)), ("address", Kind::Memory), ("length", Kind::Length)],
    ),
    ("FD_WRITE", &[("fd", Kind::Slot(Resource::Fd)), ("pointer", Kind::Cookie)]),
    ("POLL", &[("timeout_ns", Kind::Time)]),
    ("READ", &[]),
    // Maps an area of an EVD's events into a window; unmaps pages of it. 0 is the valid value of
    // `pages` and `protection`, and stands for all pages of the window.
    (
        "MAP_EVENTS",
        &[
            ("evd", Kind::Slot(Resource::Evd)),
            ("area", Kind::UpTo(2)),
            ("pages", Kind::UpTo(3)),
            ("protection", Kind::UpTo(7)),
            ("private", Kind::UpTo(1)),
        ],
    ),
    (
        "UNMAP_EVENTS",
        &[("map", Kind::Slot(Resource::Map)), ("first", Kind::UpTo(3)), ("pages", Kind::UpTo(3))],
    ),
    // The same of an area of an Endpoint's posts. UNMAP_EVENTS unmaps them.
    (
        "MAP_POSTS",
        &[
            ("ep", Kind::Slot(Resource::Ep)),
            ("area", Kind::UpTo(2)),
            ("pages", Kind::UpTo(3)),
            ("protection", Kind::UpTo(7)),
            ("private", Kind::UpTo(1)),
        ],
    ),
    // Maps a DTO several times.
    (
        "MAP_DTO",
        &[
            ("map", Kind::Slot(Resource::Map)),
            ("operation", Kind::UpTo(4)),
            ("flags", Kind::Flags(0x1f)),
            ("address", Kind::Memory),
            ("length", Kind::Length),
            ("context", Kind::Slot(Resource::Local)),
            ("remote_address", Kind::Memory),
            ("remote_length", Kind::Length),
            ("remote_context", Kind::Slot(Resource::Remote)),
            ("count", Kind::UpTo(8)),
        ],
    ),
    // Takes mapped events without a call; writes to their index, or to the tail of mapped posts.
    ("TAKE_EVENTS", &[("map", Kind::Slot(Resource::Map)), ("count", Kind::UpTo(8))]),
    (
        "SCRIBBLE",
        &[
            ("map", Kind::Slot(Resource::Map)),
            ("from", Kind::UpTo(3)),
            ("value", Kind::UpTo(130)),
            ("times", Kind::UpTo(400)),
        ],
    ),
    // Of the io_uring of the step's lane: provides buffers for streams; runs the commands whose
    // events have come; closes it.
    ("RING_BUFFERS", &[("address", Kind::Memory), ("length", Kind::Length)]),
    ("RING_REAP", &[]),
    ("RING_CLOSE", &[]),
];
