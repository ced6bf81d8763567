// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What `rdma_cm` tells.

use kdapl_bindings as bindings;

/// Why a request was turned down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// By the peer's consumer.
    ByConsumer,
    /// By something on the way there; the transport's reason.
    ByTransport(u32),
}

/// An event of an id, but for connection requests.
pub(crate) enum Event<'a> {
    /// The address is resolved, the id bound to a device.
    AddrResolved,
    /// The route is resolved.
    RouteResolved,
    /// There is no way to the address, or nobody answers.
    Unreachable,
    /// The peer accepted; the answer is to come (IB and RoCE). Its private data.
    ConnectResponse(&'a [u8]),
    /// The connection stands. The peer's private data, if it comes with this.
    Established(&'a [u8]),
    /// The request was turned down. The peer's private data.
    Rejected(Rejected, &'a [u8]),
    /// Connecting failed otherwise.
    ConnectError,
    /// One side disconnected.
    Disconnected,
    /// The device goes away.
    DeviceRemoved,
    /// Nothing that matters here.
    Other,
}

/// The private data of an event.
///
/// # Safety
///
/// `event` is valid, of a kind that carries connection parameters, and not of a datagram id.
unsafe fn private_data<'a>(event: &'a bindings::rdma_cm_event) -> &'a [u8] {
    // SAFETY: The caller vouches for this member of the union.
    let conn = unsafe { &event.param.conn };
    if conn.private_data.is_null() {
        return &[];
    }
    // SAFETY: `rdma_cm` vouches for pointer and length while the handler runs.
    unsafe {
        core::slice::from_raw_parts(
            conn.private_data.cast::<u8>(),
            usize::from(conn.private_data_len),
        )
    }
}

/// The reasons of `ib_cm` and the errors of `iw_cm` are told apart by their sign.
fn rejected(status: i32, private_data: &[u8]) -> Rejected {
    match u32::try_from(status) {
        Ok(bindings::ib_cm_rej_reason_IB_CM_REJ_CONSUMER_DEFINED) => Rejected::ByConsumer,
        Ok(reason) => Rejected::ByTransport(reason),
        // iWARP cannot tell who it was; a consumer that has something to say was there.
        Err(_) if !private_data.is_empty() => Rejected::ByConsumer,
        Err(_) => Rejected::ByTransport(status.unsigned_abs()),
    }
}

impl<'a> Event<'a> {
    /// # Safety
    ///
    /// `event` is what `rdma_cm` gave the handler of a connected-service id.
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
                Self::Established(unsafe { private_data(event) })
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

    /// The private data of a connection request.
    ///
    /// # Safety
    ///
    /// `event` is a connection request that `rdma_cm` gave to a handler.
    pub(super) unsafe fn request_data(event: &'a bindings::rdma_cm_event) -> &'a [u8] {
        // SAFETY: A request carries connection parameters.
        unsafe { private_data(event) }
    }
}
