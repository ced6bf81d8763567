// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Handles, and objects that are freed once.

use crate::error::Result;
use crate::raw::{self, call, Call, Device};
use crate::sys::kdapl_handle;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The kernel's handle of an object, valid only in the open file that created it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u64);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An object that is freed when dropped.
pub(crate) struct Object {
    pub(crate) device: Arc<Device>,
    pub(crate) handle: Handle,
    free: Call<kdapl_handle>,
    freed: AtomicBool,
}

impl Object {
    pub(crate) fn new(device: &Arc<Device>, handle: u64, free: Call<kdapl_handle>) -> Self {
        let freed = AtomicBool::new(false);
        Self { device: device.clone(), handle: Handle(handle), free, freed }
    }

    /// Frees the object. After an error the object still exists.
    pub(crate) fn free(&self) -> Result<()> {
        let mut message = kdapl_handle { handle: self.handle.0, ..Default::default() };
        raw::call(&self.device, self.free, &mut message)?;
        self.freed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if !self.freed.load(Ordering::Relaxed) {
            // An object that cannot be freed now is freed when the file is closed.
            let _ = self.free();
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.handle, f)
    }
}

/// A protection zone. Endpoints can use only the regions of their own zone.
#[derive(Clone, Debug)]
pub struct Pz(pub(crate) Arc<Object>);

impl Pz {
    pub(crate) fn create(device: &Arc<Device>) -> Result<Self> {
        let mut message = kdapl_handle::default();
        raw::call(device, call::PZ_CREATE, &mut message)?;
        Ok(Self(Arc::new(Object::new(device, message.handle, call::PZ_FREE))))
    }

    /// Returns the kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.handle
    }

    /// Frees the protection zone.
    ///
    /// # Errors
    /// `INVALID_STATE/PZ_IN_USE` while endpoints or regions belong to it.
    pub fn free(&self) -> Result<()> {
        self.0.free()
    }
}
