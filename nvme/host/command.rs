// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Submission of commands.

use crate::{
    core::{
        Refused,
        Request, //
    },
    queue::{
        AsyncEvent,
        Busy,
        Link,
        Queue,
        Slot, //
    },
    wire::{
        Sgl,
        COMMAND_SIZE, //
    },
};
use kdat::{
    kind,
    Access,
    Close,
    Dto,
    Ep, //
};
use kernel::prelude::*;

/// Tag of the command for asynchronous events, after those of the block layer's requests.
pub(crate) const ASYNC_EVENT_TAG: u16 = crate::wire::ADMIN_DEPTH - 1;

/// Opcode of that command.
const ASYNC_EVENT: u8 = 0x0c;

/// Flag of a command: its data have an SGL.
const FLAG_SGL: u8 = 0x40;

/// Descriptor of a command without data.
const NO_DATA: Sgl = Sgl::Keyed {
    address: 0,
    length: 0,
    key: 0,
    invalidate: false,
};

/// Sets the descriptor of a command.
fn set_sgl(command: &mut [u8; COMMAND_SIZE], sgl: Sgl) {
    command[1] |= FLAG_SGL;
    command[24..40].copy_from_slice(&sgl.to_bytes());
}

impl Slot {
    /// Writes the capsule of a request, and registers its data unless they are a part of it.
    /// Returns the size of the capsule.
    fn prepare(&mut self, request: &Request, capsule: &mut [u8], ep: &Ep) -> Result<usize> {
        let (command, room) = capsule.split_first_chunk_mut().ok_or(EIO)?;
        request.command(command);
        let data = request.data();
        let length = data.bytes as usize;
        let in_capsule = room.get_mut(..length).filter(|_| data.is_write);
        match in_capsule {
            _ if length == 0 => set_sgl(command, NO_DATA),
            Some(room) => {
                request.copy_data(room)?;
                let length = data.bytes;
                set_sgl(command, Sgl::InCapsule { offset: 0, length });
                return Ok(COMMAND_SIZE + room.len());
            }
            None => set_sgl(command, self.register(request, data.is_write, ep)?),
        }
        Ok(COMMAND_SIZE)
    }

    /// Registers the data of a request. The response is to end that.
    fn register(&mut self, request: &Request, is_write: bool, ep: &Ep) -> Result<Sgl> {
        let access = if is_write {
            Access::Read
        } else {
            Access::Write
        };
        let remote = self
            .fmr
            .register_with_next(request.lend()?, access, ep)
            .map_err(|(error, _)| errno(error))?;
        Ok(Sgl::Keyed {
            address: remote.address,
            length: remote.length,
            key: remote.context,
            invalidate: true,
        })
    }
}

/// Converts the error of a refused post. INVALID_STATE: the connection is ending. A lack of
/// resources: memory is short, or the device was removed. The block layer retries after both, until
/// the recovery stops the queue.
fn errno(error: kdat::Error) -> Error {
    match error.kind() {
        kind::INVALID_STATE => EAGAIN,
        kind::INSUFFICIENT_RESOURCES => ENOMEM,
        _ => error.into(),
    }
}

/// Returns a request with the reason why it was not sent.
fn refused(error: Error, request: Request) -> Refused {
    if error == ENOMEM || error == EAGAIN {
        Refused::Busy(request)
    } else {
        Refused::Path(request)
    }
}

impl Link {
    /// Sends the command of a request.
    fn submit(&mut self, request: Request) -> Result<(), Refused> {
        if self.has_ended {
            return Err(Refused::Ended(request));
        }
        // The tag set may have more tags than the controller now agrees to.
        let Some(room) = self.room.checked_sub(1) else {
            return Err(Refused::Busy(request));
        };
        let tag = request.tag();
        let Some(slot) = self.slots.get_mut(usize::from(tag)) else {
            return Err(Refused::Path(request));
        };
        let Some(mut capsule) = slot.capsule.take() else {
            return Err(Refused::Path(request));
        };
        let size = match slot.prepare(&request, &mut capsule, &self.ep) {
            Ok(size) => size,
            Err(error) => {
                slot.capsule = Some(capsule);
                return Err(refused(error, request));
            }
        };
        slot.busy = Some(Busy {
            request,
            is_sent: false,
            answer: None,
        });
        let posted = self.ep.post(Dto::send(capsule, size).context(tag.into()));
        let Err(refused) = posted else {
            self.room = room;
            return Ok(());
        };
        slot.capsule = refused.buffer;
        if slot.fmr.is_registered() {
            // The data stay lent until the connection has ended. Its end starts the recovery, which
            // cancels the request.
            let _ = self.ep.disconnect(Close::Abrupt);
            return Ok(());
        }
        let busy = slot.busy.take();
        busy.map_or(Ok(()), |busy| {
            Err(self::refused(errno(refused.error), busy.request))
        })
    }

    /// Sends the command that waits for asynchronous events, or notes that it is to be sent after
    /// the completion of a send: that of the last such command, whose response may come first, or
    /// of any other if this one is refused.
    pub(crate) fn submit_async_event(&mut self) -> Result {
        self.async_event = AsyncEvent::Wanted;
        if self.has_ended {
            return Ok(());
        }
        let slot = self.slots.get_mut(usize::from(ASYNC_EVENT_TAG));
        let slot = slot.ok_or(EIO)?;
        let Some(mut capsule) = slot.capsule.take() else {
            return Ok(());
        };
        let command = capsule.first_chunk_mut().ok_or(EIO)?;
        *command = [0; COMMAND_SIZE];
        command[0] = ASYNC_EVENT;
        command[2..4].copy_from_slice(&ASYNC_EVENT_TAG.to_le_bytes());
        set_sgl(command, NO_DATA);
        let send = Dto::send(capsule, COMMAND_SIZE);
        match self.ep.post(send.context(ASYNC_EVENT_TAG.into())) {
            Ok(()) => self.async_event = AsyncEvent::Sent,
            Err(refused) => {
                slot.capsule = refused.buffer;
                return Err(refused.error.into());
            }
        }
        Ok(())
    }
}

impl Queue {
    /// Sends the command of a request.
    pub(crate) fn submit(&self, request: Request) -> Result<(), Refused> {
        let mut request = Some(request);
        let submitted = self.with_link(|link| request.take().map(|request| link.submit(request)));
        match (submitted.flatten(), request) {
            // The commands that set a queue up are not tried again.
            (Some(Err(Refused::Busy(request))), _) if !self.is_live() => {
                Err(Refused::Path(request))
            }
            (Some(submitted), _) => submitted,
            (None, Some(request)) => Err(Refused::Path(request)),
            (None, None) => Ok(()),
        }
    }

    /// Sends the command that waits for asynchronous events, if the queue is connected.
    pub(crate) fn submit_async_event(&self) -> Result {
        self.with_link(Link::submit_async_event).unwrap_or(Ok(()))
    }
}
