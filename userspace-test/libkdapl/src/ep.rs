// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoints (EPs): one connection each, with the data transfer operations posted on it.

mod config;
mod connect;
mod extension;
mod mapped;
mod post;
mod state;

pub use config::{EpChange, EpConfig};
pub use connect::{Close, ConnectOptions, Multipath, Qos};
pub use post::{Dto, Submitted, Wait};
pub use state::{EpFields, EpQuery, EpState, EpStatus};

use crate::error::Result;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Device};
use crate::sys::*;
use config::{evd_handle, pz_handle, Parts};
pub(crate) use mapped::Posts;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An endpoint. Keeps its protection zone and its EVDs alive.
#[derive(Clone, Debug)]
pub struct Ep(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped first: the kernel frees no object that an endpoint uses.
    object: Object,
    parts: Mutex<Parts>,
    posts: Mutex<Posts>,
}

impl Ep {
    pub(crate) fn create(device: &Arc<Device>, config: &EpConfig<'_>) -> Result<Self> {
        let mut message = kdapl_ep_create {
            pz: pz_handle(config.pz),
            recv_evd: evd_handle(config.recv),
            request_evd: evd_handle(config.request),
            connect_evd: evd_handle(config.connect),
            srq: config.srq.map_or(0, |srq| srq.handle().0),
            flags: if config.attr.is_some() { KDAPL_EP_HAS_ATTR } else { 0 },
            attr: config.attr.unwrap_or_default(),
            ..Default::default()
        };
        raw::call(device, call::EP_CREATE, &mut message)?;
        Ok(Self::of(device, Handle(message.handle), config.into()))
    }

    /// Wraps the endpoint that the kernel created for a request.
    pub(crate) fn provided(device: &Arc<Device>, handle: Handle) -> Self {
        Self::of(device, handle, Parts::default())
    }

    fn of(device: &Arc<Device>, handle: Handle, parts: Parts) -> Self {
        let object = Object::new(device, handle.0, call::EP_FREE);
        Self(Arc::new(Inner { object, parts: Mutex::new(parts), posts: Mutex::default() }))
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.0.object.device
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // A panic cannot leave the parts half changed, since they are replaced as a whole.
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn posts(&self) -> MutexGuard<'_, Posts> {
        // Nothing panics while it is locked.
        self.0.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call that changes the state or the attributes. Meanwhile no DTO is mapped, and other
    /// threads post by calls: they do not wait for this one.
    fn without_mapping<T>(&self, call: impl FnOnce() -> T) -> T {
        self.posts().begin_change();
        let result = call();
        self.posts().end_change();
        result
    }

    /// Returns the kernel's handle, which the endpoint's events carry.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.object.handle
    }

    /// Frees the endpoint. Breaks its connection.
    ///
    /// # Errors
    /// `INVALID_STATE` while a service point or a request uses it; `INVALID_HANDLE/EP` if it was
    /// freed before.
    pub fn free(&self) -> Result<()> {
        self.0.object.free()
    }
}
