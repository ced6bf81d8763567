// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Contexts: posts, and their results.

use crate::bmi::engine::{self, OpId, Post, Role};
use crate::error::{Error, Failure, Result};
use crate::home::Parts;
use crate::instance::{Peer, Shared};
use crate::memory::Part;
use crate::wait::lock;
use std::sync::Arc;
use std::time::Duration;

/// An operation that was posted. It has to be taken by one of the waits of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op(pub(crate) OpId);

/// Result of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The operation, which does not exist any more.
    pub op: Op,
    /// The value that was passed with the post.
    pub user: u64,
    /// Bytes of the message.
    pub length: u64,
    /// Error of the operation.
    pub result: std::result::Result<(), Failure>,
}

impl From<engine::Completion> for Completion {
    fn from(done: engine::Completion) -> Self {
        Self {
            op: Op(done.op),
            user: done.user,
            length: done.actual,
            result: done.error.map_or(Ok(()), |error| Err(error.into())),
        }
    }
}

/// A context, to which results of operations belong. Any number of threads can wait for them.
///
/// Dropping it cancels its operations and discards their results.
#[derive(Debug)]
pub struct Context {
    shared: Arc<Shared>,
    number: u8,
}

impl Context {
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Self> {
        let number = lock(&shared.state).0.engine.open_context().ok_or(Error::Contexts)?;
        Ok(Self { shared: shared.clone(), number })
    }

    /// Posts a send of `parts` as one message. `user` is returned with the result.
    ///
    /// The operation completes when the memory can be used again, which does not mean that a
    /// receive has taken the message. Its memory must not change before.
    ///
    /// # Errors
    /// [`Failure::NotConnected`] if only the peer can connect; [`Error::Dat`] if memory for RDMA
    /// cannot be registered.
    pub fn send(&self, to: &Peer, tag: i32, parts: &[Part], user: u64) -> Result<Op> {
        self.post(Role::Send, to, tag, (parts, user))
    }

    /// Posts a send for which the peer needs no receive, of at most
    /// [`unexpected_limit`](crate::Bmi::unexpected_limit) bytes.
    ///
    /// # Errors
    /// Those of [`send`](Self::send), and [`Failure::TooLong`].
    pub fn send_unexpected(&self, to: &Peer, tag: i32, parts: &[Part], user: u64) -> Result<Op> {
        self.post(Role::SendUnexpected, to, tag, (parts, user))
    }

    /// Posts a receive for a message with `tag` from `from`, which may be shorter than `parts`.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub fn receive(&self, from: &Peer, tag: i32, parts: &[Part], user: u64) -> Result<Op> {
        self.post(Role::Receive, from, tag, (parts, user))
    }

    fn post(&self, role: Role, peer: &Peer, tag: i32, what: (&[Part], u64)) -> Result<Op> {
        let (parts, user) = what;
        let post = Post {
            role,
            peer: peer.id(),
            tag,
            length: 0,
            fragments: 0,
            context: self.number,
            user,
        };
        let mut guard = lock(&self.shared.state);
        let posted = guard.0.post(post, Parts::new(parts), role != Role::Receive);
        self.shared.announce(&mut guard);
        posted.map(Op)
    }

    /// Takes up to `most` results, the oldest first. Waits for the first one, until the time-out
    /// (`None`: no limit). Returns nothing if there is none.
    ///
    /// # Errors
    /// [`Error::Dat`] if events can no longer be taken.
    pub fn wait(&self, most: usize, timeout: Option<Duration>) -> Result<Vec<Completion>> {
        let number = self.number;
        let first = self.shared.wait(number.into(), timeout, |state| {
            let mut taken = Vec::new();
            while taken.len() < most {
                match state.test_context(number) {
                    Some(completion) => taken.push(completion),
                    None => break,
                }
            }
            (!taken.is_empty()).then_some(taken)
        });
        Ok(first?.unwrap_or_default())
    }

    /// Takes the result of an operation, for which it waits until the time-out.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn wait_for(&self, op: Op, timeout: Option<Duration>) -> Result<Option<Completion>> {
        let number = self.number;
        self.shared.wait(number.into(), timeout, |state| state.test(op.0, number))
    }

    /// Takes the results of those of `ops` that are complete, and waits for the first one until the
    /// time-out.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn wait_for_some(&self, ops: &[Op], timeout: Option<Duration>) -> Result<Vec<Completion>> {
        let number = self.number;
        let taken = self.shared.wait(number.into(), timeout, |state| {
            let done = ops.iter().filter_map(|op| state.test(op.0, number));
            let done: Vec<_> = done.collect();
            (!done.is_empty()).then_some(done)
        });
        Ok(taken?.unwrap_or_default())
    }

    /// Cancels an operation, which has to be taken nevertheless. It completes with
    /// [`Failure::Cancelled`], or with success if it could no longer be stopped; in both cases when
    /// nothing accesses its memory any more. Other operations are not affected.
    pub fn cancel(&self, op: Op) {
        let mut guard = lock(&self.shared.state);
        let (state, _) = &mut *guard;
        state.engine.cancel(&mut state.home, op.0);
        state.settle();
        self.shared.announce(&mut guard);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut guard = lock(&self.shared.state);
        guard.0.close_context(self.number);
        self.shared.announce(&mut guard);
    }
}
