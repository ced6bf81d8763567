// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Who uses an object, in the sense in which DAT refuses to free one that is in use.
//!
//! That is a matter apart from memory: a reference keeps memory, a use keeps the object from being
//! freed. Uses begin under the lock of the table that frees take as well (`Objects::inner`), so that
//! no use begins of an object that is being freed.

use crate::dat::prelude::*;
use core::ops::Deref;
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// The number of users of an object.
pub(in crate::dat) struct Users(Atomic<i32>);

impl Users {
    /// Nobody.
    pub(in crate::dat) fn none() -> Self {
        Self(Atomic::new(0))
    }

    /// Whether there is any.
    pub(in crate::dat) fn any(&self) -> bool {
        self.0.load(Acquire) != 0
    }
}

/// An object that others can use.
pub(in crate::dat) trait Shared {
    /// Its users.
    fn users(&self) -> &Users;
}

/// A use of an object, from its making to its drop.
pub(in crate::dat) struct InUse<T: Shared>(Arc<T>);

impl<T: Shared> InUse<T> {
    /// One more user. The caller holds the lock of the table.
    pub(in crate::dat) fn new(object: Arc<T>) -> Self {
        object.users().0.fetch_add(1, Relaxed);
        Self(object)
    }

    /// The object.
    pub(in crate::dat) fn object(&self) -> Arc<T> {
        self.0.clone()
    }
}

impl<T: Shared> Deref for InUse<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Shared> Drop for InUse<T> {
    fn drop(&mut self) {
        self.0.users().0.fetch_sub(1, Release);
    }
}
