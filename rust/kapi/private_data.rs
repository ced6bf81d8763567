// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls that copy private data to the consumer.
//!
//! A pointer in an event or in the parameters of a Connection Request (CR) ends with its object,
//! which another thread may free at any time.

use super::{
    ep::find_in_any_state,
    export::{
        count,
        export,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        base::PrivateData,
        passive::Cr,
        prelude::*, //
    },
    kapi::export::Argument,
    model::handle::KernelHandle, //
};
use kernel::ffi::c_void;

/// Buffer of the caller for private data. Its size is another argument of the call.
///
/// # Invariants
///
/// The pointer is null, or valid for writes of that size for the duration of the call.
pub(super) struct PrivateDataBuffer(*mut c_void);

impl Argument for PrivateDataBuffer {
    type Raw = *mut c_void;

    unsafe fn from_raw(raw: *mut c_void) -> Self {
        // INVARIANT: Holds by the safety requirement of `from_raw`.
        Self(raw)
    }
}

impl PrivateDataBuffer {
    /// Copies private data to the buffer, as many as `size` has room for, and sets `size` to the
    /// size of the data.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER for a `size` that is NULL or negative, and for a buffer that is NULL
    /// unless its size is 0.
    ///
    /// # Safety
    ///
    /// `size` holds the size of the buffer that the caller of the exported function passed.
    unsafe fn fill(&self, size: &Out<i32>, data: &PrivateData) -> DatResult {
        let room = size.get().and_then(|room| usize::try_from(room).ok());
        let room = room.ok_or(DatError::Invalid(Arg::PrivateDataSize))?;
        if room != 0 && self.0.is_null() {
            return Err(DatError::Invalid(Arg::PrivateData));
        }
        let bytes = data.bytes();
        let len = room.min(bytes.len());
        if len != 0 {
            // SAFETY: By the type invariant and the safety requirement, the pointer, which is not
            // null, is valid for writes of `room` bytes. `len` is at most that, and at most the
            // length of `bytes`, which is a copy that the caller cannot reach.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast(), len) };
        }
        size.put(count(data.size()));
        Ok(())
    }
}

export! {
    /// `kdapl_ep_private_data`.
    fn kdapl_ep_private_data(ep: KernelHandle, size: Out<i32>, buffer: PrivateDataBuffer) {
        let data = find_in_any_state(ep)?.peer_data();
        // SAFETY: By the header, `size` holds the size of the buffer.
        unsafe { buffer.fill(&size, &data) }
    }

    /// `kdapl_cr_private_data`.
    fn kdapl_cr_private_data(cr: KernelHandle, size: Out<i32>, buffer: PrivateDataBuffer) {
        let data = Adapter::object::<Cr>(cr)?.query().private_data;
        // SAFETY: By the header, `size` holds the size of the buffer.
        unsafe { buffer.fill(&size, &data) }
    }
}
