// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Use counts of objects: DAT refuses to free an object that is in use.
//!
//! Uses are independent of references. A reference keeps an object's memory, and a use prevents the
//! consumer from freeing the object. Uses begin with the lock of the object's table held
//! (`Objects::inner`). Freeing takes the same lock, so no use begins of an object that is being
//! freed.

use crate::dat::prelude::*;
use core::ops::Deref;
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// Number of uses of an object.
pub(in crate::dat) struct UseCount(Atomic<i32>);

impl UseCount {
    /// Creates a count of zero.
    pub(in crate::dat) fn none() -> Self {
        Self(Atomic::new(0))
    }

    /// Returns whether the object is in use.
    pub(in crate::dat) fn any(&self) -> bool {
        self.0.load(Acquire) != 0
    }
}

/// Object that other objects can use.
pub(in crate::dat) trait Usable {
    /// Returns the use count.
    fn uses(&self) -> &UseCount;
}

/// Use of an object, which ends with the drop.
pub(in crate::dat) struct InUse<T: Usable>(Arc<T>);

impl<T: Usable> InUse<T> {
    /// Begins a use. The caller holds the lock of the table.
    pub(in crate::dat) fn new(object: Arc<T>) -> Self {
        object.uses().0.fetch_add(1, Relaxed);
        Self(object)
    }

    /// Returns a reference to the object.
    pub(in crate::dat) fn object(&self) -> Arc<T> {
        self.0.clone()
    }
}

impl<T: Usable> Deref for InUse<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Usable> Drop for InUse<T> {
    fn drop(&mut self) {
        self.0.uses().0.fetch_sub(1, Release);
    }
}
