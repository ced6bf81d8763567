// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The ioctl itself, and memory that a device may write.
//!
//! All `unsafe` code of the library is in this module and its child. The rest of the library and
//! most programs use the safe types. Tests of the ioctl interface use this module for messages that
//! the safe types cannot express.
#![allow(unsafe_code)]

mod buffer;
mod mapped_events;
mod mapped_posts;
mod mapping;
pub(crate) mod records;
mod ring;
mod ring_buffers;
#[cfg(feature = "tokio")]
pub(crate) mod watch;

pub use buffer::Buffer;
pub use mapped_events::MappedEvents;
pub use mapped_posts::MappedPosts;
pub use ring::{Completed, Ring};

use crate::bursts::Bursts;
use crate::ep::Dto;
use crate::error::{Error, Result};
use crate::sys::*;
use crate::uring::Owned;
use crate::Segment;
use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Path of the module's device node.
pub const DEVICE_PATH: &str = "/dev/kdapl";

/// A message: a `repr(C)` struct of plain integers that starts with [`kdapl_hdr`].
///
/// # Safety
/// Every bit pattern is valid, and the first field is a [`kdapl_hdr`].
pub unsafe trait Message: Copy + Default {}

/// A request of the interface: its number and the type of its message.
pub struct Call<M> {
    name: &'static str,
    request: u32,
    message: PhantomData<fn(M)>,
}

impl<M> Clone for Call<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Call<M> {}

impl<M: Message> Call<M> {
    const fn new(name: &'static str, request: u32) -> Self {
        // Bits 16..30 of an ioctl number are the size of its argument.
        assert!((request >> 16) as usize & 0x3fff == size_of::<M>());
        Self { name, request, message: PhantomData }
    }

    /// Returns DAT's name of the call, for error texts.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the ioctl number.
    pub const fn request(&self) -> u32 {
        self.request
    }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident: $message:ident = $request:ident, $dat:literal;)*) => {
        $($(#[$doc])* pub const $name: Call<$message> = Call::new($dat, $request);)*

        /// All requests: DAT's name, ioctl number, size of the message in bytes.
        pub const ALL: &[(&str, u32, usize)] =
            &[$(($name.name(), $name.request(), size_of::<$message>()),)*];
    };
}

macro_rules! messages {
    ($($message:ident),* $(,)?) => {
        // SAFETY: The types are generated from the header as `repr(C)` structs of integers and
        // arrays of integers, for which every bit pattern is valid. The first field is `hdr`, as
        // `messages_start_with_the_header` checks.
        $(unsafe impl Message for $message {})*

        #[test]
        fn messages_start_with_the_header() {
            $(assert_eq!(std::mem::offset_of!($message, hdr), 0);)*
        }
    };
}

messages! {
    kdapl_device, kdapl_port, kdapl_ia_open, kdapl_ia_query, kdapl_ia_close, kdapl_handle,
    kdapl_evd_create,
    kdapl_evd_query, kdapl_evd_wait, kdapl_evd_post_se, kdapl_ep_create, kdapl_ep_query,
    kdapl_ep_status, kdapl_ep_connect, kdapl_ep_disconnect, kdapl_ep_private_data, kdapl_ep_post,
    kdapl_ep_submit, kdapl_ep_watermark, kdapl_ep_recv_query,
    kdapl_ep_modify, kdapl_ep_dup_connect, kdapl_ep_common_connect, kdapl_psp_create,
    kdapl_psp_query, kdapl_rsp, kdapl_csp, kdapl_cr_query, kdapl_cr_answer, kdapl_cr_handoff,
    kdapl_lmr_create, kdapl_lmr_query, kdapl_rmr_create, kdapl_rmr_bind, kdapl_rmr_query,
    kdapl_evd_modify_cno, kdapl_evd_resize, kdapl_cno, kdapl_cno_query, kdapl_cno_wait,
    kdapl_cno_fd, kdapl_evd_fd, kdapl_ia_stat, kdapl_srq_create, kdapl_srq_post, kdapl_srq_query,
    kdapl_srq_number, kdapl_uring_cancel, kdapl_uring_stream,
}

/// The requests, each with its message type.
pub mod call {
    #![allow(missing_docs)]
    use super::*;

    /// A command of io_uring only, and no request of `ioctl(2)`.
    pub const URING_CANCEL: Call<kdapl_uring_cancel> = Call::new("cancel", IOC_KDAPL_URING_CANCEL);
    /// As above.
    pub const URING_STREAM: Call<kdapl_uring_stream> = Call::new("stream", IOC_KDAPL_URING_STREAM);

    /// The requests that are commands only, as [`ALL`].
    pub const COMMANDS: &[(&str, u32, usize)] = &[
        (URING_CANCEL.name(), URING_CANCEL.request(), size_of::<kdapl_uring_cancel>()),
        (URING_STREAM.name(), URING_STREAM.request(), size_of::<kdapl_uring_stream>()),
    ];

    calls! {
        DEVICE_GET: kdapl_device = IOC_KDAPL_DEVICE_GET, "dat_registry_list_providers";
        PORT_GET: kdapl_port = IOC_KDAPL_PORT_GET, "port query";
        IA_STAT: kdapl_ia_stat = IOC_KDAPL_IA_STAT, "adapter statistics";
        IA_OPEN: kdapl_ia_open = IOC_KDAPL_IA_OPEN, "dat_ia_open";
        IA_QUERY: kdapl_ia_query = IOC_KDAPL_IA_QUERY, "dat_ia_query";
        IA_CLOSE: kdapl_ia_close = IOC_KDAPL_IA_CLOSE, "dat_ia_close";
        PZ_CREATE: kdapl_handle = IOC_KDAPL_PZ_CREATE, "dat_pz_create";
        PZ_FREE: kdapl_handle = IOC_KDAPL_PZ_FREE, "dat_pz_free";
        EVD_CREATE: kdapl_evd_create = IOC_KDAPL_EVD_CREATE, "dat_evd_create";
        EVD_FREE: kdapl_handle = IOC_KDAPL_EVD_FREE, "dat_evd_free";
        EVD_QUERY: kdapl_evd_query = IOC_KDAPL_EVD_QUERY, "dat_evd_query";
        EVD_WAIT: kdapl_evd_wait = IOC_KDAPL_EVD_WAIT, "dat_evd_wait";
        EVD_DEQUEUE: kdapl_evd_wait = IOC_KDAPL_EVD_DEQUEUE, "dat_evd_dequeue";
        EVD_POST_SE: kdapl_evd_post_se = IOC_KDAPL_EVD_POST_SE, "dat_evd_post_se";
        EVD_MODIFY_CNO: kdapl_evd_modify_cno = IOC_KDAPL_EVD_MODIFY_CNO, "dat_evd_modify_cno";
        EVD_ENABLE: kdapl_handle = IOC_KDAPL_EVD_ENABLE, "dat_evd_enable";
        EVD_DISABLE: kdapl_handle = IOC_KDAPL_EVD_DISABLE, "dat_evd_disable";
        EVD_SET_UNWAITABLE: kdapl_handle = IOC_KDAPL_EVD_SET_UNWAITABLE, "dat_evd_set_unwaitable";
        EVD_CLEAR_UNWAITABLE: kdapl_handle = IOC_KDAPL_EVD_CLEAR_UNWAITABLE,
            "dat_evd_clear_unwaitable";
        EVD_RESIZE: kdapl_evd_resize = IOC_KDAPL_EVD_RESIZE, "dat_evd_resize";
        EVD_FD: kdapl_evd_fd = IOC_KDAPL_EVD_FD, "kdapl_evd_fd";
        EP_CREATE: kdapl_ep_create = IOC_KDAPL_EP_CREATE, "dat_ep_create";
        EP_FREE: kdapl_handle = IOC_KDAPL_EP_FREE, "dat_ep_free";
        EP_QUERY: kdapl_ep_query = IOC_KDAPL_EP_QUERY, "dat_ep_query";
        EP_GET_STATUS: kdapl_ep_status = IOC_KDAPL_EP_GET_STATUS, "dat_ep_get_status";
        EP_CONNECT: kdapl_ep_connect = IOC_KDAPL_EP_CONNECT, "dat_ep_connect";
        EP_DISCONNECT: kdapl_ep_disconnect = IOC_KDAPL_EP_DISCONNECT, "dat_ep_disconnect";
        EP_PRIVATE_DATA: kdapl_ep_private_data = IOC_KDAPL_EP_PRIVATE_DATA, "ep private data";
        EP_POST: kdapl_ep_post = IOC_KDAPL_EP_POST, "dat_ep_post_*";
        EP_SET_WATERMARK: kdapl_ep_watermark = IOC_KDAPL_EP_SET_WATERMARK, "dat_ep_set_watermark";
        EP_RECV_QUERY: kdapl_ep_recv_query = IOC_KDAPL_EP_RECV_QUERY, "dat_ep_recv_query";
        EP_READY: kdapl_handle = IOC_KDAPL_EP_READY, "kdapl_ep_ready";
        EP_SUBMIT: kdapl_ep_submit = IOC_KDAPL_EP_SUBMIT, "dat_ep_post_* and dat_evd_wait";
        EP_MODIFY: kdapl_ep_modify = IOC_KDAPL_EP_MODIFY, "dat_ep_modify";
        EP_RESET: kdapl_handle = IOC_KDAPL_EP_RESET, "dat_ep_reset";
        EP_DUP_CONNECT: kdapl_ep_dup_connect = IOC_KDAPL_EP_DUP_CONNECT, "dat_ep_dup_connect";
        EP_COMMON_CONNECT: kdapl_ep_common_connect = IOC_KDAPL_EP_COMMON_CONNECT,
            "dat_ep_common_connect";
        PSP_CREATE: kdapl_psp_create = IOC_KDAPL_PSP_CREATE, "dat_psp_create";
        PSP_FREE: kdapl_handle = IOC_KDAPL_PSP_FREE, "dat_psp_free";
        PSP_QUERY: kdapl_psp_query = IOC_KDAPL_PSP_QUERY, "dat_psp_query";
        RSP_CREATE: kdapl_rsp = IOC_KDAPL_RSP_CREATE, "dat_rsp_create";
        RSP_FREE: kdapl_handle = IOC_KDAPL_RSP_FREE, "dat_rsp_free";
        RSP_QUERY: kdapl_rsp = IOC_KDAPL_RSP_QUERY, "dat_rsp_query";
        CSP_CREATE: kdapl_csp = IOC_KDAPL_CSP_CREATE, "dat_csp_create";
        CSP_FREE: kdapl_handle = IOC_KDAPL_CSP_FREE, "dat_csp_free";
        CSP_QUERY: kdapl_csp = IOC_KDAPL_CSP_QUERY, "dat_csp_query";
        CR_QUERY: kdapl_cr_query = IOC_KDAPL_CR_QUERY, "dat_cr_query";
        CR_ACCEPT: kdapl_cr_answer = IOC_KDAPL_CR_ACCEPT, "dat_cr_accept";
        CR_REJECT: kdapl_cr_answer = IOC_KDAPL_CR_REJECT, "dat_cr_reject";
        CR_HANDOFF: kdapl_cr_handoff = IOC_KDAPL_CR_HANDOFF, "dat_cr_handoff";
        LMR_CREATE: kdapl_lmr_create = IOC_KDAPL_LMR_CREATE, "dat_lmr_create";
        LMR_FREE: kdapl_handle = IOC_KDAPL_LMR_FREE, "dat_lmr_free";
        LMR_QUERY: kdapl_lmr_query = IOC_KDAPL_LMR_QUERY, "dat_lmr_query";
        RMR_CREATE: kdapl_rmr_create = IOC_KDAPL_RMR_CREATE, "dat_rmr_create";
        RMR_FREE: kdapl_handle = IOC_KDAPL_RMR_FREE, "dat_rmr_free";
        RMR_BIND: kdapl_rmr_bind = IOC_KDAPL_RMR_BIND, "dat_rmr_bind";
        RMR_QUERY: kdapl_rmr_query = IOC_KDAPL_RMR_QUERY, "dat_rmr_query";
        SRQ_CREATE: kdapl_srq_create = IOC_KDAPL_SRQ_CREATE, "dat_srq_create";
        SRQ_FREE: kdapl_handle = IOC_KDAPL_SRQ_FREE, "dat_srq_free";
        SRQ_POST_RECV: kdapl_srq_post = IOC_KDAPL_SRQ_POST_RECV, "dat_srq_post_recv";
        SRQ_QUERY: kdapl_srq_query = IOC_KDAPL_SRQ_QUERY, "dat_srq_query";
        SRQ_RESIZE: kdapl_srq_number = IOC_KDAPL_SRQ_RESIZE, "dat_srq_resize";
        SRQ_SET_LW: kdapl_srq_number = IOC_KDAPL_SRQ_SET_LW, "dat_srq_set_lw";
        CNO_CREATE: kdapl_cno = IOC_KDAPL_CNO_CREATE, "dat_cno_create";
        CNO_FREE: kdapl_handle = IOC_KDAPL_CNO_FREE, "dat_cno_free";
        CNO_QUERY: kdapl_cno_query = IOC_KDAPL_CNO_QUERY, "dat_cno_query";
        CNO_WAIT: kdapl_cno_wait = IOC_KDAPL_CNO_WAIT, "dat_cno_wait";
        CNO_TRIGGER: kdapl_handle = IOC_KDAPL_CNO_TRIGGER, "dat_cno_trigger";
        CNO_MODIFY_AGENT: kdapl_cno = IOC_KDAPL_CNO_MODIFY_AGENT, "dat_cno_modify_agent";
        CNO_FD: kdapl_cno_fd = IOC_KDAPL_CNO_FD, "dat_cno_fd_create";
    }
}

/// An open file of `/dev/kdapl`.
#[derive(Debug)]
pub struct Device {
    file: File,
    pub(crate) bursts: Bursts,
}

impl Device {
    /// Opens the device node with close-on-exec.
    ///
    /// # Errors
    /// [`Error::Open`], whose text suggests a remedy.
    pub fn open() -> Result<Self> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(DEVICE_PATH)
            .map(|file| Self { file, bursts: Bursts::default() })
            .map_err(Error::Open)
    }

    /// Fills in the size of `message`, sends it, and checks DAT's return code.
    ///
    /// # Errors
    /// [`Error::Dat`] with the DAT code, or [`Error::Transport`] with the errno if the kernel
    /// refused the message.
    ///
    /// # Safety
    /// Memory that the message offers to a device (`kdapl_lmr_create`) is not accessed by code that
    /// assumes it unchanging. Addresses that the kernel only reads may be arbitrary.
    pub unsafe fn call<M: Message>(&self, call: Call<M>, message: &mut M) -> Result<()> {
        let header = std::ptr::from_mut(message).cast::<kdapl_hdr>();
        // SAFETY: A `Message` starts with its header, and `message` is an exclusive borrow.
        unsafe { (*header).size = size_of::<M>() as u32 };
        // SAFETY: `message` is valid for reads and writes of the size in the request number, as
        // `Call::new` asserts. The caller guarantees the rest.
        unsafe { self.ioctl(call.request, std::ptr::from_mut(message).cast()) }
            .map_err(|source| Error::of_call(call.name, source))?;
        // SAFETY: As above.
        match unsafe { (*header).ret } {
            0 => Ok(()),
            code => Err(Error::dat(call.name, code)),
        }
    }

    /// Calls `ioctl(2)` directly, for messages that no typed call sends.
    ///
    /// # Safety
    /// `argument` is the type that the kernel expects for `request`, or an address that the kernel
    /// may refuse. The kernel writes to no memory that is in use elsewhere.
    pub unsafe fn ioctl(&self, request: u32, argument: *mut libc::c_void) -> io::Result<i32> {
        // SAFETY: The descriptor stays open as long as `self`. The caller guarantees the argument.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), request.into(), argument) } {
            -1 => Err(io::Error::last_os_error()),
            value => Ok(value),
        }
    }
}

impl AsRawFd for Device {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Returns the current time of `CLOCK_MONOTONIC`.
pub(crate) fn monotonic_nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes. The call does not fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Opens a file for a CNO.
pub(crate) fn cno_file(device: &Device, cno: u64) -> Result<OwnedFd> {
    device.bursts.note_file();
    let mut message = kdapl_cno_fd { handle: cno, ..Default::default() };
    self::call(device, call::CNO_FD, &mut message)?;
    // SAFETY: The kernel opened the file for this call, so that it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(message.fd) })
}

/// Opens a file for an EVD, whose records are `kdapl_event`s.
pub(crate) fn evd_file(device: &Device, evd: u64) -> Result<OwnedFd> {
    device.bursts.note_file();
    let event_size = size_of::<kdapl_event>() as u32;
    let mut message = kdapl_evd_fd { handle: evd, event_size, ..Default::default() };
    self::call(device, call::EVD_FD, &mut message)?;
    // SAFETY: The kernel opened the file for this call, so that it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(message.fd) })
}

/// Safe form of [`Ring::push`] for the library itself.
pub(crate) fn push<M: Message>(
    ring: &mut Ring<Owned>,
    device: &Arc<Device>,
    call: Call<M>,
    stream: bool,
    tag: u64,
    owned: Owned,
    build: impl FnOnce(&mut Owned) -> M,
) -> io::Result<()> {
    device.bursts.note_file();
    // SAFETY: The messages of `Owned` point to its own memory, which is on the heap, and offer none
    // to a device.
    unsafe { ring.push(device, call, stream, tag, owned, build) }
}

/// Returns the segments of a DTO.
pub(crate) fn segments<'a>(dto: &Dto<'a>) -> &'a [Segment] {
    let dto = dto.raw();
    if dto.iov_count == 0 {
        return &[];
    }
    // SAFETY: `Dto::new` takes address and count from a slice that lives for `'a`, and no other
    // function changes them.
    unsafe { std::slice::from_raw_parts(dto.iov as *const Segment, dto.iov_count as usize) }
}

/// Safe form of [`Device::call`] for the library itself.
pub(crate) fn call<M: Message>(device: &Device, call: Call<M>, message: &mut M) -> Result<()> {
    // SAFETY: Only `Lmr::register()` sends a message that offers memory to a device. That memory is
    // a `Buffer`, whose bytes Rust code accesses by copying only.
    unsafe { device.call(call, message) }
}
