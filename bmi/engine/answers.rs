// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Control messages of peers about operations.
//!
//! A message names an operation of this side by its number. It may be stale, because the operation
//! has been cancelled meanwhile, or invented. So it counts only if the operation exists, belongs to
//! this peer, and is in a state in which the message is expected. Otherwise it is ignored.

use super::{
    arrive::Message,
    error::Error,
    home::Home,
    op::{
        Op,
        OpId,
        Part,
        Role,
        State, //
    },
    table::Key,
    wire::ABORTED,
    Engine,
    Storage, //
};

impl<S: Storage> Engine<S> {
    /// Returns the operation that a message names.
    fn named(&mut self, message: &Message) -> Option<(OpId, &mut Op)> {
        let key = Key::from_raw(message.header.peers_operation);
        let op = self.ops.get_mut(key)?;
        (op.post.peer == message.peer).then_some((OpId(key), op))
    }

    /// Processes CTS: writes the message.
    pub(super) fn cleared(&mut self, home: &mut impl Home, message: &Message) -> Result<(), Error> {
        let Some((id, op)) = self.named(message) else {
            return Ok(());
        };
        // A send whose offer is being withdrawn does not expect CTS any more.
        let expected =
            op.state == State::Offered && op.pull == Some(false) && op.deadline.is_none();
        if !expected {
            return Ok(());
        }
        if message.header.length != op.post.length {
            return Err(Error::Protocol);
        }
        op.peers = message.header.operation;
        op.actual = op.post.length;
        let rails = home.keep(id, message.source, message.header.names_rails());
        self.begin_transfer(home, id, rails);
        Ok(())
    }

    /// Processes DONE: all of a message was read, or a range of it was written.
    pub(super) fn done(&mut self, home: &mut impl Home, message: &Message) -> Result<(), Error> {
        let header = message.header;
        let Some((id, op)) = self.named(message) else {
            return Ok(());
        };
        match (op.post.role, op.state) {
            (Role::Send, State::Offered) if op.pull == Some(true) => {
                op.actual = op.post.length;
                self.conclude(home, id);
            }
            (Role::Receive, State::Cleared) => {
                let actual = op.actual;
                if header.flags & ABORTED != 0 {
                    op.fail(Error::Cancelled);
                }
                let Part::Ranges(ranges) = &mut op.part else {
                    return Err(Error::Protocol);
                };
                if !ranges.insert(header.offset, header.length) {
                    return Err(Error::Protocol);
                }
                if ranges.is_whole(actual) {
                    self.conclude(home, id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Processes REFUSE: the receiver does not take the message, or no longer.
    pub(super) fn refused(&mut self, home: &mut impl Home, message: &Message) {
        let reason = Error::of_refusal(message.header.tag);
        let Some((id, op)) = self.named(message) else {
            return;
        };
        match (op.post.role, op.state) {
            (Role::Send, State::Offered) => self.conclude_with(home, id, reason),
            (Role::Send, State::Moving) => self.stop(home, id),
            _ => {}
        }
    }

    /// Processes CANCEL: the sender withdraws its offer. It has not seen CTS, and writes nothing.
    /// The message names the sender's operation, since the sender knows none of this side.
    pub(super) fn cancelled(&mut self, home: &mut impl Home, message: &Message) {
        let found = self.find_offer(message.peer, message.header.operation);
        let Some((id, op)) = found.and_then(|id| Some((id, self.op(id)?))) else {
            return;
        };
        let pull = match op.header() {
            Some(header) => header.descriptors > 0,
            None => op.pull == Some(true),
        };
        match (op.post.role, op.state) {
            // The sender waits until its memory is no longer read.
            (Role::Arrival, State::Unmatched) if pull => self.refuse(id, Error::Cancelled),
            (Role::Arrival, State::Unmatched) => self.free_arrival(home, id),
            (_, State::Moving) => self.stop(home, id),
            (_, State::Cleared) => self.conclude_with(home, id, Error::Cancelled),
            (_, State::Matched) if !pull => self.conclude_with(home, id, Error::Cancelled),
            _ => {}
        }
    }
}
