// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    bindings,
    ep::EpId,
    fmr::Ended,
    memory::Buffer,
    service::Cr,
    shared::Part,
    transfer::Memory, //
};
use kernel::prelude::*;

/// Kind of a data transfer operation (DTO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Send.
    Send,
    /// RDMA write.
    Write,
    /// RDMA read.
    Read,
    /// Receive.
    Receive,
    /// Registration of memory: [`Fmr::register`](crate::Fmr::register).
    Register,
    /// End of a registration: [`Fmr::invalidate`](crate::Fmr::invalidate).
    Invalidate,
    /// Another one, with DAT's number.
    Other(u32),
}

impl Operation {
    fn new(number: u32) -> Self {
        match number {
            bindings::DAT_DTO_SEND => Self::Send,
            bindings::DAT_DTO_RDMA_WRITE => Self::Write,
            bindings::DAT_DTO_RDMA_READ => Self::Read,
            bindings::DAT_DTO_RECEIVE | bindings::DAT_DTO_RECEIVE_WITH_INVALIDATE => Self::Receive,
            bindings::DAT_IB_DTO_RECV_IMMED | bindings::DAT_IB_DTO_RECV_MSG_IMMED => Self::Receive,
            bindings::DAT_DTO_LMR_FMR => Self::Register,
            bindings::DAT_DTO_LMR_INVALIDATE => Self::Invalidate,
            other => Self::Other(other),
        }
    }
}

/// Completion of a DTO.
pub struct Completion {
    /// Endpoint of the DTO.
    pub ep: EpId,
    /// Number that the post was given.
    pub context: u64,
    /// DAT_DTO_SUCCESS (0), or the reason of the failure (DAT_DTO_ERR_*).
    pub status: u32,
    /// Number of bytes that were sent or received.
    pub length: usize,
    /// Kind of the DTO.
    pub operation: Operation,
    /// Buffer of the DTO. `None` only if it has none, or after the Endpoint was dropped or the
    /// adapter closed.
    pub buffer: Option<Buffer>,
    /// Buffers that [`Dto::with`](crate::Dto::with) has added.
    pub more: KVec<Buffer>,
    /// Parts that [`Dto::write_parts`](crate::Dto::write_parts) or
    /// [`Dto::read_parts`](crate::Dto::read_parts) has.
    pub parts: KVec<Part>,
    /// Memory that the DTO has carried, on the same conditions as `buffer`.
    pub memory: Option<KBox<dyn Memory>>,
    /// RMR context that the message of a receive has invalidated, or 0.
    pub invalidated: u32,
    /// Immediate data of a receive.
    pub immediate: Option<u32>,
    /// Registration that has ended.
    pub(crate) ended: Ended,
}

impl Completion {
    /// Returns whether the DTO was carried out.
    pub fn is_success(&self) -> bool {
        self.status == bindings::DAT_DTO_SUCCESS
    }

    /// Returns whether the DTO was not carried out because the connection has ended.
    pub fn is_flushed(&self) -> bool {
        self.status == bindings::DAT_DTO_ERR_FLUSHED
    }

    #[inline]
    fn new(adapter: &Adapter, event: &bindings::DAT_EVENT) -> Self {
        // SAFETY: The number of the event says that this member is valid.
        let data = unsafe { &event.event_data.dto_completion_event_data };
        // SAFETY: The cookie is a number.
        let cookie = unsafe { data.user_cookie.as_64 };
        let posted = adapter.slots.take(cookie).unwrap_or_default();
        let operation = Operation::new(data.operation);
        Self {
            ep: EpId::from_raw(data.ep_handle),
            context: posted.context,
            status: data.status,
            length: data.transfered_length as usize,
            operation,
            buffer: posted.buffer,
            more: posted.more,
            parts: posted.parts,
            memory: posted.memory,
            invalidated: data.rmr_context,
            immediate: immediate(event, operation),
            ended: Ended {
                ia: adapter.ia,
                position: adapter.next_position(),
                rmr_context: data.rmr_context,
                registration: ended(data.status, operation, posted.invalidates),
            },
        }
    }
}

/// Returns the registration of an invalidation that was carried out.
fn ended(status: u32, operation: Operation, registration: (Handle, u64)) -> (Handle, u64) {
    if status == bindings::DAT_DTO_SUCCESS && operation == Operation::Invalidate {
        registration
    } else {
        Default::default()
    }
}

/// Returns the immediate data of a receive: the third word of the extension's data.
fn immediate(event: &bindings::DAT_EVENT, operation: Operation) -> Option<u32> {
    const { assert!(core::mem::offset_of!(bindings::DAT_IB_EXTENSION_EVENT_DATA, val) == 8) };
    let is_extension = event.event_number == bindings::DAT_IB_DTO_EVENT;
    let word = event.event_extension_data[1];
    (is_extension && operation == Operation::Receive).then_some(word as u32)
}

/// Change of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It is established.
    Established,
    /// The peer has rejected the request.
    PeerRejected,
    /// Nobody listens there, or the transport has failed.
    NonPeerRejected,
    /// The peer has not confirmed the accept.
    AcceptFailed,
    /// It has ended.
    Disconnected,
    /// It has failed.
    Broken,
    /// The time to connect is over.
    TimedOut,
    /// The peer cannot be reached.
    Unreachable,
}

impl Connection {
    fn new(number: u32) -> Option<Self> {
        Some(match number {
            bindings::DAT_CONNECTION_EVENT_ESTABLISHED => Self::Established,
            bindings::DAT_CONNECTION_EVENT_PEER_REJECTED => Self::PeerRejected,
            bindings::DAT_CONNECTION_EVENT_NON_PEER_REJECTED => Self::NonPeerRejected,
            bindings::DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR => Self::AcceptFailed,
            bindings::DAT_CONNECTION_EVENT_DISCONNECTED => Self::Disconnected,
            bindings::DAT_CONNECTION_EVENT_BROKEN => Self::Broken,
            bindings::DAT_CONNECTION_EVENT_TIMED_OUT => Self::TimedOut,
            bindings::DAT_CONNECTION_EVENT_UNREACHABLE => Self::Unreachable,
            _ => return None,
        })
    }
}

/// Event of an Event Dispatcher.
#[non_exhaustive]
pub enum Event {
    /// A DTO has completed.
    Dto(Completion),
    /// A bind has completed.
    Bind {
        /// Number that the bind was given.
        context: u64,
        /// DAT_DTO_SUCCESS (0), or the reason of the failure.
        status: u32,
    },
    /// A connection request has arrived. A drop rejects it.
    Request(Cr),
    /// The state of a connection has changed.
    Connection(EpId, Connection),
    /// An asynchronous error: its number and its reason.
    Async(u32, i32),
    /// A software event.
    Software(u64),
    /// Another event, with DAT's number.
    Other(u32),
}

impl Event {
    /// Returns whether the device of the adapter is lost: DAT_ASYNC_ERROR_IA_CATASTROPHIC.
    pub fn is_catastrophic(&self) -> bool {
        matches!(
            self,
            Self::Async(bindings::DAT_ASYNC_ERROR_IA_CATASTROPHIC, _)
        )
    }

    /// Converts an event that an Event Dispatcher of the adapter has delivered.
    #[inline]
    pub(crate) fn new(adapter: &Adapter, event: &bindings::DAT_EVENT) -> Self {
        let data = &event.event_data;
        match event.event_number {
            bindings::DAT_DTO_COMPLETION_EVENT | bindings::DAT_IB_DTO_EVENT => {
                Self::Dto(Completion::new(adapter, event))
            }
            bindings::DAT_RMR_BIND_COMPLETION_EVENT => Self::bind(data),
            bindings::DAT_CONNECTION_REQUEST_EVENT => Self::request(data),
            bindings::DAT_SOFTWARE_EVENT => {
                // SAFETY: The number of the event says that this member is valid.
                let pointer = unsafe { data.software_event_data.pointer };
                Self::Software(pointer.addr() as u64)
            }
            number => Self::other(number, data),
        }
    }

    fn bind(data: &bindings::DAT_EVENT_DATA) -> Self {
        // SAFETY: The number of the event says that this member is valid.
        let data = unsafe { &data.rmr_completion_event_data };
        Self::Bind {
            // SAFETY: The cookie is a number.
            context: unsafe { data.user_cookie.as_64 },
            status: data.status,
        }
    }

    fn request(data: &bindings::DAT_EVENT_DATA) -> Self {
        // SAFETY: The number of the event says that this member is valid.
        let data = unsafe { &data.cr_arrival_event_data };
        let handle = Handle::from_raw(data.cr_handle);
        Self::Request(Cr::new(handle, data.conn_qual))
    }

    fn other(number: u32, data: &bindings::DAT_EVENT_DATA) -> Self {
        if let Some(connection) = Connection::new(number) {
            // SAFETY: The number of the event says that this member is valid.
            let ep = unsafe { data.connect_event_data.ep_handle };
            return Self::Connection(EpId::from_raw(ep), connection);
        }
        match number {
            bindings::DAT_ASYNC_ERROR_EVD_OVERFLOW..=bindings::DAT_ASYNC_ERROR_EP_BROKEN => {
                // SAFETY: The number of the event says that this member is valid.
                Self::Async(number, unsafe { data.asynch_error_event_data.reason })
            }
            _ => Self::Other(number),
        }
    }
}
