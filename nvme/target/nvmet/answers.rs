// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Commands that the NVMe core has answered, until they are posted: a list without a lock.

use super::command::{
    Answered,
    Command, //
};
use core::ptr;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
};

/// List of answered commands.
///
/// # Invariants
///
/// `newest` is NULL or a command whose box the list owns, and so is the `next` of each.
pub(crate) struct Answers {
    newest: Atomic<*mut Command>,
}

impl Answers {
    /// Creates an empty list.
    pub(crate) fn new() -> Self {
        Self {
            newest: Atomic::new(ptr::null_mut()),
        }
    }

    /// Adds a command. Returns whether the list was empty. Context: any.
    pub(crate) fn push(&self, answered: Answered) -> bool {
        let command = answered.into_raw().as_ptr();
        let mut newest = self.newest.load(Relaxed);
        loop {
            // SAFETY: The command is this function's until the exchange. INVARIANT: `next` is what
            // the list owns.
            unsafe { (*command).next = newest };
            match self.newest.cmpxchg(newest, command, Full) {
                Ok(_) => return newest.is_null(),
                Err(other) => newest = other,
            }
        }
    }

    /// Takes all commands, the oldest first.
    pub(crate) fn take(&self) -> Taken {
        let (mut newest, mut oldest) = (self.newest.xchg(ptr::null_mut(), Full), ptr::null_mut());
        while !newest.is_null() {
            // SAFETY: By the type invariant. The list was taken, so the commands are this
            // function's.
            let next = unsafe { core::mem::replace(&mut (*newest).next, oldest) };
            (oldest, newest) = (newest, next);
        }
        // INVARIANT: The commands belong to the value from now on.
        Taken { oldest }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Commands that were taken from a list.
///
/// # Invariants
///
/// `oldest` is NULL or a command whose box the value owns, and so is the `next` of each.
pub(crate) struct Taken {
    oldest: *mut Command,
}

impl Iterator for Taken {
    type Item = Answered;

    fn next(&mut self) -> Option<Answered> {
        let command = self.oldest;
        if command.is_null() {
            return None;
        }
        // SAFETY: By the type invariant.
        let mut command = unsafe { KBox::from_raw(command) };
        self.oldest = core::mem::replace(&mut command.next, ptr::null_mut());
        Some(Answered(command))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}
