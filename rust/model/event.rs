// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events, and the 64-byte record that stores an event in the ring of an Event Dispatcher (EVD) and
//! in user space.
//!
//! A [`Record`] has the layout of `struct kdapl_event` in `include/uapi/rdma/kdapl.h` on a
//! little-endian machine. It is an array of eight words, so that a ring accesses memory as words
//! only.

use super::ep::ConnectionEvent;

/// `struct kdapl_event` as words.
pub(crate) type Record = [u64; 8];

/// `DAT_DTO_COMPLETION_EVENT`.
const DTO_COMPLETION: u32 = 0x0001;

/// `DAT_IB_DTO_EVENT`: completion of a Data Transfer Operation of the InfiniBand extensions.
const IB_DTO: u32 = 0x4_0000;

/// `DAT_RMR_BIND_COMPLETION_EVENT`.
const RMR_BIND_COMPLETION: u32 = 0x1001;

/// `DAT_CONNECTION_REQUEST_EVENT`.
const CONNECTION_REQUEST: u32 = 0x2001;

/// `DAT_SOFTWARE_EVENT`.
const SOFTWARE: u32 = 0x1_0001;

numbered! {
    /// Completion status of a Data Transfer Operation (DTO).
    DtoStatus {
        /// The DTO succeeded.
        Success = 0,
        /// The DTO was outstanding when the connection ended.
        Flushed = 1,
        /// A local segment was too short.
        LocalLength = 2,
        /// The local Endpoint failed.
        LocalEp = 3,
        /// A local segment does not permit the access.
        LocalProtection = 4,
        /// The peer sent an unexpected response.
        BadResponse = 5,
        /// The peer's memory does not permit the access.
        RemoteAccess = 6,
        /// The peer could not complete the operation.
        RemoteResponder = 7,
        /// The peer does not respond.
        Transport = 8,
        /// The peer had no receive posted for too long.
        ReceiverNotReady = 9,
        /// Only a part of the message arrived.
        PartialPacket = 10,
        /// A bind of a remote memory region (RMR) failed.
        RmrOperationFailed = 11,
        /// Local memory management failed.
        LocalMmError = 12,
    }
}

numbered! {
    /// Type of a DTO.
    Operation {
        /// Send.
        Send = 0,
        /// RDMA write.
        RdmaWrite = 1,
        /// RDMA read.
        RdmaRead = 2,
        /// Receive.
        Receive = 3,
        /// Receive of a message that invalidated an RMR.
        ReceiveWithInvalidate = 4,
        /// Bind of an RMR.
        BindMw = 5,
        /// Fast registration of a local memory region (LMR).
        LmrFmr = 6,
        /// Invalidation of an LMR.
        LmrInvalidate = 7,
        /// RDMA write with immediate data. It consumes a receive of the peer.
        RdmaWriteImmed = 8,
        /// Receive that was consumed by an RDMA write with immediate data.
        RecvImmed = 9,
        /// Fetch and add.
        FetchAdd = 10,
        /// Compare and swap.
        CmpSwap = 11,
        /// Receive of a message with immediate data.
        RecvMsgImmed = 12,
        /// Send that invalidates an RMR of the peer. Its completion is that of a send.
        SendWithInvalidate = 0x100,
        /// RDMA read into memory that an RMR context names. Its completion is that of a read.
        RdmaReadToRmr = 0x101,
    }
}

numbered! {
    /// Cause of an asynchronous event.
    AsyncEvent {
        /// An EVD overflowed, and events were lost.
        EvdOverflow = 0x8001,
        /// The Interface Adapter is gone or unusable.
        IaCatastrophic = 0x8002,
        /// An Endpoint failed, and no connection event reports it; or the last receive of an
        /// Endpoint with a Shared Receive Queue has completed. With another reason code: an
        /// Endpoint has exceeded its soft high watermark, or a Shared Receive Queue has reached its
        /// low watermark. DAT has no numbers for these.
        EpBroken = 0x8003,
    }
}

/// An event for the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Completion of a DTO.
    Dto {
        /// Handle of the Endpoint.
        ep: u64,
        /// The consumer's cookie.
        cookie: u64,
        /// Completion status.
        status: DtoStatus,
        /// Type of the DTO.
        operation: Operation,
        /// Bytes transferred.
        length: u64,
        /// RMR context that the peer invalidated, or 0.
        rmr_context: u32,
        /// Immediate data from the peer, or 0.
        immed_data: u32,
    },
    /// Completion of a bind of an RMR.
    RmrBind {
        /// Handle of the RMR.
        rmr: u64,
        /// The consumer's cookie.
        cookie: u64,
        /// Completion status.
        status: DtoStatus,
    },
    /// Arrival of a connection request.
    Request {
        /// Handle of the Connection Request.
        cr: u64,
        /// Handle of the service point.
        psp: u64,
        /// Connection qualifier that the peer requested.
        conn_qual: u64,
        /// Bytes of private data.
        private_data_size: u32,
    },
    /// Change of a connection.
    Connection {
        /// The connection event.
        event: ConnectionEvent,
        /// Handle of the Endpoint.
        ep: u64,
        /// Bytes of private data.
        private_data_size: u32,
        /// Reason code of the transport, or 0.
        reason: u32,
    },
    /// Failure of an object.
    Async {
        /// Cause of the event.
        cause: AsyncEvent,
        /// Handle of the object.
        object: u64,
        /// DAT's reason code.
        reason: u32,
    },
    /// Software event, which a consumer posted.
    Software {
        /// The consumer's pointer.
        pointer: u64,
    },
}

/// Packs two 32-bit fields into one word; `low` has the lower address.
const fn word(low: u32, high: u32) -> u64 {
    // Widening casts; `u64::from` is not `const`.
    low as u64 | ((high as u64) << 32)
}

/// Returns the field at the lower address of a word.
const fn low(word: u64) -> u32 {
    // Truncation is intended.
    word as u32
}

/// Returns the field at the higher address of a word.
const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Returns the record of an event with an object and a cookie only. Its first word has the number
/// and the status.
const fn short_record([number, status]: [u32; 2], evd: u64, object: u64, cookie: u64) -> Record {
    [word(number, status), evd, object, cookie, 0, 0, 0, 0]
}

impl Event {
    /// Returns DAT's number of the event type.
    pub(crate) const fn number(&self) -> u32 {
        match *self {
            Self::Dto { operation, .. } if operation.is_extension() => IB_DTO,
            Self::Dto { .. } => DTO_COMPLETION,
            Self::RmrBind { .. } => RMR_BIND_COMPLETION,
            Self::Request { .. } => CONNECTION_REQUEST,
            Self::Connection { event, .. } => event.number(),
            Self::Async { cause, .. } => cause.number(),
            Self::Software { .. } => SOFTWARE,
        }
    }

    /// Encodes the event as a record. `evd` is the handle of the EVD that it is queued in.
    pub(crate) const fn encode(&self, evd: u64) -> Record {
        match *self {
            Self::Dto {
                ep,
                cookie,
                status,
                operation,
                length,
                rmr_context,
                immed_data,
            } => [
                word(self.number(), status.number()),
                evd,
                ep,
                cookie,
                length,
                word(operation.number(), rmr_context),
                word(0, immed_data),
                0,
            ],
            Self::RmrBind {
                rmr,
                cookie,
                status,
            } => short_record([RMR_BIND_COMPLETION, status.number()], evd, rmr, cookie),
            Self::Request {
                cr,
                psp,
                conn_qual,
                private_data_size,
            } => [
                word(CONNECTION_REQUEST, 0),
                evd,
                cr,
                psp,
                conn_qual,
                0,
                word(private_data_size, 0),
                0,
            ],
            Self::Connection {
                event,
                ep,
                private_data_size,
                reason,
            } => {
                let mut record = short_record([event.number(), reason], evd, ep, 0);
                record[6] = word(private_data_size, 0);
                record
            }
            Self::Async {
                cause,
                object,
                reason,
            } => short_record([cause.number(), reason], evd, object, 0),
            Self::Software { pointer } => short_record([SOFTWARE, 0], evd, 0, pointer),
        }
    }

    /// Decodes a record. Returns the event and the handle of its EVD.
    ///
    /// `None` if the record is not one that [`Event::encode`] can write. Fields that the event type
    /// does not use are ignored.
    pub(crate) const fn decode(record: &Record) -> Option<(Self, u64)> {
        let [head, evd, object, cookie, value, detail, sizes, _] = *record;
        let event = match low(head) {
            number @ (DTO_COMPLETION | IB_DTO) => {
                match (
                    DtoStatus::from_number(high(head)),
                    Operation::from_number(low(detail)),
                ) {
                    (Some(status), Some(operation))
                        if operation.is_extension() == (number == IB_DTO) =>
                    {
                        Self::Dto {
                            ep: object,
                            cookie,
                            status,
                            operation,
                            length: value,
                            rmr_context: high(detail),
                            immed_data: high(sizes),
                        }
                    }
                    _ => return None,
                }
            }
            RMR_BIND_COMPLETION => match DtoStatus::from_number(high(head)) {
                Some(status) => Self::RmrBind {
                    rmr: object,
                    cookie,
                    status,
                },
                None => return None,
            },
            CONNECTION_REQUEST => Self::Request {
                cr: object,
                psp: cookie,
                conn_qual: value,
                private_data_size: low(sizes),
            },
            SOFTWARE => Self::Software { pointer: cookie },
            number => match (
                ConnectionEvent::from_number(number),
                AsyncEvent::from_number(number),
            ) {
                (Some(event), _) => Self::Connection {
                    event,
                    ep: object,
                    private_data_size: low(sizes),
                    reason: high(head),
                },
                (None, Some(cause)) => Self::Async {
                    cause,
                    object,
                    reason: high(head),
                },
                (None, None) => return None,
            },
        };
        Some((event, evd))
    }
}
