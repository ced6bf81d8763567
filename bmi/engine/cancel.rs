// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Cancellation of operations.
//!
//! A cancelled operation completes when nothing can access its buffers any more, with `Cancelled`,
//! or with success if it could no longer be stopped. Its connection and all other operations go on.
//! If the peer does not answer in time, the memory is withdrawn without its consent: a late access
//! then breaks the connection, and lands nowhere.

use super::{
    error::Error,
    home::Home,
    op::{
        Answer,
        OpId,
        Queue,
        Role,
        State,
        BY_DEADLINE, //
    },
    Engine,
    Storage, //
};

impl<S: Storage> Engine<S> {
    /// Cancels an operation. It has to be taken nevertheless.
    pub(crate) fn cancel(&mut self, home: &mut impl Home, id: OpId) {
        let Some(op) = self.op(id).filter(|op| op.deadline.is_none()) else {
            return;
        };
        let peer = op.post.peer;
        match (op.post.role, op.state) {
            (_, State::Queued | State::Posted) => self.conclude_with(home, id, Error::Cancelled),
            (Role::Send, State::Offered) => self.ask_peer(id, Answer::Cancel),
            (Role::Receive, State::Cleared) => self.ask_peer(id, Answer::Refuse),
            // After a read, the message is complete.
            (Role::Receive, State::Matched) if op.pull == Some(false) => {
                self.set_deadline(id);
                self.refuse(id, Error::Cancelled);
            }
            (_, State::Moving) => {
                self.set_deadline(id);
                self.stop(home, id);
            }
            // An answer waits for a credit.
            (_, State::Refusing | State::Matched) => self.set_deadline(id),
            _ => {}
        }
        self.pump(home, peer);
    }

    /// Sends a message to the peer, whose answer ends the operation.
    fn ask_peer(&mut self, id: OpId, answer: Answer) {
        self.set_deadline(id);
        if let Some(op) = self.op_mut(id) {
            op.answer = answer;
            self.enqueue(id, Queue::Control);
        }
    }

    fn set_deadline(&mut self, id: OpId) {
        let deadline = self.now.saturating_add(self.config.patience);
        if let Some(op) = self.ops.get_mut(id.0) {
            op.deadline = Some(deadline);
            self.ops.push(&mut self.deadlines, BY_DEADLINE, id.0);
        }
    }

    /// Ends the waits of cancelled operations whose time is over.
    pub(super) fn expire(&mut self, home: &mut impl Home) {
        while let Some(key) = self.ops.first(&self.deadlines) {
            let id = OpId(key);
            let Some(op) = self.op(id).filter(|op| op.deadline <= Some(self.now)) else {
                return;
            };
            let (peer, queue, state) = (op.post.peer, op.queue, op.state);
            self.clear_deadline(id);
            match state {
                // The peer gives no credit, or does not answer the device.
                _ if queue == Queue::Control => self.fail(home, peer, Error::TimedOut),
                State::Moving => self.fail(home, peer, Error::TimedOut),
                State::Offered | State::Cleared => self.conclude_with(home, id, Error::Cancelled),
                _ => {}
            }
        }
    }
}
