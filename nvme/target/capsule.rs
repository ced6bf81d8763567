// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Buffers that a host's capsule is received into.

use crate::wire::COMMAND_SIZE;
use kdat::{
    Buffer,
    Completion,
    Dto, //
};
use kernel::prelude::*;

/// Buffers of a capsule: one for the command, and one for in-capsule data if the queue has those.
pub(crate) struct Capsule {
    command: Buffer,
    data: KVec<Buffer>,
    /// Number of bytes of the last capsule.
    pub(crate) received: usize,
}

impl Capsule {
    /// Takes the buffers of a receive.
    pub(crate) fn of(completion: Completion) -> Option<Self> {
        Some(Self {
            command: completion.buffer?,
            data: completion.more,
            received: completion.length,
        })
    }

    /// Returns the first receive into these buffers.
    pub(crate) fn first(command: Buffer, data: Option<Buffer>) -> kdat::Result<Dto> {
        let receive = Dto::receive(command);
        match data {
            None => Ok(receive),
            Some(data) => {
                let length = data.len();
                receive.with(data, length)
            }
        }
    }

    /// Returns the next receive into these buffers.
    pub(crate) fn receive(self) -> Dto {
        Dto::receive(self.command).with_all(self.data)
    }

    /// Copies the command. `None` if the capsule is too short for one.
    pub(crate) fn command(&self) -> Option<[u8; COMMAND_SIZE]> {
        if self.received < COMMAND_SIZE {
            return None;
        }
        self.command.first_chunk().copied()
    }

    /// Returns the in-capsule data.
    pub(crate) fn data_mut(&mut self) -> Option<&mut [u8]> {
        self.data.first_mut().map(|data| &mut **data)
    }
}
