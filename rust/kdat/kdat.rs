// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT 2.0 for kernel consumers in Rust: a safe crate over the calls of `include/rdma/kdat.h`.
//!
//! It is compiled into the consumer's module ([`kdat.mk`](srctree/rust/kdat/kdat.mk)). bindgen
//! generates the calls and their types from the header, with layout tests, in each build.
//!
//! # Objects
//!
//! ```text
//!   Ia ---- opened by the consumer; its drop closes the adapter
//!    +-- Pz ---- Buffer   memory for DTOs, owned by the consumer or by a DTO
//!    |    +----- Shared   memory that peers may access
//!    |    +----- Rmr      a part of a Shared that an Endpoint opens to its peers
//!    |    +----- Fmr      memory of the consumer that an Endpoint registers for its peers
//!    |    +----- Srq      receives of several Endpoints
//!    +-- Evd ---- waits, or a handler for upcalls
//!    +-- Ep ---- a connection
//!    +-- Cno ---- waits for several Evds
//!    +-- Psp, Rsp, Csp ---- listen, Cr ---- a request
//! ```
//!
//! An object frees its DAT object when it is dropped, and keeps those that it needs. Any thread may
//! use any object.
//!
//! # Context
//!
//! A call whose documentation says "Context: any" may be made in any context: in an interrupt, by
//! the holder of a spinlock, by an RCU reader. It takes no lock, and no memory of the crate's own.
//! These are the posts ([`Ep::post`], [`Ep::post_list`], [`Srq::post`], [`Evd::post`]), the calls
//! of [`Fmr`], and [`Evd::dequeue`] of an EVD with upcalls in soft interrupts. All that makes a
//! [`Dto`] or looks at an [`Event`] may also be called there, except [`Dto::with`]. A caller that
//! may not sleep is refused what would have to wait (docs/kernel-api.md, Rules).
//!
//! All other calls may sleep. So may the drop of any object, also that of the last [`Buffer`] or
//! [`Part`] of a region, which frees the memory. Other buffers and parts may be dropped anywhere.
//!
//! # Why no consumer needs `unsafe`
//!
//! - **Handles** are numbers that kDAPL checks, so that a stale one is an error and no more.
//! - **Memory of DTOs**: a post takes its [`Buffer`] by value, so that the consumer has no
//!   reference to the bytes while the device may access them. The buffer waits in the adapter's
//!   table (`slots.rs`), in which its Endpoint has reserved a place. The event of its DTO, which is
//!   delivered once, returns it. Without an event it stays there until the Endpoint was freed or
//!   the adapter closed, after which no device accesses it. A region is freed after its last
//!   buffer.
//! - **Memory of the consumer's own**, as a scatterlist of the block layer: a DTO takes a value
//!   that owns it ([`Memory`]), as it takes a buffer. The trait is unsafe to implement: here the
//!   consumer promises what the crate cannot see.
//! - **Memory of peers**: a [`Shared`] is read and written by copies. There are no references to
//!   its bytes, which a peer may change at any time. It is freed after `dat_lmr_free` or the close.
//! - **Memory of the consumer** ([`Scattered`]) belongs to its registration until an event of this
//!   adapter, later than the registration, says that it has ended, or until the LMR was freed.
//!   Only the type of that memory, if it is the consumer's, needs an `unsafe impl`.
//! - **Handlers** belong to the adapter. They are freed after the Event Dispatcher was freed or the
//!   adapter closed, when no upcall is in progress. An exclusive one is called by upcalls of the
//!   policy SINGLE_INSTANCE only, one at a time.
//! - **Private data** are copied by a call that checks the handle.
//! - **Unloading**: [`Ia`] closes the adapter when it is dropped, and pins the module if that is
//!   not possible, because an upcall of the adapter drops it. As for any registration in the
//!   kernel, a consumer must not forget an `Ia` ([`core::mem::forget`]) and unload.
#![deny(unsafe_op_in_unsafe_fn)]

mod adapter;
mod address;
mod batch;
mod cno;
mod dto;
mod ep;
mod error;
mod evd;
mod event;
mod fmr;
mod free_list;
mod handler;
mod ia;
mod memory;
mod points;
mod post;
mod pz;
mod query;
mod reserved;
mod rmr;
mod service;
mod shared;
mod slots;
mod srq;
mod transfer;

pub use self::{
    address::Address,
    cno::Cno,
    dto::{
        Dto,
        Remote,
        MAX_SEGMENTS, //
    },
    ep::{
        Close,
        Ep,
        EpAttr,
        EpId,
        Evds, //
    },
    error::{
        kind,
        Error,
        Result, //
    },
    evd::{
        Evd,
        EvdId,
        Streams, //
    },
    event::{
        Completion,
        Connection,
        Event,
        Operation, //
    },
    fmr::{
        Fmr,
        List,
        Scattered, //
    },
    handler::{
        AtomicHandler,
        Handler,
        ParallelHandler, //
    },
    ia::{
        Ia,
        Limits, //
    },
    memory::Buffer,
    points::{
        Csp,
        Rsp, //
    },
    post::Refused,
    pz::Pz,
    query::{
        EpState,
        EpStatus, //
    },
    rmr::Rmr,
    service::{
        Cr,
        Origin,
        Psp, //
    },
    shared::{
        Access,
        Part,
        Shared, //
    },
    srq::Srq,
    transfer::{
        downcast,
        Lmr,
        Memory, //
    }, //
};

/// Prefix of the messages of this crate.
const __LOG_PREFIX: &[u8] = b"kdat\0";

/// Calls and types of the header.
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    reason = "generated by bindgen"
)]
mod bindings {
    use kernel::ffi;
    type __kernel_size_t = usize;
    type __kernel_ssize_t = isize;
    type __kernel_ptrdiff_t = isize;
    include!(env!("KDAT_BINDINGS"));
}
