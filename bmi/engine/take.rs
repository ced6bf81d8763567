// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Contexts, and the results that consumers take.

use super::{
    op::{
        Completion,
        OpId,
        State,
        Unexpected, //
    },
    Engine,
    Storage,
    MAX_CONTEXTS, //
};

impl<S: Storage> Engine<S> {
    /// Opens a context; `None` if all are open.
    pub(crate) fn open_context(&mut self) -> Option<u8> {
        let context = self.open.trailing_ones();
        let context = u8::try_from(context).ok()?;
        let free = usize::from(context) < MAX_CONTEXTS;
        self.open |= bit(context);
        free.then_some(context)
    }

    /// Closes a context, all of whose operations were taken.
    pub(crate) fn close_context(&mut self, context: u8) {
        self.open &= !bit(context);
    }

    /// Returns the context of an operation; `None` if it was taken.
    pub(crate) fn context_of(&self, id: OpId) -> Option<u8> {
        Some(self.op(id)?.post.context)
    }

    /// Returns whether a context is open.
    pub(crate) fn is_open(&self, context: u8) -> bool {
        self.open & bit(context) != 0
    }

    /// Takes the result of an operation; `None` if it is not complete.
    pub(crate) fn test(&mut self, id: OpId) -> Option<Completion> {
        let op = self.op(id).filter(|op| op.state == State::Complete)?;
        let completion = Completion {
            op: id,
            user: op.post.user,
            actual: op.actual,
            error: op.error,
        };
        self.dequeue(id);
        self.ops.remove(id.0);
        Some(completion)
    }

    /// Returns whether an operation is complete, without an error.
    pub(crate) fn has_succeeded(&self, id: OpId) -> bool {
        self.op(id)
            .is_some_and(|op| op.state == State::Complete && op.error.is_none())
    }

    /// Takes the oldest result of a context; `None` if there is none.
    pub(crate) fn test_context(&mut self, context: u8) -> Option<Completion> {
        let list = self.shared.complete.get(usize::from(context))?;
        let first = self.ops.first(list)?;
        self.test(OpId(first))
    }

    /// Takes the oldest unexpected message; `None` if there is none. The consumer gets a reference
    /// to its sender, and the home's stash of the message.
    pub(crate) fn take_unexpected(&mut self, home: &mut impl super::Home) -> Option<Unexpected> {
        let id = OpId(self.ops.first(&self.shared.unexpected)?);
        let post = self.op(id)?.post;
        self.retain(post.peer);
        self.forget_arrival(id);
        self.pump(home, post.peer);
        Some(Unexpected {
            op: id,
            peer: post.peer,
            tag: post.tag,
            length: post.length,
        })
    }
}

/// Returns the bit of a context; 0 if there is no such context.
fn bit(context: u8) -> u16 {
    1_u16.checked_shl(context.into()).unwrap_or(0)
}
