// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events, and the 64-byte record in which they lie in a ring and travel to user space.
//!
//! A [`Record`] is bit for bit `struct kdapl_event` of `include/uapi/rdma/kdapl.h` on a
//! little-endian machine, as eight words, so that a ring needs no view of memory but words.

use super::ep::Notice;

/// `struct kdapl_event` as words.
pub(crate) type Record = [u64; 8];

/// `DAT_DTO_COMPLETION_EVENT`.
const DTO_COMPLETION: u32 = 0x0001;

/// `DAT_IB_DTO_EVENT`: completions of the InfiniBand extensions.
const IB_DTO: u32 = 0x4_0000;

/// `DAT_CONNECTION_REQUEST_EVENT`.
const CONNECTION_REQUEST: u32 = 0x2001;

/// `DAT_SOFTWARE_EVENT`.
const SOFTWARE: u32 = 0x1_0001;

numbered! {
    /// How a DTO ended.
    DtoStatus {
        /// Well.
        Success = 0,
        /// It was outstanding when the connection ended.
        Flushed = 1,
        /// A local segment was too short.
        LocalLength = 2,
        /// The local Endpoint failed.
        LocalEp = 3,
        /// A local segment may not be used like that.
        LocalProtection = 4,
        /// The peer answered with something unexpected.
        BadResponse = 5,
        /// The peer's memory may not be used like that.
        RemoteAccess = 6,
        /// The peer could not do it.
        RemoteResponder = 7,
        /// The peer does not answer.
        Transport = 8,
        /// The peer had no receive posted for too long.
        ReceiverNotReady = 9,
        /// A part of the message arrived.
        PartialPacket = 10,
        /// A bind failed.
        RmrOperationFailed = 11,
        /// Local memory management failed.
        LocalMmError = 12,
    }
}

numbered! {
    /// What a DTO does.
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
        /// Fast registration of an LMR.
        LmrFmr = 6,
        /// Invalidation of an LMR.
        LmrInvalidate = 7,
        /// RDMA write with immediate data, which takes a receive of the peer's.
        RdmaWriteImmed = 8,
        /// Receive that such a write has taken.
        RecvImmed = 9,
        /// Fetch and add.
        FetchAdd = 10,
        /// Compare and swap.
        CmpSwap = 11,
        /// Receive of a message that came with immediate data.
        RecvMsgImmed = 12,
    }
}

numbered! {
    /// What an asynchronous event reports.
    Fault {
        /// An EVD overflowed: events are lost.
        EvdOverflow = 0x8001,
        /// The Interface Adapter is gone, or of no more use.
        IaCatastrophic = 0x8002,
        /// An Endpoint failed without a connection event to tell it.
        EpBroken = 0x8003,
    }
}

/// What a consumer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A DTO completed.
    Dto {
        /// Handle of the Endpoint.
        ep: u64,
        /// The consumer's cookie.
        cookie: u64,
        /// How it ended.
        status: DtoStatus,
        /// What it was.
        operation: Operation,
        /// Bytes transferred.
        length: u64,
        /// The RMR context that the peer invalidated, or 0.
        rmr_context: u32,
        /// Immediate data that came from the peer, or 0.
        immed_data: u32,
    },
    /// A connection request arrived.
    Request {
        /// Handle of the Connection Request.
        cr: u64,
        /// Handle of the service point.
        psp: u64,
        /// The connection qualifier that was asked for.
        conn_qual: u64,
        /// Bytes of private data.
        private_data_size: u32,
    },
    /// Something happened to a connection.
    Connection {
        /// What happened.
        notice: Notice,
        /// Handle of the Endpoint.
        ep: u64,
        /// Bytes of private data.
        private_data_size: u32,
        /// The transport's own reason, or 0.
        reason: u32,
    },
    /// Something happened to an object.
    Async {
        /// What happened.
        fault: Fault,
        /// Handle of the object.
        object: u64,
        /// DAT's reason.
        reason: u32,
    },
    /// A consumer posted it.
    Software {
        /// The consumer's pointer.
        pointer: u64,
    },
}

/// Two 32-bit fields as they lie in one word.
const fn word(low: u32, high: u32) -> u64 {
    // A widening cast each; `u64::from` is not `const`.
    low as u64 | ((high as u64) << 32)
}

/// The field at the lower address of a word.
const fn low(word: u64) -> u32 {
    // Truncation is the point.
    word as u32
}

/// The field at the higher address of a word.
const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

impl Event {
    /// DAT's number of it.
    pub(crate) const fn number(&self) -> u32 {
        match *self {
            Self::Dto { operation, .. } if operation.is_extension() => IB_DTO,
            Self::Dto { .. } => DTO_COMPLETION,
            Self::Request { .. } => CONNECTION_REQUEST,
            Self::Connection { notice, .. } => notice.number(),
            Self::Async { fault, .. } => fault.number(),
            Self::Software { .. } => SOFTWARE,
        }
    }

    /// The record of this event, as taken from the EVD with handle `evd`.
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
                notice,
                ep,
                private_data_size,
                reason,
            } => [
                word(notice.number(), reason),
                evd,
                ep,
                0,
                0,
                0,
                word(private_data_size, 0),
                0,
            ],
            Self::Async {
                fault,
                object,
                reason,
            } => [word(fault.number(), reason), evd, object, 0, 0, 0, 0, 0],
            Self::Software { pointer } => [word(SOFTWARE, 0), evd, 0, pointer, 0, 0, 0, 0],
        }
    }

    /// The event of a record, and the EVD that it was taken from.
    ///
    /// `None` if the record is of no event that [`Event::encode`] makes; fields that its kind of
    /// event does not use are not looked at.
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
            CONNECTION_REQUEST => Self::Request {
                cr: object,
                psp: cookie,
                conn_qual: value,
                private_data_size: low(sizes),
            },
            SOFTWARE => Self::Software { pointer: cookie },
            number => match (Notice::from_number(number), Fault::from_number(number)) {
                (Some(notice), _) => Self::Connection {
                    notice,
                    ep: object,
                    private_data_size: low(sizes),
                    reason: high(head),
                },
                (None, Some(fault)) => Self::Async {
                    fault,
                    object,
                    reason: high(head),
                },
                (None, None) => return None,
            },
        };
        Some((event, evd))
    }
}
