// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Shared receive queues (SRQs): receives that any of several endpoints takes.

use crate::error::Result;
use crate::object::{Handle, Object, Pz};
use crate::raw::{self, call, Device};
use crate::sys::*;
use crate::Segment;
use std::sync::Arc;

/// Result of [`Srq::query`].
pub type SrqQuery = kdapl_srq_query;

/// A shared receive queue. Keeps its protection zone alive.
#[derive(Clone, Debug)]
pub struct Srq(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped first: the kernel frees no zone that a queue uses.
    object: Object,
    _pz: Pz,
}

impl Srq {
    pub(crate) fn create(
        device: &Arc<Device>,
        pz: &Pz,
        max_recv_dtos: u32,
        max_recv_iov: u32,
    ) -> Result<Self> {
        let mut message = kdapl_srq_create {
            pz: pz.handle().0,
            max_recv_dtos,
            max_recv_iov,
            ..Default::default()
        };
        raw::call(device, call::SRQ_CREATE, &mut message)?;
        let object = Object::new(device, message.handle, call::SRQ_FREE);
        Ok(Self(Arc::new(Inner { object, _pz: pz.clone() })))
    }

    fn device(&self) -> &Arc<Device> {
        &self.0.object.device
    }

    /// Returns the kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.object.handle
    }

    /// Posts a receive, which scatters one message of any endpoint over `segments`.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for too many segments; `PROTECTION_VIOLATION` or `PRIVILEGES_VIOLATION`
    /// for a segment that is not in a writable region of the zone; `INSUFFICIENT_RESOURCES/SRQ` if
    /// the queue is full.
    pub fn post_recv(&self, segments: &[Segment], cookie: u64) -> Result<()> {
        let mut message = kdapl_srq_post {
            handle: self.handle().0,
            cookie,
            iov: if segments.is_empty() { 0 } else { segments.as_ptr() as u64 },
            iov_count: segments.len() as u32,
            iov_size: size_of::<Segment>() as u32,
            ..Default::default()
        };
        raw::call(self.device(), call::SRQ_POST_RECV, &mut message)
    }

    /// Returns the parameters and the numbers of receives.
    ///
    /// # Errors
    /// `INVALID_HANDLE/SRQ` after [`free`](Self::free).
    pub fn query(&self) -> Result<SrqQuery> {
        let mut message = kdapl_srq_query { handle: self.handle().0, ..Default::default() };
        raw::call(self.device(), call::SRQ_QUERY, &mut message)?;
        Ok(message)
    }

    /// Changes the number of receives that the queue holds.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for 0 or above `max_recv_per_srq`; `INVALID_STATE` if more receives are
    /// outstanding, or below the low watermark; `MODEL_NOT_SUPPORTED` if the driver cannot.
    pub fn resize(&self, max_recv_dtos: u32) -> Result<()> {
        self.set(call::SRQ_RESIZE, max_recv_dtos)
    }

    /// Sets the low watermark. One asynchronous event reports that fewer receives are available. 0
    /// turns it off.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` above the number of receives that the queue holds.
    pub fn set_low_watermark(&self, low_watermark: u32) -> Result<()> {
        self.set(call::SRQ_SET_LW, low_watermark)
    }

    fn set(&self, call: raw::Call<kdapl_srq_number>, number: u32) -> Result<()> {
        let mut message =
            kdapl_srq_number { handle: self.handle().0, number, ..Default::default() };
        raw::call(self.device(), call, &mut message)
    }

    /// Frees the queue. Receives that no endpoint has taken are dropped.
    ///
    /// # Errors
    /// `INVALID_STATE/SRQ_IN_USE` while an endpoint uses it; `INVALID_HANDLE/SRQ` if it was freed
    /// before.
    pub fn free(&self) -> Result<()> {
        self.0.object.free()
    }
}
