// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events, typed.

use crate::cr::Cr;
use crate::error::{Error, Result};
use crate::object::Handle;
use crate::raw::Device;
use crate::sys::*;
use std::fmt;
use std::sync::Arc;

/// An event taken from an [`Evd`](crate::Evd).
#[derive(Debug)]
pub enum Event {
    /// A data transfer operation ended, well or not.
    Dto(DtoEvent),
    /// A peer wants to connect.
    ConnectionRequest {
        /// The request; dropped unanswered, it is rejected.
        cr: Cr,
        /// The service point it came to: a PSP, RSP or CSP.
        service_point: Handle,
        /// The connection qualifier of that, for a CSP its port.
        conn_qual: u64,
        /// Bytes of private data that [`Cr::query`] will show.
        private_data_size: u32,
    },
    /// A connection was made, refused or lost.
    Connection {
        /// Which of these.
        event: ConnectionEvent,
        /// The endpoint.
        ep: Handle,
        /// Bytes that [`Ep::private_data`](crate::Ep::private_data) will show.
        private_data_size: u32,
    },
    /// Something is wrong with an object or the whole IA.
    Async {
        /// What.
        event: AsyncEvent,
        /// The object.
        object: Handle,
        /// DAT's reason.
        reason: u32,
    },
    /// The program's own event.
    Software {
        /// What [`Evd::post_se`](crate::Evd::post_se) was given.
        pointer: u64,
    },
}

/// Completion of a data transfer operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DtoEvent {
    /// The endpoint it was posted on.
    pub ep: Handle,
    /// The cookie it was posted with.
    pub cookie: u64,
    /// How it ended.
    pub status: DtoStatus,
    /// Bytes transferred, if it succeeded.
    pub length: u64,
    /// Which operation.
    pub operation: DtoOperation,
    /// The RMR context that the peer invalidated, or 0.
    pub rmr_context: u32,
    /// What the peer sent along; of [`RecvImmed`](DtoOperation::RecvImmed) and
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
            /// DAT's number.
            #[must_use]
            pub fn number(self) -> u32 {
                match self {
                    $(Self::$name => $value,)*
                    Self::Other(raw) => raw,
                }
            }

            /// The name that DAT gives it.
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
        /// All bytes are where they should be.
        Success = 0, "SUCCESS";
        /// The connection ended before it ran.
        Flushed = 1, "FLUSHED";
        /// The local buffer was too small.
        LocalLength = 2, "LOCAL_LENGTH";
        /// The local endpoint is in error.
        LocalEp = 3, "LOCAL_EP";
        /// A local segment is not (so) registered.
        LocalProtection = 4, "LOCAL_PROTECTION";
        /// The peer answered nonsense.
        BadResponse = 5, "BAD_RESPONSE";
        /// The peer's region does not allow it.
        RemoteAccess = 6, "REMOTE_ACCESS";
        /// The peer could not do it.
        RemoteResponder = 7, "REMOTE_RESPONDER";
        /// The peer did not answer in time.
        Transport = 8, "TRANSPORT";
        /// The peer had no receive posted.
        ReceiverNotReady = 9, "RECEIVER_NOT_READY";
        /// The message was cut.
        PartialPacket = 10, "PARTIAL_PACKET";
        /// The RMR was not to be bound.
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
        /// An RDMA write.
        RdmaWrite = KDAPL_DTO_RDMA_WRITE, "RDMA_WRITE";
        /// An RDMA read.
        RdmaRead = KDAPL_DTO_RDMA_READ, "RDMA_READ";
        /// A receive.
        Receive = KDAPL_DTO_RECEIVE, "RECEIVE";
        /// An RDMA write with immediate data.
        RdmaWriteImmed = KDAPL_IB_DTO_RDMA_WRITE_IMMED, "RDMA_WRITE_IMMED";
        /// A receive that such a write of the peer's has taken; nothing was put into its memory.
        RecvImmed = KDAPL_IB_DTO_RECV_IMMED, "RECV_IMMED";
        /// A fetch and add.
        FetchAdd = KDAPL_IB_DTO_FETCH_ADD, "FETCH_ADD";
        /// A compare and swap.
        CmpSwap = KDAPL_IB_DTO_CMP_SWAP, "CMP_SWAP";
        /// A receive of a message with immediate data.
        RecvMsgImmed = KDAPL_IB_DTO_RECV_MSG_IMMED, "RECV_MSG_IMMED";
    }
}

impl DtoOperation {
    /// Whether its completion is an event of the InfiniBand extensions (`DAT_IB_DTO_EVENT`).
    #[must_use]
    pub fn is_extension(self) -> bool {
        (KDAPL_IB_DTO_RDMA_WRITE_IMMED..=KDAPL_IB_DTO_RECV_MSG_IMMED).contains(&self.number())
    }
}

numbered! {
    /// What happened to a connection.
    ConnectionEvent {
        /// It is up.
        Established = KDAPL_EVENT_ESTABLISHED, "ESTABLISHED";
        /// The peer's program said no.
        PeerRejected = KDAPL_EVENT_PEER_REJECTED, "PEER_REJECTED";
        /// Nobody listens there, or the transport said no.
        NonPeerRejected = KDAPL_EVENT_NON_PEER_REJECTED, "NON_PEER_REJECTED";
        /// The peer went away while being accepted.
        AcceptCompletionError = KDAPL_EVENT_ACCEPT_COMPLETION_ERROR, "ACCEPT_COMPLETION_ERROR";
        /// It is down: one of the two sides disconnected.
        Disconnected = KDAPL_EVENT_DISCONNECTED, "DISCONNECTED";
        /// It is down: something failed.
        Broken = KDAPL_EVENT_BROKEN, "BROKEN";
        /// The peer did not answer in time.
        TimedOut = KDAPL_EVENT_TIMED_OUT, "TIMED_OUT";
        /// No way leads to the peer.
        Unreachable = KDAPL_EVENT_UNREACHABLE, "UNREACHABLE";
    }
}

numbered! {
    /// An asynchronous error.
    AsyncEvent {
        /// An event queue was too short.
        EvdOverflow = KDAPL_EVENT_ASYNC_EVD_OVERFLOW, "ASYNC_ERROR_EVD_OVERFLOW";
        /// The device is gone.
        IaCatastrophic = KDAPL_EVENT_ASYNC_IA_CATASTROPHIC, "ASYNC_ERROR_IA_CATASTROPHIC";
        /// An endpoint went into error.
        EpBroken = KDAPL_EVENT_ASYNC_EP_BROKEN, "ASYNC_ERROR_EP_BROKEN";
    }
}

/// The kinds of [`Event`], for comparing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum EventKind {
    Dto(DtoOperation, DtoStatus),
    ConnectionRequest,
    Connection(ConnectionEvent),
    Async(AsyncEvent),
    Software,
}

impl Event {
    pub(crate) fn decode(device: &Arc<Device>, raw: &kdapl_event) -> Result<Self> {
        let object = Handle(raw.object);
        Ok(match raw.number {
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
            number => return Err(Error::UnknownEvent { number }),
        })
    }

    /// Its kind, without handles and sizes.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Dto(dto) => EventKind::Dto(dto.operation, dto.status),
            Self::ConnectionRequest { .. } => EventKind::ConnectionRequest,
            Self::Connection { event, .. } => EventKind::Connection(*event),
            Self::Async { event, .. } => EventKind::Async(*event),
            Self::Software { .. } => EventKind::Software,
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
        }
    }
}
