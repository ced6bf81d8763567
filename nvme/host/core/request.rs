// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests of the block layer, and the memory of their data.
//!
//! A request ends when the block layer or the transport has completed it, and its memory is not
//! lent any more:
//!
//! ```text
//!   queue_rq --> Request --> complete(), or a cancellation --+
//!                   |                                        +--> nvme_complete_rq()
//!                   +--> lend() --> Data --> drop -----------+
//! ```
//!
//! C header: [`drivers/nvme/host/nvme.h`](srctree/drivers/nvme/host/nvme.h)

use crate::bindings;
use core::ptr::NonNull;
use kdat::{
    List,
    Scattered, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
};

/// Number of scatterlist entries within a request.
const ENTRIES: usize = bindings::NVME_INLINE_SG_CNT as usize;

/// Data of the transport in each request.
///
/// # Invariants
///
/// The request has not ended while `users` is not 0. The thread that takes `right` completes it.
#[repr(C)]
pub(super) struct Pdu {
    request: bindings::nvme_request,
    command: bindings::nvme_command,
    /// Twice the number of starts, plus 1 until a thread takes the right to complete the request.
    right: Atomic<u64>,
    /// The block layer until the completion, and the [`Data`].
    users: Atomic<u32>,
    table: bindings::sg_table,
    entries: [bindings::scatterlist; ENTRIES],
}

impl Pdu {
    /// Returns the data of the transport.
    ///
    /// # Safety
    ///
    /// `rq` is a request of a tag set whose `cmd_size` is the size of this type.
    unsafe fn of(rq: *mut bindings::request) -> *mut Self {
        // SAFETY: By the safety requirement the data follow the request.
        unsafe { bindings::blk_mq_rq_to_pdu(rq) }.cast()
    }

    /// Prepares a new request of a tag set.
    ///
    /// # Safety
    ///
    /// As of [`Self::of`]. Nobody uses the request yet.
    pub(super) unsafe fn init(rq: *mut bindings::request, ctrl: *mut bindings::nvme_ctrl) {
        // SAFETY: By the safety requirement the data are zeroed, which is valid, and exclusive.
        let pdu = unsafe { &mut *Self::of(rq) };
        pdu.request.ctrl = ctrl;
        pdu.request.cmd = &raw mut pdu.command;
    }
}

/// Request that was started, with the right to complete it. If it is dropped, or was cancelled
/// meanwhile, only a cancellation completes it.
pub(crate) struct Request {
    rq: NonNull<bindings::request>,
    /// Value of `Pdu::right` while the right is this one's.
    right: u64,
}

// SAFETY: Requests may be completed by any thread.
unsafe impl Send for Request {}

/// Response to a command.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    /// Status field, with the phase bit.
    pub(crate) status: u16,
    /// Result of the command.
    pub(crate) result: u64,
}

impl Request {
    /// Starts a request.
    ///
    /// # Safety
    ///
    /// As of [`Pdu::of`]. The block layer has just passed the request to `queue_rq`, and
    /// nvme_setup_cmd() has succeeded.
    pub(super) unsafe fn start(rq: NonNull<bindings::request>) -> Self {
        // SAFETY: By the safety requirement.
        let pdu = unsafe { &*Pdu::of(rq.as_ptr()) };
        // INVARIANT: The block layer is the user of a request that begins.
        pdu.users.store(1, Relaxed);
        let right = (pdu.right.load(Relaxed) | 1).wrapping_add(2);
        pdu.right.store(right, Relaxed);
        // SAFETY: By the safety requirement.
        unsafe { bindings::kdapl_nvme_start_request(rq.as_ptr()) };
        Self { rq, right }
    }

    fn pdu(&self) -> &Pdu {
        // SAFETY: The request was started, so its tag set has our data. A tag set is removed after
        // its queues were stopped, with which the transport has dropped this value.
        unsafe { &*Pdu::of(self.rq.as_ptr()) }
    }

    /// Returns the tag.
    pub(crate) fn tag(&self) -> u16 {
        self.id() & 0xfff
    }

    /// Returns the command identifier.
    pub(crate) fn id(&self) -> u16 {
        // SAFETY: The request is valid, as in `pdu`.
        unsafe { bindings::kdapl_nvme_cid(self.rq.as_ptr()) }
    }

    /// Copies the command.
    pub(crate) fn command(&self, to: &mut [u8; crate::wire::COMMAND_SIZE]) {
        const { assert!(size_of::<bindings::nvme_command>() == crate::wire::COMMAND_SIZE) };
        let from = (&raw const self.pdu().command).cast();
        // SAFETY: The command is a part of the request, which is not changed after its start.
        *to = unsafe { *from };
    }

    /// Returns whether the command is none of a file system or a disk, but of the NVMe core or an
    /// administrator. Threads that change the controller's state wait for some of them.
    pub(super) fn is_passthrough(&self) -> bool {
        // SAFETY: The request is valid, as in `pdu`.
        unsafe { bindings::kdapl_nvme_is_passthrough(self.rq.as_ptr()) }
    }

    /// Returns the size and direction of the data.
    pub(crate) fn data(&self) -> bindings::kdapl_nvme_data {
        // SAFETY: The request is valid, as in `pdu`.
        unsafe { bindings::kdapl_nvme_data(self.rq.as_ptr()) }
    }

    /// Keeps the request from its end, once at a time.
    fn hold(&self) -> Result<Hold> {
        let held = self.pdu().users.cmpxchg(1, 2, Full);
        // INVARIANT: The exchange has made this value the second user.
        held.map(|_| Hold(self.rq)).map_err(|_| EBUSY)
    }

    /// Copies all data, if their number is the size of `to`.
    pub(crate) fn copy_data(&self, to: &mut [u8]) -> Result {
        let size = u32::try_from(to.len())?;
        let held = self.hold()?;
        // SAFETY: The request has not ended, and `to` is valid for writes of `size` bytes.
        let copied = unsafe {
            bindings::kdapl_nvme_copy_data(held.0.as_ptr(), to.as_mut_ptr().cast(), size)
        };
        copied.then_some(()).ok_or(EIO)
    }

    /// Returns the memory of the data. The request ends after it was dropped.
    pub(crate) fn lend(&self) -> Result<Data> {
        Data::map(self.hold()?)
    }

    /// Takes the right to complete the request, unless a cancellation has it.
    fn take_right(&self) -> bool {
        let right = &self.pdu().right;
        right.cmpxchg(self.right, self.right & !1, Full).is_ok()
    }

    /// Completes the request with the response of the controller.
    ///
    /// Fault injection may ask to lose the response. Then the request stays started, and its
    /// time-out completes it.
    pub(crate) fn complete(self, answer: Answer) {
        let rq = self.rq.as_ptr();
        // SAFETY: The request is valid, as in `pdu`.
        if unsafe { bindings::kdapl_nvme_is_lost(rq) } || !self.take_right() {
            return;
        }
        // SAFETY: By the invariants of `Pdu`.
        if !unsafe { bindings::kdapl_nvme_try_complete(rq, answer.status, answer.result) } {
            // SAFETY: The block layer leaves the completion to this thread.
            unsafe { put(rq) };
        }
    }

    /// Completes a request that did not reach the controller. The NVMe core tries again, on
    /// another path if there is one.
    pub(crate) fn fail_path(self) {
        if !self.take_right() {
            return;
        }
        // SAFETY: By the invariants of `Pdu`.
        unsafe { bindings::kdapl_nvme_fail_path(self.rq.as_ptr()) };
        // SAFETY: The helper has completed the request.
        unsafe { put(self.rq.as_ptr()) };
    }

    /// Returns a request to the block layer, which passes it again later. If its memory is still
    /// lent, it fails as in [`Self::fail_path`].
    pub(super) fn retry_later(self) -> bindings::blk_status_t {
        if self.pdu().users.load(Relaxed) != 1 {
            self.fail_path();
            return bindings::KDAPL_NVME_OK as bindings::blk_status_t;
        }
        if !self.take_right() {
            // A cancellation completes it.
            return bindings::KDAPL_NVME_OK as bindings::blk_status_t;
        }
        // SAFETY: The request is valid, and has no other user.
        unsafe { bindings::nvme_cleanup_cmd(self.rq.as_ptr()) };
        bindings::KDAPL_NVME_RESOURCE as bindings::blk_status_t
    }
}

/// Takes the right to complete a request from its [`Request`].
///
/// # Safety
///
/// As of [`Pdu::of`].
pub(super) unsafe fn revoke(rq: *mut bindings::request) -> bool {
    // SAFETY: By the safety requirement.
    let right = unsafe { &(*Pdu::of(rq)).right };
    let now = right.load(Relaxed);
    now & 1 != 0 && right.cmpxchg(now, now & !1, Full).is_ok()
}

/// Ends a request after its last user.
///
/// # Safety
///
/// As of [`Pdu::of`]. The caller is a user of the request, and does not use it afterwards.
pub(super) unsafe fn put(rq: *mut bindings::request) {
    // SAFETY: By the safety requirement.
    let users = unsafe { &(*Pdu::of(rq)).users };
    if users.fetch_sub(1, Full) == 1 {
        // SAFETY: The block layer has completed the request, as it is no user any more.
        unsafe { bindings::nvme_complete_rq(rq) };
    }
}

/// User of a request beside the block layer.
///
/// # Invariants
///
/// This value is a user of the request, and its only one beside the block layer.
struct Hold(NonNull<bindings::request>);

impl Drop for Hold {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { put(self.0.as_ptr()) };
    }
}

/// Memory of a request's data, as a scatterlist.
///
/// # Invariants
///
/// The request's table has `entries` entries, at least one.
pub(crate) struct Data {
    entries: u32,
    bytes: u32,
    // Dropped after the table.
    held: Hold,
}

// SAFETY: The list may be used by any thread.
unsafe impl Send for Data {}

/// Returns the table of a request, and its first entries.
///
/// # Safety
///
/// `rq` has not ended, and the caller is the only user of its table.
unsafe fn table_of(
    rq: NonNull<bindings::request>,
) -> (*mut bindings::sg_table, *mut bindings::scatterlist) {
    // SAFETY: By the safety requirement.
    let pdu = unsafe { Pdu::of(rq.as_ptr()) };
    // SAFETY: Both are parts of the data of the transport.
    unsafe { (&raw mut (*pdu).table, (&raw mut (*pdu).entries).cast()) }
}

impl Data {
    /// Maps the data of a request to a scatterlist.
    fn map(held: Hold) -> Result<Self> {
        // SAFETY: By the invariants of `Hold`, as in the calls below.
        let (table, first) = unsafe { table_of(held.0) };
        // SAFETY: The request has not ended.
        let data = unsafe { bindings::kdapl_nvme_data(held.0.as_ptr()) };
        // SAFETY: The table is valid, and `first` has `ENTRIES` entries.
        to_result(unsafe {
            let segments = data.segments as i32;
            (*table).sgl = first;
            bindings::sg_alloc_table_chained(table, segments, first, ENTRIES as u32)
        })?;
        // SAFETY: The table has as many entries as the request has segments.
        let entries = unsafe { bindings::kdapl_nvme_map(held.0.as_ptr(), (*table).sgl) };
        let Ok(entries @ 1..) = u32::try_from(entries) else {
            // SAFETY: The table was allocated above.
            unsafe { bindings::sg_free_table_chained(table, ENTRIES as u32) };
            return Err(EIO);
        };
        let bytes = data.bytes;
        // INVARIANT: The table has these entries.
        Ok(Self {
            entries,
            bytes,
            held,
        })
    }

    fn table(&self) -> *mut bindings::sg_table {
        // SAFETY: By the invariants of `Hold`.
        unsafe { table_of(self.held.0) }.0
    }
}

// SAFETY: `held` keeps the request from its end, so that its memory stays. Neither the owner of the
// memory nor the transport has references to its bytes.
unsafe impl Scattered for Data {
    fn list(&self) -> List {
        // SAFETY: By the type invariant.
        let first = unsafe { (*self.table()).sgl };
        List {
            // SAFETY: The table has at least one entry.
            first: unsafe { NonNull::new_unchecked(first) },
            entries: self.entries,
            // SAFETY: As above.
            address: unsafe { bindings::kdapl_nvme_sg_virt(first) },
            length: self.bytes,
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // SAFETY: The table was allocated with this number of entries of our own.
        unsafe { bindings::sg_free_table_chained(self.table(), ENTRIES as u32) };
    }
}
