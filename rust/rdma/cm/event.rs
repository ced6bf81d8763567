// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events of `rdma_cm`.

use crate::rdma::qp::ReadDepth;
use kdapl_bindings as bindings;

/// Origin of a rejection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The peer's consumer.
    ByConsumer,
    /// The transport, with its reason.
    ByTransport(u32),
}

/// An event of a CM ID, except for connection requests.
pub(crate) enum Event<'a> {
    /// The address is resolved, and the ID is bound to a device.
    AddrResolved,
    /// The route is resolved.
    RouteResolved,
    /// No route leads to the address, or the peer does not answer.
    Unreachable,
    /// The peer accepted, and this side must confirm (InfiniBand and RoCE). Carries the peer's
    /// private data.
    ConnectResponse(&'a [u8]),
    /// The connection is established. Carries the peer's private data if no earlier event did, and
    /// over iWARP the numbers of RDMA reads that the driver has negotiated.
    Established(&'a [u8], ReadDepth),
    /// The request was rejected. Carries the peer's private data.
    Rejected(Rejected, &'a [u8]),
    /// The connect failed for another reason.
    ConnectError,
    /// One side disconnected.
    Disconnected,
    /// The device is being removed.
    DeviceRemoved,
    /// An event that this module ignores.
    Other,
}

/// Returns the private data of an event.
///
/// # Safety
///
/// `event` is valid, of a kind that carries connection parameters, and not of a datagram ID.
unsafe fn private_data<'a>(event: &'a bindings::rdma_cm_event) -> &'a [u8] {
    // SAFETY: The caller guarantees that this member of the union is valid.
    let conn = unsafe { &event.param.conn };
    if conn.private_data.is_null() {
        return &[];
    }
    // SAFETY: `rdma_cm` guarantees pointer and length while the handler runs.
    unsafe {
        core::slice::from_raw_parts(
            conn.private_data.cast::<u8>(),
            usize::from(conn.private_data_len),
        )
    }
}

/// Returns the numbers of RDMA reads of a connection over iWARP. `rdma_cm` exchanges the two fields
/// there: `initiator_depth` is the number of the peer's reads.
///
/// # Safety
///
/// As for [`private_data`].
unsafe fn iwarp_read_depth(event: &bindings::rdma_cm_event) -> ReadDepth {
    // SAFETY: The caller guarantees that this member of the union is valid.
    let conn = unsafe { &event.param.conn };
    ReadDepth {
        responder: conn.initiator_depth,
        initiator: conn.responder_resources,
    }
}

/// Returns the origin of a rejection. Reasons of `ib_cm` are positive, errors of `iw_cm` negative.
fn rejected(status: i32, private_data: &[u8]) -> Rejected {
    match u32::try_from(status) {
        Ok(bindings::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED) => Rejected::ByConsumer,
        Ok(reason) => Rejected::ByTransport(reason),
        // iWARP does not report the origin. Private data can only come from a consumer.
        Err(_) if !private_data.is_empty() => Rejected::ByConsumer,
        Err(_) => Rejected::ByTransport(status.unsigned_abs()),
    }
}

impl<'a> Event<'a> {
    /// Converts a C event.
    ///
    /// # Safety
    ///
    /// `event` was passed by `rdma_cm` to the handler of a connected-service ID.
    pub(super) unsafe fn from_raw(event: &'a bindings::rdma_cm_event) -> Self {
        match event.event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => Self::AddrResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => Self::RouteResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => Self::Unreachable,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_RESPONSE => {
                // SAFETY: This event carries connection parameters.
                Self::ConnectResponse(unsafe { private_data(event) })
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
                // SAFETY: As above.
                unsafe { Self::Established(private_data(event), iwarp_read_depth(event)) }
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => {
                // SAFETY: As above.
                let data = unsafe { private_data(event) };
                Self::Rejected(rejected(event.status, data), data)
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR => Self::ConnectError,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => Self::Disconnected,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => Self::DeviceRemoved,
            _ => Self::Other,
        }
    }

    /// Returns the private data of a connection request.
    ///
    /// # Safety
    ///
    /// `event` is a connection request that `rdma_cm` passed to a handler.
    pub(super) unsafe fn request_data(event: &'a bindings::rdma_cm_event) -> &'a [u8] {
        // SAFETY: A request carries connection parameters.
        unsafe { private_data(event) }
    }
}
