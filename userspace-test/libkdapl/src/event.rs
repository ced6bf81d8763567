// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events as Rust types.

use crate::cr::Cr;
use crate::object::Handle;
use crate::raw::Device;
use crate::sys::*;
use std::fmt;
use std::sync::Arc;

/// An event taken from an [`Evd`](crate::Evd).
#[derive(Debug)]
pub enum Event {
    /// A data transfer operation completed, successfully or not.
    Dto(DtoEvent),
    /// A bind or an unbind of an [`Rmr`](crate::Rmr) completed, successfully or not.
    RmrBind {
        /// Region of the bind.
        rmr: Handle,
        /// Cookie of the bind.
        cookie: u64,
        /// Status of the completion.
        status: DtoStatus,
    },
    /// A connection request arrived.
    ConnectionRequest {
        /// The request. Dropping it unanswered rejects it.
        cr: Cr,
        /// Service point that the request arrived at: a PSP, RSP or CSP.
        service_point: Handle,
        /// Connection qualifier of the service point; for a CSP, its port.
        conn_qual: u64,
        /// Size of the private data that [`Cr::query`] returns.
        private_data_size: u32,
    },
    /// A connection was established, refused or lost.
    Connection {
        /// Type of the connection event.
        event: ConnectionEvent,
        /// Endpoint of the connection.
        ep: Handle,
        /// Size of the private data that [`Ep::private_data`](crate::Ep::private_data) returns.
        private_data_size: u32,
    },
    /// An asynchronous error of an object or of the IA.
    Async {
        /// Type of the error.
        event: AsyncEvent,
        /// Object that the error occurred on.
        object: Handle,
        /// DAT's reason code.
        reason: u32,
    },
    /// A software event.
    Software {
        /// Pointer that was passed to [`Evd::post_se`](crate::Evd::post_se).
        pointer: u64,
    },
    /// An event that this library does not know: the module is newer.
    Unknown {
        /// Number of the event.
        number: u32,
    },
}

/// Completion of a data transfer operation (DTO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DtoEvent {
    /// Endpoint that the operation was posted to.
    pub ep: Handle,
    /// Cookie of the post.
    pub cookie: u64,
    /// Status of the completion.
    pub status: DtoStatus,
    /// Number of bytes transferred, on success.
    pub length: u64,
    /// Type of the operation.
    pub operation: DtoOperation,
    /// RMR context that the peer invalidated, or 0.
    pub rmr_context: u32,
    /// Immediate data from the peer, for [`RecvImmed`](DtoOperation::RecvImmed) and
    /// [`RecvMsgImmed`](DtoOperation::RecvMsgImmed).
    pub immed_data: Option<u32>,
}

macro_rules! numbered {
    ($(#[$doc:meta])* $type:ident { $($(#[$each:meta])* $name:ident = $value:expr, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$each])* $name,)*
            /// A number that this library does not know.
            Other(u32),
        }

        impl From<u32> for $type {
            fn from(raw: u32) -> Self {
                $(if raw == $value {
                    return Self::$name;
                })*
                Self::Other(raw)
            }
        }

        impl $type {
            /// Returns DAT's number.
            #[must_use]
            pub fn number(self) -> u32 {
                match self {
                    $(Self::$name => $value,)*
                    Self::Other(raw) => raw,
                }
            }

            /// Returns DAT's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Other(_) => "UNKNOWN",
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Other(raw) => write!(f, "{}({raw:#x})", self.name()),
                    _ => f.write_str(self.name()),
                }
            }
        }
    };
}
pub(crate) use numbered;

numbered! {
    /// `DAT_DTO_COMPLETION_STATUS`.
    DtoStatus {
        /// All bytes were transferred.
        Success = 0, "SUCCESS";
        /// The connection ended before the operation was executed.
        Flushed = 1, "FLUSHED";
        /// The local buffer was too small.
        LocalLength = 2, "LOCAL_LENGTH";
        /// The local endpoint is in error.
        LocalEp = 3, "LOCAL_EP";
        /// The memory of a local segment is not registered, or without the necessary privilege.
        LocalProtection = 4, "LOCAL_PROTECTION";
        /// The peer sent an unexpected response.
        BadResponse = 5, "BAD_RESPONSE";
        /// The peer's region does not allow the access.
        RemoteAccess = 6, "REMOTE_ACCESS";
        /// The peer could not execute the operation.
        RemoteResponder = 7, "REMOTE_RESPONDER";
        /// The peer did not respond in time.
        Transport = 8, "TRANSPORT";
        /// The peer had no receive posted.
        ReceiverNotReady = 9, "RECEIVER_NOT_READY";
        /// The message was truncated.
        PartialPacket = 10, "PARTIAL_PACKET";
        /// The RMR could not be bound.
        RmrOperationFailed = 11, "RMR_OPERATION_FAILED";
        /// Local memory management failed.
        LocalMm = 12, "LOCAL_MM_ERROR";
    }
}

numbered! {
    /// `DAT_DTOS`.
    DtoOperation {
        /// A send.
        Send = KDAPL_DTO_SEND, "SEND";
        /// An RDMA Write.
        RdmaWrite = KDAPL_DTO_RDMA_WRITE, "RDMA_WRITE";
        /// An RDMA Read.
        RdmaRead = KDAPL_DTO_RDMA_READ, "RDMA_READ";
        /// A receive.
        Receive = KDAPL_DTO_RECEIVE, "RECEIVE";
        /// A receive of a message that invalidated an RMR context of this side.
        ReceiveWithInvalidate = KDAPL_DTO_RECEIVE_WITH_INVALIDATE, "RECEIVE_WITH_INVALIDATE";
        /// A send that invalidates an RMR context of the peer. Its completion is that of a send.
        SendWithInvalidate = KDAPL_DTO_SEND_WITH_INVALIDATE, "SEND_WITH_INVALIDATE";
        /// An RDMA Read into memory that an RMR context names. Its completion is that of a read.
        RdmaReadToRmr = KDAPL_DTO_RDMA_READ_TO_RMR, "RDMA_READ_TO_RMR";
        /// An RDMA Write with immediate data.
        RdmaWriteImmed = KDAPL_IB_DTO_RDMA_WRITE_IMMED, "RDMA_WRITE_IMMED";
        /// A receive consumed by such a write of the peer. Its memory is unchanged.
        RecvImmed = KDAPL_IB_DTO_RECV_IMMED, "RECV_IMMED";
        /// A Fetch and Add.
        FetchAdd = KDAPL_IB_DTO_FETCH_ADD, "FETCH_ADD";
        /// A Compare and Swap.
        CmpSwap = KDAPL_IB_DTO_CMP_SWAP, "CMP_SWAP";
        /// A receive of a message with immediate data.
        RecvMsgImmed = KDAPL_IB_DTO_RECV_MSG_IMMED, "RECV_MSG_IMMED";
    }
}

impl DtoOperation {
    /// Returns whether the completion is an event of the InfiniBand extensions
    /// (`DAT_IB_DTO_EVENT`).
    #[must_use]
    pub fn is_extension(self) -> bool {
        (KDAPL_IB_DTO_RDMA_WRITE_IMMED..=KDAPL_IB_DTO_RECV_MSG_IMMED).contains(&self.number())
    }
}

numbered! {
    /// Type of a connection event.
    ConnectionEvent {
        /// The connection is established.
        Established = KDAPL_EVENT_ESTABLISHED, "ESTABLISHED";
        /// The peer's consumer rejected the request.
        PeerRejected = KDAPL_EVENT_PEER_REJECTED, "PEER_REJECTED";
        /// The transport rejected the request, or no service point listens at the peer.
        NonPeerRejected = KDAPL_EVENT_NON_PEER_REJECTED, "NON_PEER_REJECTED";
        /// The peer disconnected while being accepted.
        AcceptCompletionError = KDAPL_EVENT_ACCEPT_COMPLETION_ERROR, "ACCEPT_COMPLETION_ERROR";
        /// One of the two sides disconnected.
        Disconnected = KDAPL_EVENT_DISCONNECTED, "DISCONNECTED";
        /// An error broke the connection.
        Broken = KDAPL_EVENT_BROKEN, "BROKEN";
        /// The peer did not respond in time.
        TimedOut = KDAPL_EVENT_TIMED_OUT, "TIMED_OUT";
        /// There is no route to the peer.
        Unreachable = KDAPL_EVENT_UNREACHABLE, "UNREACHABLE";
    }
}

numbered! {
    /// Type of an asynchronous error.
    AsyncEvent {
        /// The queue of an EVD overflowed.
        EvdOverflow = KDAPL_EVENT_ASYNC_EVD_OVERFLOW, "ASYNC_ERROR_EVD_OVERFLOW";
        /// The device was removed.
        IaCatastrophic = KDAPL_EVENT_ASYNC_IA_CATASTROPHIC, "ASYNC_ERROR_IA_CATASTROPHIC";
        /// An endpoint is in error.
        EpBroken = KDAPL_EVENT_ASYNC_EP_BROKEN, "ASYNC_ERROR_EP_BROKEN";
    }
}

/// Types of [`Event`], for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum EventKind {
    Dto(DtoOperation, DtoStatus),
    RmrBind(DtoStatus),
    ConnectionRequest,
    Connection(ConnectionEvent),
    Async(AsyncEvent),
    Software,
    Unknown(u32),
}

impl Event {
    pub(crate) fn decode(device: &Arc<Device>, raw: &kdapl_event) -> Self {
        let object = Handle(raw.object);
        match raw.number {
            KDAPL_EVENT_DTO_COMPLETION | KDAPL_EVENT_IB_DTO => Self::Dto(DtoEvent {
                ep: object,
                cookie: raw.cookie,
                status: raw.status.into(),
                length: raw.value,
                operation: raw.operation.into(),
                rmr_context: raw.rmr_context,
                immed_data: [KDAPL_IB_DTO_RECV_IMMED, KDAPL_IB_DTO_RECV_MSG_IMMED]
                    .contains(&raw.operation)
                    .then_some(raw.immed_data),
            }),
            KDAPL_EVENT_RMR_BIND_COMPLETION => {
                Self::RmrBind { rmr: object, cookie: raw.cookie, status: raw.status.into() }
            }
            KDAPL_EVENT_CONNECTION_REQUEST => Self::ConnectionRequest {
                cr: Cr::arrived(device, object),
                service_point: Handle(raw.cookie),
                conn_qual: raw.value,
                private_data_size: raw.private_data_size,
            },
            KDAPL_EVENT_ESTABLISHED..=KDAPL_EVENT_UNREACHABLE => Self::Connection {
                event: raw.number.into(),
                ep: object,
                private_data_size: raw.private_data_size,
            },
            KDAPL_EVENT_ASYNC_EVD_OVERFLOW..=KDAPL_EVENT_ASYNC_EP_BROKEN => {
                Self::Async { event: raw.number.into(), object, reason: raw.status }
            }
            KDAPL_EVENT_SOFTWARE => Self::Software { pointer: raw.cookie },
            number => Self::Unknown { number },
        }
    }

    /// Returns the type of the event, without handles and sizes.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Dto(dto) => EventKind::Dto(dto.operation, dto.status),
            Self::RmrBind { status, .. } => EventKind::RmrBind(*status),
            Self::ConnectionRequest { .. } => EventKind::ConnectionRequest,
            Self::Connection { event, .. } => EventKind::Connection(*event),
            Self::Async { event, .. } => EventKind::Async(*event),
            Self::Software { .. } => EventKind::Software,
            Self::Unknown { number } => EventKind::Unknown(*number),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dto(dto) => {
                let name = if dto.operation.is_extension() { "IB_DTO" } else { "DTO_COMPLETION" };
                write!(f, "{name} {} {}", dto.operation, dto.status)?;
                if dto.status == DtoStatus::Success {
                    write!(f, " {} bytes", dto.length)?;
                }
                if let Some(data) = dto.immed_data {
                    write!(f, ", immediate data {data:#x}")?;
                }
                write!(f, ", cookie {:#x}", dto.cookie)
            }
            Self::RmrBind { cookie, status, .. } => {
                write!(f, "RMR_BIND_COMPLETION {status}, cookie {cookie:#x}")
            }
            Self::ConnectionRequest { conn_qual, private_data_size, .. } => write!(
                f,
                "CONNECTION_REQUEST on qualifier {conn_qual}, {private_data_size} bytes of \
                 private data"
            ),
            Self::Connection { event, private_data_size: 0, .. } => write!(f, "{event}"),
            Self::Connection { event, private_data_size, .. } => {
                write!(f, "{event}, {private_data_size} bytes of private data")
            }
            Self::Async { event, object, reason } => {
                write!(f, "{event} of object {object}, reason {reason}")
            }
            Self::Software { pointer } => write!(f, "SOFTWARE_EVENT {pointer:#x}"),
            Self::Unknown { number } => write!(
                f,
                "event {number:#x}, which this library does not know: install library and module \
                 from one version"
            ),
        }
    }
}
