// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Accounts of the requests that a queue's Endpoint may have outstanding.
//!
//! A command needs one request for its response, and one for each transfer of its data. They are
//! reserved before the command is executed, so that a response can always be posted. A command that
//! finds too few waits, and those after it too.
//!
//! A command that fails before it is executed does not wait: the Endpoint has one more request for
//! each command, which no other may use.

/// Requests that may be posted.
#[derive(Debug)]
pub(crate) struct Slots {
    free: u32,
    all: u32,
}

impl Slots {
    /// Creates the account of an Endpoint with `all` requests for commands that are executed.
    pub(crate) fn new(all: u32) -> Self {
        Self { free: all, all }
    }

    /// Reserves requests. Returns whether there are as many.
    pub(crate) fn reserve(&mut self, requests: u32) -> bool {
        match self.free.checked_sub(requests) {
            Some(free) => {
                self.free = free;
                true
            }
            None => false,
        }
    }

    /// Gives back requests that are complete.
    pub(crate) fn release(&mut self, requests: u32) {
        self.free = self.free.saturating_add(requests).min(self.all);
    }
}

/// Returns the number of requests that commands may reserve: a response for each command, the
/// transfers of as many commands with one each, and those of one command of the largest size, which
/// could never be executed otherwise.
///
/// `most` is the limit of the device. `None` if it does not suffice for one command.
pub(crate) fn requests(depth: u16, largest: u32, most: u32) -> Option<u32> {
    let wanted = u32::from(depth).checked_mul(2)?.checked_add(largest)?;
    (most > largest).then_some(wanted.min(most))
}
