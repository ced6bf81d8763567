// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The DAT objects, one noun a file. Reads like the DAT specification; has no `unsafe`.
//!
//! An object lives as long as somebody holds an [`Arc`] of it, but *exists* in the sense of DAT from
//! its create call to its free call: while it stands in the table of its [`ia::Ia`]. Freeing takes it
//! out of the table and lets go of all that it holds of the device; a thread that was using it at
//! that moment finds an empty shell, never freed memory.
//!
//! # Locks
//!
//! Taken from the top down, never up:
//!
//! | lock | kind | protects |
//! |---|---|---|
//! | `Ep::resets` | mutex | a reset from its beginning to its end |
//! | `Point::seat` | mutex | how a service point hears of requests, and giving that up |
//! | `Site::shared` | mutex | making and destroying a listener at the shared port |
//! | `rdma_cm`'s handler mutex of an id, a listener's before the one of a new id | mutex | the order of one id's events |
//! | `Ep::preposted` | mutex | receives that wait for a connection, what an Endpoint is made of |
//! | `Point::gate` | mutex | what gets into a service point, and whether anything does |
//! | `Device::annex` | mutex | the directory of service points |
//! | `Upcalls::settings` | mutex | which upcalls an EVD makes, and the right to take an event for one |
//! | `Evd::consumer` | mutex | the CQs and polling them, taking from the ring |
//! | `Objects::inner` | mutex | the table of handles, who uses what, which streams join an EVD |
//! | `Cr::id` | mutex | whose the id of a request is |
//! | `Qp::state` | mutex | the state of a queue pair, also while `rdma_cm` connects it |
//! | `CmId::call` | mutex | who makes the call that connects an id, and what is kept for it |
//! | `Ep::inner` | spinlock | phase, slots, QP and id of an Endpoint |
//! | `Evd::link` | spinlock, irq-safe | which CNO an EVD triggers, its seat there, and whether |
//! | `Cno::inner` | spinlock, irq-safe | how each EVD stands: triggered, handed out; the agent |
//! | `Pz::regions` | spinlock | what the LMR contexts of a Protection Zone open |
//! | `Evd::producer` | spinlock, irq-safe | pushing into the ring |
//!
//! The table of users' accounts (`sys/user.rs`) has a mutex below all other mutexes.
//!
//! `Point::gate`, `Device::annex`, `Objects::inner` and `Cr::id` are taken in `rdma_cm`'s worker, which
//! everybody's connections wait for. Memory that is charged to a cgroup is not allocated under them with
//! flags that may wait: a cgroup at its limit would hold up all others.
//!
//! `kapi/` has one above `Objects::inner`: `Adapter::slot`, a mutex, under which a consumer's handle is
//! looked up.
//!
//! No two locks of one kind are held at once but for those of a listener and its new id: a handover
//! takes the gate of the service point that a request goes to, and under it the table that it leaves,
//! then the one that it enters. It takes no handler mutex, since nobody hears of a waiting request.
//!
//! What a lock's data own is dropped after the lock: an id waits for its handlers, a QP for its
//! users. (But a seat, whose lock is there to wait for that.) Under `Evd::consumer` nothing waits for
//! `rdma_cm` or for a device: see `ep/due.rs`.
//!
//! [`Arc`]: kernel::sync::Arc
#![deny(unsafe_code)]

pub(crate) mod cno;
pub(crate) mod cr;
pub(crate) mod csp;
mod directory;
pub(crate) mod ep;
mod error;
pub(crate) mod evd;
pub(crate) mod ia;
pub(crate) mod lmr;
mod objects;
mod private_data;
pub(crate) mod psp;
pub(crate) mod pz;
pub(crate) mod rsp;
mod service;
mod users;

pub(crate) use self::{
    objects::{
        Noun,
        Until, //
    },
    private_data::{
        PrivateData,
        WIDE_QUAL_OVERHEAD, //
    },
};
