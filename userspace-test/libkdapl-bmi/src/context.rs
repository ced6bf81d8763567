// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Contexts: posts, and their results.

use crate::bmi::engine::{self, OpId, Post, Role};
use crate::error::{Error, Failure, Result};
use crate::home::Parts;
use crate::instance::{Instance, Peer};
use crate::memory::Part;
use crate::state::State;
use crate::wait::{lock, UNEXPECTED_PLACE};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// An operation that was posted. It has to be taken by one of the waits of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op(pub(crate) OpId);

impl Op {
    /// Returns the operation as a number other than 0, for interfaces that have numbers only.
    #[must_use]
    pub fn to_raw(self) -> u64 {
        self.0 .0.raw()
    }

    /// Returns the operation of a number. It may be one that does not exist.
    #[must_use]
    pub fn from_raw(raw: u64) -> Self {
        Self(OpId(engine::Key::from_raw(raw)))
    }
}

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
/// Dropping it [closes](Self::close) it. Calls on a closed context fail with [`Failure::Invalid`].
#[derive(Debug)]
pub struct Context {
    shared: Arc<Instance>,
    number: u8,
    /// Changes under the lock of the instance. The number may be that of another context then.
    closed: AtomicBool,
}

impl Context {
    pub(crate) fn open(shared: &Arc<Instance>) -> Result<Self> {
        let number = lock(&shared.state).0.engine.open_context().ok_or(Error::Contexts)?;
        Ok(Self { shared: shared.clone(), number, closed: AtomicBool::new(false) })
    }

    /// Cancels the operations, discards their results, and waits until nothing accesses their
    /// memory any more: at once if the peers answer, otherwise up to
    /// [`patience`](crate::Options::patience) and the time of a tick. Waits of other threads for
    /// results of the context fail.
    pub fn close(&self) {
        let mut guard = lock(&self.shared.state);
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        guard.0.home.wakes |= 1 << self.number;
        guard.0.close_context(self.number);
        self.shared.announce(&mut guard);
        drop(guard);
        let ended = |state: &mut State| (!state.is_closing(self.number)).then_some(());
        // An error is that of the events, without which nothing ends any more.
        let _ = self.shared.wait(UNEXPECTED_PLACE, None, ended);
    }

    /// Checks that the context is open. The caller holds the lock of the instance.
    fn check(&self) -> Result<()> {
        match self.closed.load(Ordering::Relaxed) {
            true => Err(Failure::Invalid.into()),
            false => Ok(()),
        }
    }

    /// Waits until `take` returns a result, the time-out, or the close of the context.
    fn wait_until<T>(
        &self,
        timeout: Option<Duration>,
        mut take: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        let taken = self.shared.wait(self.number.into(), timeout, |state| match self.check() {
            Ok(()) => take(state).map(Ok),
            Err(error) => Some(Err(error)),
        });
        taken?.transpose()
    }

    /// Posts a send of `parts` as one message. `user` is returned with the result.
    ///
    /// The operation completes when the memory can be used again: a short message is copied, and
    /// may not have left. So its success does not mean that a receive has taken the message. The
    /// memory must not change before.
    ///
    /// # Errors
    /// [`Failure::NotConnected`] if only the peer can connect; [`Failure::TooLong`] above
    /// [`LONGEST`](crate::LONGEST); [`Failure::DeviceLost`] after the removal of the device;
    /// [`Error::Dat`] if memory for RDMA cannot be registered.
    pub fn send(&self, to: &Peer, tag: i32, parts: &[Part], user: u64) -> Result<Op> {
        self.post(Role::Send, to, tag, (parts, user))
    }

    /// Posts a send for which the peer needs no receive, of at most
    /// [`unexpected_limit`](crate::Bmi::unexpected_limit) bytes.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub fn send_unexpected(&self, to: &Peer, tag: i32, parts: &[Part], user: u64) -> Result<Op> {
        self.post(Role::SendUnexpected, to, tag, (parts, user))
    }

    /// Posts a receive for a message with `tag` from `from`, which may be shorter than `parts`.
    ///
    /// # Errors
    /// Those of [`send`](Self::send), without the limit of the length.
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
        if !peer.is_of(&self.shared) {
            return Err(Failure::Invalid.into());
        }
        let mut guard = lock(&self.shared.state);
        self.check()?;
        let posted = guard.0.post(post, Parts::new(parts), role != Role::Receive);
        self.shared.announce(&mut guard);
        posted.map(Op)
    }

    /// Takes up to `most` results, the oldest first. Waits for the first one, until the time-out
    /// (`None`: no limit). Returns nothing if there is none.
    ///
    /// # Errors
    /// [`Failure::DeviceLost`] if the device was removed and the context has no operation;
    /// [`Error::Dat`] if events can no longer be taken.
    pub fn wait(&self, most: usize, timeout: Option<Duration>) -> Result<Vec<Completion>> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let number = self.number;
        let first = self.wait_until(timeout, |state| {
            let mut taken = Vec::new();
            while taken.len() < most {
                match state.test_context(number) {
                    Some(completion) => taken.push(completion),
                    None => break,
                }
            }
            match taken.is_empty() {
                true if state.expects_nothing(number) => Some(Err(Failure::DeviceLost)),
                true => None,
                false => Some(Ok(taken)),
            }
        });
        Ok(first?.transpose()?.unwrap_or_default())
    }

    /// Takes the result of an operation, for which it waits until the time-out. Returns `None` also
    /// if the operation does not exist, or another thread has taken it.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn wait_for(&self, op: Op, timeout: Option<Duration>) -> Result<Option<Completion>> {
        let number = self.number;
        let taken = self.wait_until(timeout, |state| {
            let exists = state.engine.context_of(op.0) == Some(number);
            let done = state.test(op.0, number);
            (done.is_some() || !exists).then_some(done)
        });
        Ok(taken?.flatten())
    }

    /// Takes the results of those of `ops` that are complete, and waits for the first one until the
    /// time-out.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn wait_for_some(&self, ops: &[Op], timeout: Option<Duration>) -> Result<Vec<Completion>> {
        let number = self.number;
        let taken = self.wait_until(timeout, |state| {
            let done = ops.iter().filter_map(|op| state.test(op.0, number));
            let done: Vec<_> = done.collect();
            (!done.is_empty()).then_some(done)
        });
        Ok(taken?.unwrap_or_default())
    }

    /// Takes the result of an operation that has succeeded already, without processing events.
    #[must_use]
    pub fn take_successful(&self, op: Op) -> Option<Completion> {
        let mut guard = lock(&self.shared.state);
        self.check().ok()?;
        guard.0.test_successful(op.0, self.number)
    }

    /// Returns whether an operation belongs to this context and was not taken.
    #[must_use]
    pub fn has(&self, op: Op) -> bool {
        let guard = lock(&self.shared.state);
        self.check().is_ok() && guard.0.engine.context_of(op.0) == Some(self.number)
    }

    /// Cancels an operation, which has to be taken nevertheless. It completes with
    /// [`Failure::Cancelled`], or with success if it could no longer be stopped; in both cases when
    /// nothing accesses its memory any more. Other operations are not affected.
    pub fn cancel(&self, op: Op) {
        let mut guard = lock(&self.shared.state);
        let (state, _) = &mut *guard;
        if self.check().is_err() || state.engine.context_of(op.0) != Some(self.number) {
            return;
        }
        state.engine.cancel(&mut state.home, op.0);
        state.settle();
        self.shared.announce(&mut guard);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.close();
    }
}
