// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Commands, one box each. The type of the box shows whether the transport or the NVMe core has it.

use super::{
    sgl::{
        Data,
        Parts, //
    },
    submission::SubmissionQueue,
    PortRef, //
};
use crate::{
    bindings,
    capsule::Capsule,
    wire::{
        Status,
        COMMAND_SIZE,
        COMPLETION_SIZE, //
    },
};
use core::{
    marker::PhantomPinned,
    ptr::NonNull, //
};
use kdat::{
    Buffer,
    Lmr,
    Memory,
    Pz,
    Remote, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// Command of a queue.
///
/// It is in a box of which only this file has references, and is not moved out of it: the NVMe core
/// has pointers to `req`, `command`, `completion` and `parts`.
///
/// # Invariants
///
/// `counts` says that `req` has a reference to its queue of the core: `nvmet_req_init()` has
/// returned true, and the request was neither completed nor uninitialized.
pub(super) struct Command {
    req: Opaque<bindings::nvmet_req>,
    command: Opaque<bindings::nvme_command>,
    completion: Opaque<bindings::nvme_completion>,
    counts: bool,
    /// Next of a list of [`super::Answers`].
    pub(super) next: *mut Command,
    capsule: Option<Capsule>,
    parts: Parts,
    data: Option<Data>,
    /// Memory of the host, and whether the response invalidates its key.
    remote: Option<(Remote, bool)>,
    response: Option<Buffer>,
    /// Requests of the Endpoint that are reserved for the command.
    reserved: u32,
    _pin: PhantomPinned,
}

// SAFETY: The pointers of `req` are to memory that the command owns, and to objects of the core,
// which any thread may use.
unsafe impl Send for Command {}

// SAFETY: `data` changes only by methods of the owner of the box, and the NVMe core accesses its
// pages only while it has the box. `Data` drops the LMR before its pages.
unsafe impl Memory for Command {
    fn lmr(&self) -> Option<&Lmr> {
        self.data.as_ref()?.lmr()
    }
}

impl Command {
    fn new(response: Buffer) -> Result<KBox<Self>> {
        // INVARIANT: The request has no reference.
        let command = Self {
            req: Opaque::zeroed(),
            command: Opaque::zeroed(),
            completion: Opaque::zeroed(),
            counts: false,
            next: core::ptr::null_mut(),
            capsule: None,
            parts: Parts::new(),
            data: None,
            remote: None,
            response: Some(response),
            reserved: 0,
            _pin: PhantomPinned,
        };
        Ok(KBox::new(command, GFP_KERNEL)?)
    }

    /// Returns the box of a request of the core.
    ///
    /// # Safety
    ///
    /// `req` is in a command whose box was given to the core, which gives it back.
    pub(super) unsafe fn from_req(req: *mut bindings::nvmet_req) -> KBox<Self> {
        let req = Opaque::cast_from(req);
        // SAFETY: By the safety requirement.
        let command = unsafe { kernel::container_of!(req, Self, req) };
        // SAFETY: By the safety requirement.
        unsafe { KBox::from_raw(command.cast_mut()) }
    }

    /// Gives up the reference to the queue of the core.
    fn uncount(&mut self) {
        if core::mem::take(&mut self.counts) {
            // SAFETY: By the type invariant.
            unsafe { bindings::nvmet_req_uninit(self.req.get()) };
        }
    }

    /// Drops the buffers and the data of the last use of the command.
    fn clear(&mut self) {
        self.uncount();
        self.capsule = None;
        self.data = None;
        self.remote = None;
    }

    /// Gives the box to the core by a call, which gets the request.
    fn give(mut self: KBox<Self>, call: impl FnOnce(*mut bindings::nvmet_req)) {
        // INVARIANT: The core has the reference from now on.
        self.counts = false;
        let req = self.req.get();
        // The core gives the box back by `queue_response`.
        let _ = KBox::into_raw(self);
        call(req);
    }

    fn set_list(&mut self, list: (*mut bindings::scatterlist, u32), length: u32) {
        let req = self.req.get();
        // SAFETY: The owner of the box may write to the request.
        unsafe {
            (*req).sg = list.0;
            (*req).sg_cnt = list.1 as i32;
            (*req).transfer_len = length as usize;
        }
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.uncount();
    }
}

/// Command that is not in use.
pub(crate) struct Idle(KBox<Command>);

impl Idle {
    /// Allocates a command, with the buffer of its responses.
    pub(crate) fn new(response: Buffer) -> Result<Self> {
        Ok(Self(Command::new(response)?))
    }

    /// Takes a command back from the completion of its response, with the buffer of that. Returns
    /// the number of reserved requests too.
    pub(crate) fn returned(
        memory: KBox<dyn Memory>,
        response: Option<Buffer>,
    ) -> Option<(Self, u32)> {
        let mut command = kdat::downcast::<Command>(memory)?;
        command.clear();
        command.response = Some(response?);
        let reserved = core::mem::take(&mut command.reserved);
        Some((Self(command), reserved))
    }

    /// Starts a command that a host has sent. `None` if the core has answered it already.
    pub(crate) fn start(
        mut self,
        queue: &SubmissionQueue,
        port: PortRef,
        capsule: Capsule,
        bytes: &[u8; COMMAND_SIZE],
    ) -> Option<Started> {
        const { assert!(size_of::<bindings::nvme_command>() == COMMAND_SIZE) };
        const { assert!(size_of::<bindings::nvme_completion>() == COMPLETION_SIZE) };
        self.0.capsule = Some(capsule);
        let (req, command) = (self.0.req.get(), self.0.command.get());
        // SAFETY: Any bytes are a command. The owner of the box may write to the request.
        unsafe {
            command.cast::<[u8; COMMAND_SIZE]>().write(*bytes);
            (*req).cmd = command;
            (*req).cqe = self.0.completion.get();
            (*req).port = port.as_ptr();
        }
        let raw = KBox::into_raw(self.0);
        // SAFETY: The request stays in its box until the core has answered it, and its queue until
        // all requests were. If the call returns false, it has given the box back.
        if !unsafe { bindings::nvmet_req_init(req, queue.as_ptr(), super::ops::ops()) } {
            return None;
        }
        // SAFETY: The call has returned true, so the box is still this function's.
        let mut command = unsafe { KBox::from_raw(raw) };
        // INVARIANT: The call has taken a reference.
        command.counts = true;
        Some(Started(command))
    }
}

/// Command that the core knows, and has not been given.
pub(crate) struct Started(KBox<Command>);

impl Started {
    /// Takes a command back from the completion of an RDMA read.
    pub(crate) fn returned(memory: KBox<dyn Memory>) -> Option<Self> {
        let command = kdat::downcast::<Command>(memory)?;
        command.counts.then_some(Self(command))
    }

    /// Returns the command as memory for a DTO.
    pub(crate) fn into_memory(self) -> KBox<dyn Memory> {
        self.0
    }

    /// Returns the bytes of the command.
    pub(crate) fn bytes(&self) -> &[u8; COMMAND_SIZE] {
        // SAFETY: The command was written by `start`, and the core does not have it.
        unsafe { &*self.0.command.get().cast() }
    }

    /// Returns the length of the received capsule.
    pub(crate) fn received(&self) -> usize {
        self.0
            .capsule
            .as_ref()
            .map_or(0, |capsule| capsule.received)
    }

    /// Uses a part of the data that the capsule has.
    pub(crate) fn use_capsule(&mut self, (offset, length): (usize, usize)) -> Result<(), Status> {
        let command = &mut *self.0;
        let bytes = command.capsule.as_mut().and_then(Capsule::data_mut);
        let part = bytes.and_then(|bytes| bytes.get_mut(offset..)?.get_mut(..length));
        let list = part.and_then(|part| command.parts.describe(part));
        command.set_list(list.ok_or(Status::SGL_INVALID_OFFSET)?, length as u32);
        Ok(())
    }

    /// Allocates memory for data that are moved from or to the host. `invalidate` says that the
    /// response invalidates the host's key.
    pub(crate) fn use_remote(
        &mut self,
        pz: &Pz,
        remote: Remote,
        invalidate: bool,
        segments: u32,
    ) -> Result {
        let data = Data::new(pz, remote.length, segments)?;
        self.0.set_list(data.list(), remote.length);
        self.0.data = Some(data);
        self.0.remote = Some((remote, invalidate));
        Ok(())
    }

    /// Returns the number of requests that move the data.
    pub(crate) fn transfers(&self) -> u32 {
        self.0.lmr().map_or(0, Lmr::requests) as u32
    }

    /// Returns the memory of the host that data are moved from or to.
    pub(crate) fn remote(&self) -> Option<Remote> {
        self.0.remote.map(|(remote, _)| remote)
    }

    /// Stores how many requests of the Endpoint are reserved for the command.
    pub(crate) fn reserve(&mut self, requests: u32) {
        self.0.reserved = requests;
    }

    /// Returns how many are reserved.
    pub(crate) fn reserved(&self) -> u32 {
        self.0.reserved
    }

    /// Gives the command to the core, which executes it. The core answers it in any context.
    pub(crate) fn execute(self) {
        self.0.give(|req| {
            // SAFETY: `nvmet_req_init()` has set the function. The core has the box.
            if let Some(execute) = unsafe { (*req).execute } {
                // SAFETY: As above.
                unsafe { execute(req) };
            }
        });
    }

    /// Answers the command with a status, without executing it.
    pub(crate) fn complete(self, status: Status) {
        self.0.give(|req| {
            // SAFETY: The request counts, and the core has the box.
            unsafe { bindings::nvmet_req_complete(req, status.0) };
        });
    }
}

/// Command that the core has answered.
pub(crate) struct Answered(pub(super) KBox<Command>);

impl Answered {
    /// Returns the completion.
    fn completion(&self) -> &[u8; COMPLETION_SIZE] {
        // SAFETY: The core has written it, and has given the box back.
        unsafe { &*self.0.completion.get().cast() }
    }

    /// Returns whether the command was a success: the status, with its phase, is 0.
    fn is_success(&self) -> bool {
        matches!(self.completion(), [.., 0, 0])
    }

    /// Takes the buffers of the command's capsule, for the next receive.
    pub(crate) fn take_capsule(&mut self) -> Option<Capsule> {
        self.0.capsule.take()
    }

    /// Takes the buffer of the response, with the response.
    pub(crate) fn take_response(&mut self) -> Option<Buffer> {
        let mut response = self.0.response.take()?;
        response.copy_from_slice(self.completion());
        Some(response)
    }

    /// Returns the memory of the host that the data are for. `None` if there are none.
    pub(crate) fn destination(&self) -> Option<Remote> {
        // SAFETY: The command was written by `start`, and the core has given it back.
        let command: &[u8; COMMAND_SIZE] = unsafe { &*self.0.command.get().cast() };
        let (remote, _) = self.0.remote?;
        let has_data = !crate::wire::is_write(command) && self.is_success();
        has_data.then_some(remote)
    }

    /// Returns the key of the host that the response invalidates.
    pub(crate) fn key(&self) -> Option<u32> {
        let (remote, invalidate) = self.0.remote?;
        invalidate.then_some(remote.context)
    }

    /// Returns the command as memory for a DTO.
    pub(crate) fn into_memory(self) -> KBox<dyn Memory> {
        self.0
    }

    pub(super) fn into_raw(self) -> NonNull<Command> {
        NonNull::from(KBox::leak(self.0))
    }
}
