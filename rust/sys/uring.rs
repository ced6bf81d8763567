// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Commands of io_uring: `IORING_OP_URING_CMD`.
//!
//! A [`Command`] is a command that belongs to one thread: while io_uring issues it, or while it
//! runs in the task that has submitted it. A command that waits is [`Pending`], and has a [`Task`]
//! that a wake-up runs again. No thread waits meanwhile.
//!
//! C header: [`include/linux/io_uring/cmd.h`](srctree/include/linux/io_uring/cmd.h)

mod pending;
mod registry;
mod task;

pub(crate) use self::{
    pending::{
        start,
        Pending, //
    },
    registry::Registry,
    task::{
        RunResult,
        Task, //
    },
};

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kdapl_bindings as bindings;
use kernel::{
    ffi::c_uint,
    prelude::*,
    types::NotThreadSafe, //
};

/// A command that the caller owns: it is being issued, or it runs in its task.
///
/// # Invariants
///
/// The pointer is valid for `'a`, and the command is not completed. `flags` are those that io_uring
/// has passed to the running call. Unless they say otherwise, the lock of the ring is held.
pub(crate) struct Command<'a> {
    raw: NonNull<bindings::io_uring_cmd>,
    flags: c_uint,
    _owned: PhantomData<&'a ()>,
    _here: NotThreadSafe,
}

impl Command<'_> {
    /// Returns the command for which io_uring has called.
    ///
    /// # Safety
    ///
    /// `raw` is valid and not completed for the lifetime, `flags` are those of the running call,
    /// and the caller owns the command.
    pub(crate) unsafe fn from_raw(raw: NonNull<bindings::io_uring_cmd>, flags: c_uint) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            raw,
            flags,
            _owned: PhantomData,
            _here: NotThreadSafe,
        }
    }

    /// Describes the command, which is being issued.
    ///
    /// # Safety
    ///
    /// The caller is `file_operations.uring_cmd`, and this is not a call to cancel. So the
    /// submission entry exists.
    pub(crate) unsafe fn request(&self) -> CommandRequest {
        let mut request = bindings::kdapl_uring_command::default();
        // SAFETY: By the type invariant and the safety requirement.
        unsafe {
            bindings::kdapl_helper_uring_describe(self.raw.as_ptr(), self.flags, &raw mut request)
        };
        CommandRequest(request)
    }

    /// Selects the next buffer of a group that the process has provided.
    ///
    /// # Errors
    ///
    /// `ENOBUFS` without such a group, or if its buffers are used up.
    pub(crate) fn select(&self, group: u16) -> Result<SelectedBuffer<'_>> {
        let mut raw = bindings::kdapl_uring_buffer::default();
        // SAFETY: By the type invariant.
        let result = unsafe {
            bindings::kdapl_helper_uring_select(self.raw.as_ptr(), group, self.flags, &raw mut raw)
        };
        kernel::error::to_result(result)?;
        Ok(SelectedBuffer { command: self, raw })
    }
}

/// A provided buffer that was selected. The drop gives it back.
pub(crate) struct SelectedBuffer<'a> {
    command: &'a Command<'a>,
    raw: bindings::kdapl_uring_buffer,
}

impl SelectedBuffer<'_> {
    /// Returns the address in the process's memory, and the length in bytes. Neither is validated.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.raw.address, self.raw.length)
    }

    /// Returns the identifier of the buffer in its group.
    pub(crate) fn id(&self) -> u32 {
        u32::try_from(self.raw.id).unwrap_or(u32::MAX)
    }

    /// Posts a completion for the first `bytes` bytes, and keeps the command pending. Returns
    /// `false` if the completion queue has no room for it. The buffer is used up nevertheless.
    pub(crate) fn post(self, bytes: usize) -> bool {
        let this = core::mem::ManuallyDrop::new(self);
        this.put(bytes)
    }

    fn put(&self, bytes: usize) -> bool {
        let command = self.command;
        // SAFETY: By the invariant of `Command`. The buffer was selected for it, and is put once.
        unsafe {
            bindings::kdapl_helper_uring_post(
                command.raw.as_ptr(),
                &raw const self.raw,
                bytes,
                command.flags,
            )
        }
    }
}

impl Drop for SelectedBuffer<'_> {
    fn drop(&mut self) {
        let _ = self.put(0);
    }
}

/// Description of a command that is being issued.
pub(crate) struct CommandRequest(bindings::kdapl_uring_command);

/// Identity of a command at the consumer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    /// Identifies the ring.
    ring: u64,
    user_data: u64,
}

impl CommandRequest {
    fn has(&self, flag: u32) -> bool {
        self.0.flags & u64::from(flag) != 0
    }

    /// Returns the operation.
    pub(crate) fn op(&self) -> u32 {
        self.0.op
    }

    /// Returns the address of the message.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for a ring that finds completions by polling the device, `EINVAL` for a
    /// reserved field that is not zero, or a registered buffer.
    pub(crate) fn message(&self) -> Result<u64> {
        if self.has(bindings::KDAPL_URING_POLLED_RING) {
            return Err(Error::from_errno(-(bindings::KDAPL_EOPNOTSUPP as i32)));
        }
        if self.0.reserved != 0 || self.has(bindings::KDAPL_URING_FIXED_BUFFER) {
            return Err(EINVAL);
        }
        Ok(self.0.message)
    }

    /// Returns the group of provided buffers, if the command posts completions until it ends.
    pub(crate) fn multishot(&self) -> Option<u16> {
        let group = u16::try_from(self.0.buffer_group).ok()?;
        self.has(bindings::KDAPL_URING_MULTISHOT).then_some(group)
    }

    /// Returns whether the command may sleep for long. If not, `EAGAIN` makes io_uring issue it
    /// again in a thread of its own.
    pub(crate) fn may_sleep(&self) -> bool {
        !self.has(bindings::KDAPL_URING_NONBLOCK)
    }

    /// Returns the identity of the command, or of another one of its ring.
    pub(crate) fn id(&self, user_data: Option<u64>) -> Id {
        Id {
            ring: self.0.ring,
            user_data: user_data.unwrap_or(self.0.user_data),
        }
    }

    /// Returns whether the caller holds the lock of the ring.
    fn is_locked(&self) -> bool {
        !self.has(bindings::KDAPL_URING_UNLOCKED)
    }
}
