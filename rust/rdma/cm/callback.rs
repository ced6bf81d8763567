// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What `rdma_cm` calls, and how that finds who hears of it.

use super::{
    borrowed::IdRef,
    call::Call,
    linger::Lingering,
    request::NewId,
    Event,
    Handler, //
};
use crate::{
    rdma::device::Transport,
    sys::user::UserId, //
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
            Release, //
        },
        Arc,
        ArcBorrow,
        Mutex, //
    },
};

/// What an id's C context points to.
#[pin_data]
pub(super) struct Context {
    /// Who hears of events; changes when a request is accepted.
    #[pin]
    handler: Mutex<Option<Arc<dyn Handler>>>,
    /// Whether `rdma_disconnect` may be called. It must not meet a connect that has just begun: over
    /// iWARP that panics the kernel (`iw_cm_disconnect`), elsewhere it takes the id of `ib_cm`
    /// without a lock, which a connect that fails destroys (`cma_connect_ib`). Before the peer has
    /// answered it is enough to destroy the id.
    may_disconnect: Atomic<bool>,
    /// Whether the peer may believe that there is a connection.
    connected: Atomic<bool>,
    /// Whether the peer was asked to disconnect.
    asked: Atomic<bool>,
    /// Whether it has answered, or nothing is to be heard of it any more.
    over: Atomic<bool>,
    /// The connect or accept over iWARP.
    #[pin]
    call: Call,
    /// Whose id it is, and where it goes when nobody owns it any more.
    user: UserId,
    lingering: Arc<Lingering>,
}

impl Context {
    /// Nobody hears. `request` is the transport of a request that has come; `None` for an id
    /// that connects or listens.
    pub(super) fn new(
        request: Option<Transport>,
        user: UserId,
        lingering: Arc<Lingering>,
        flags: Flags,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                handler <- new_mutex!(None, "CmId::handler"),
                may_disconnect: Atomic::new(
                    request.is_some_and(|transport| transport != Transport::Iwarp)
                ),
                connected: Atomic::new(false),
                asked: Atomic::new(false),
                over: Atomic::new(false),
                call <- Call::new(),
                user,
                lingering,
            }),
            flags,
        )
    }

    /// The connect or accept over iWARP.
    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// A connect or accept over iWARP begins, with this queue pair.
    ///
    /// # Errors
    ///
    /// As for [`Lingering::claim`].
    pub(super) fn begin_call<T: Send + Sync + 'static>(&self, qp: Arc<T>) -> Result {
        self.call.begin(qp, &self.lingering, self.user)
    }

    /// Whose id it is.
    pub(super) fn user(&self) -> UserId {
        self.user
    }

    /// Where the id goes when nobody owns it any more.
    pub(super) fn lingering(&self) -> &Arc<Lingering> {
        &self.lingering
    }

    /// Whether `rdma_disconnect` may be called.
    pub(super) fn may_disconnect(&self) -> bool {
        self.may_disconnect.load(Acquire)
    }

    /// The peer is asked to disconnect.
    pub(super) fn ask(&self) {
        if self.connected.load(Acquire) {
            self.asked.store(true, Release);
        }
    }

    /// Whether the id has to stay for what is to be heard yet: the peer was asked to disconnect and
    /// has not answered, or the outcome of a call is not known.
    pub(super) fn is_unanswered(&self) -> bool {
        self.call.is_pending() || (self.asked.load(Acquire) && !self.is_over())
    }

    /// Whether nothing is to be heard of the peer any more.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Acquire)
    }

    /// A request was accepted. Over iWARP an event tells when the peer hears of it.
    pub(super) fn accepted(&self) {
        if self.may_disconnect() {
            self.connected.store(true, Release);
        }
    }

    /// Nothing is to be heard of the peer any more.
    pub(super) fn end(&self) {
        self.over.store(true, Release);
    }

    /// Notes how far an event brings the conversation.
    fn note(&self, event: bindings::rdma_cm_event_type) {
        if is_outcome(event) {
            self.call.end();
        }
        match event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_RESPONSE => {
                self.may_disconnect.store(true, Release);
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

    /// Changes who hears; returns who did. What that drops may wait for a handler.
    pub(super) fn set(&self, handler: Arc<dyn Handler>) -> Option<Arc<dyn Handler>> {
        self.handler.lock().replace(handler)
    }

    /// As `rdma_cm` takes it.
    pub(super) fn as_raw(this: &Arc<Self>) -> *mut c_void {
        Arc::as_ptr(this).cast_mut().cast()
    }

    /// Of a raw id.
    ///
    /// # Safety
    ///
    /// `raw` is a live id whose handler is [`handler`], for the lifetime.
    pub(super) unsafe fn of<'a>(raw: NonNull<bindings::rdma_cm_id>) -> ArcBorrow<'a, Self> {
        // SAFETY: The caller vouches for the id. Its context is its owner's, or the listening id's
        // while a request is told: alive until the id is destroyed.
        unsafe { ArcBorrow::from_raw((*raw.as_ptr()).context.cast_const().cast::<Self>()) }
    }

    fn handler(&self) -> Option<Arc<dyn Handler>> {
        self.handler.lock().clone()
    }
}

/// Whether an event tells what has become of a connect or an accept. (Before one they tell of addresses
/// and routes.)
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

/// `rdma_cm_event_handler` of all ids.
///
/// # Safety
///
/// Only `rdma_cm` calls it, with an id whose handler this is, the handler mutex held, and an event.
pub(super) unsafe extern "C" fn handler(
    raw: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> i32 {
    let (Some(raw), false) = (NonNull::new(raw), event.is_null()) else {
        return 0;
    };
    // SAFETY: `rdma_cm` calls with a live id whose mutex is held, and a valid event.
    let (context, event, id) = unsafe { (Context::of(raw), &*event, IdRef::new(raw)) };
    let handler = context.handler();
    if event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST {
        // SAFETY: It is a request: its id is new, and it has private data. What it is answered with is
        // returned.
        let (id, data) = unsafe { (NewId::new(id), Event::request_data(event)) };
        let verdict = match handler {
            Some(handler) => handler.request(id, data),
            None => id.finish(),
        };
        return verdict.as_raw();
    }
    context.note(event.event);
    if let Some(handler) = handler {
        // SAFETY: All our ids are of the connected service.
        handler.event(&id, unsafe { Event::from_raw(event) });
    }
    0
}
