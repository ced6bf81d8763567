// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The callback of `rdma_cm`, and the context through which it finds the handler of an ID.

use super::{
    borrowed::IdRef,
    call::CallOut,
    lingering_ids::LingeringIds,
    request::NewId,
    Event,
    Handler, //
};
use crate::{
    rdma::qp::HeldQp,
    sys::user::{
        FixedCharge,
        UserId, //
    },
};
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    alloc::Flags,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        ArcBorrow,
        Mutex,
        SetOnce, //
    },
};

/// Target of an ID's C context pointer.
#[pin_data]
pub(super) struct Context {
    /// Receiver of events. Replaced when a request is accepted, when the owner drops the ID, and
    /// when a listener stops. Events are dropped while there is none.
    #[pin]
    handler: Mutex<Option<Arc<dyn Handler>>>,
    /// Whether `rdma_disconnect` may be called. It must not race with a connect that has just
    /// begun. Over iWARP that panics the kernel (`iw_cm_disconnect`). Elsewhere it uses the ID of
    /// `ib_cm` without a lock, and a failing connect destroys that ID (`cma_connect_ib`). Before
    /// the peer has answered, destroying the ID is enough.
    may_disconnect: Atomic<bool>,
    /// Whether the peer may believe that the connection exists.
    connected: Atomic<bool>,
    /// Whether the peer was asked to disconnect.
    asked: Atomic<bool>,
    /// Whether the peer has answered, or no more answer will come.
    over: Atomic<bool>,
    /// The connect or accept over iWARP.
    #[pin]
    call: CallOut,
    /// The user that the ID is accounted to. Changes only while the ID neither calls nor lingers.
    user: Atomic<u64>,
    /// List for an ID without an owner.
    lingering: Arc<LingeringIds>,
    /// Whether the ID listens, or did.
    listens: Atomic<bool>,
    /// Charge for the local port.
    port: SetOnce<FixedCharge>,
}

impl Context {
    /// Creates a context without a handler.
    pub(super) fn new(
        user: UserId,
        lingering: Arc<LingeringIds>,
        flags: Flags,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                handler <- new_mutex!(None, "CmId::handler"),
                may_disconnect: Atomic::new(false),
                connected: Atomic::new(false),
                asked: Atomic::new(false),
                over: Atomic::new(false),
                call <- CallOut::new(),
                user: Atomic::new(user.to_raw()),
                lingering,
                listens: Atomic::new(false),
                port: SetOnce::new(),
            }),
            flags,
        )
    }

    /// Returns the connect or accept over iWARP.
    pub(super) fn call(&self) -> &CallOut {
        &self.call
    }

    /// Begins a connect or accept over iWARP with this queue pair.
    ///
    /// # Errors
    ///
    /// As for [`LingeringIds::permit_call`].
    pub(super) fn begin_call<T: HeldQp + 'static>(&self, qp: Arc<T>) -> Result {
        self.call.begin(qp, &self.lingering, self.user())
    }

    /// Keeps the charge for the local port until the ID is destroyed. An ID has one port.
    pub(super) fn keep_port(&self, charge: FixedCharge) {
        self.port.populate(charge);
    }

    /// Notes that the ID begins to listen.
    pub(super) fn begin_listening(&self) {
        self.listens.store(true, Release);
    }

    /// Returns whether the ID listens, or did.
    pub(super) fn listens(&self) -> bool {
        self.listens.load(Acquire)
    }

    /// Returns the user that the ID is accounted to.
    pub(super) fn user(&self) -> UserId {
        UserId::from_raw(self.user.load(Relaxed))
    }

    /// Accounts the ID to another user, to which its request is handed off.
    pub(super) fn account_to(&self, user: UserId) {
        self.user.store(user.to_raw(), Relaxed);
    }

    /// Returns the list to which the ID goes when its owner drops it.
    pub(super) fn lingering(&self) -> &Arc<LingeringIds> {
        &self.lingering
    }

    /// Returns whether `rdma_disconnect` may be called.
    pub(super) fn may_disconnect(&self) -> bool {
        self.may_disconnect.load(Acquire)
    }

    /// Allows calls of `rdma_disconnect` from now on.
    pub(super) fn allow_disconnect(&self) {
        self.may_disconnect.store(true, Release);
    }

    /// Notes that the peer is asked to disconnect.
    pub(super) fn ask(&self) {
        if self.connected.load(Acquire) {
            self.asked.store(true, Release);
        }
    }

    /// Returns whether the peer was asked to disconnect before it had confirmed the connection.
    /// `ib_cm` sends no disconnect then, and the peer is to be asked once more.
    ///
    /// An ID that is disconnected at the same time is in one of two states. Either `ib_cm` has
    /// received the confirmation first, and sends the disconnect. Or it has not, and then `asked`
    /// is visible here: the lock of the ID of `ib_cm` orders the two.
    fn was_asked_too_early(&self, event: bindings::rdma_cm_event_type) -> bool {
        event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED && self.asked.load(Acquire)
    }

    /// Returns whether the ID must not be destroyed yet: the peer has not answered a disconnect, or
    /// the outcome of a call is not known.
    pub(super) fn is_unanswered(&self) -> bool {
        self.call.is_pending() || (self.asked.load(Acquire) && !self.is_over())
    }

    /// Returns whether no more answer of the peer will come.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Acquire)
    }

    /// Notes that a request is being accepted. Over iWARP an event reports when the peer is
    /// informed.
    pub(super) fn accepts(&self) {
        if self.may_disconnect() {
            self.connected.store(true, Release);
        }
    }

    /// Notes that no more answer of the peer will come.
    pub(super) fn end(&self) {
        self.over.store(true, Release);
    }

    /// Updates the state for an event.
    fn note(&self, event: bindings::rdma_cm_event_type) {
        if is_outcome(event) {
            self.call.end();
        }
        match event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_RESPONSE => {
                self.allow_disconnect();
                self.connected.store(true, Release);
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => {
                self.end();
            }
            _ => {}
        }
    }

    /// Replaces the handler, and returns the previous one. Dropping that may wait for a running
    /// handler.
    pub(super) fn set(&self, handler: Arc<dyn Handler>) -> Option<Arc<dyn Handler>> {
        self.handler.lock().replace(handler)
    }

    /// Returns the context pointer for `rdma_cm`.
    pub(super) fn as_raw(self: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// Returns the context of a raw ID.
    ///
    /// # Safety
    ///
    /// `raw` is a live ID whose handler is [`handler`], for the lifetime.
    pub(super) unsafe fn of<'a>(raw: NonNull<bindings::rdma_cm_id>) -> ArcBorrow<'a, Self> {
        // SAFETY: The caller guarantees that the ID is alive. The context pointer is that of its
        // owner or, while its request is handled, that of the listening ID. The former lives until
        // the ID is destroyed. The latter outlives the handler, because destroying a listening ID
        // waits for its handler.
        unsafe { ArcBorrow::from_raw((*raw.as_ptr()).context.cast_const().cast::<Self>()) }
    }

    fn handler(&self) -> Option<Arc<dyn Handler>> {
        self.handler.lock().clone()
    }
}

/// Returns whether an event reports the outcome of a connect or an accept. Events before the call
/// report the resolution of addresses and routes.
fn is_outcome(event: bindings::rdma_cm_event_type) -> bool {
    matches!(
        event,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR
    )
}

/// Implements `rdma_cm_event_handler` for all IDs.
///
/// # Safety
///
/// Only `rdma_cm` calls it: with an ID whose handler this is, its handler mutex held, and an event.
pub(super) unsafe extern "C" fn handler(
    raw: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> i32 {
    let (Some(raw), false) = (NonNull::new(raw), event.is_null()) else {
        return 0;
    };
    // SAFETY: `rdma_cm` passes a live ID whose mutex is held, and a valid event.
    let (context, event, id) = unsafe { (Context::of(raw), &*event, IdRef::new(raw)) };
    let handler = context.handler();
    if event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST {
        // SAFETY: The event is a request, so its ID is new and has no owner, and it carries
        // connection parameters. The decision is returned.
        let (id, data) = unsafe { (NewId::new(id), Event::request_data(event)) };
        let decision = match handler {
            Some(handler) => handler.request(id, data),
            None => id.finish(),
        };
        return decision.as_raw();
    }
    context.note(event.event);
    if let Some(handler) = handler {
        // SAFETY: All IDs of this module are of the connected service.
        handler.event(&id, unsafe { Event::from_raw(event) });
    }
    if context.was_asked_too_early(event.event) {
        id.disconnect();
    }
    0
}
