// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The DAT objects. Reads like the DAT specification; has no `unsafe`.
//!
//! # Layers
//!
//! ```text
//!   ia        opens and closes adapters, resolves handles
//!   passive   PSP, RSP, CSP, CR
//!   ep        Endpoints
//!   evd       Event Dispatchers
//!   cno       CNOs            pz, lmr   Protection Zones, memory
//!   base      the adapter's device and attributes, tables of handles, uses
//! ```
//!
//! A module uses modules of lower layers only; `userspace-test/vm/lib/layers` checks it. What a
//! lower layer needs of a higher one is a trait that the lower one defines: a CNO sees its EVDs as
//! [`cno::Sources`], and an EVD sees the Endpoints that report there as [`evd::Endpoints`].
//!
//! # Lifetime
//!
//! An object's memory lives as long as an [`Arc`] of it. The object *exists* in the sense of DAT from
//! its create call to its free call, while it stands in a table of its [`ia::Ia`]. Freeing removes
//! it from the table and releases all that it holds of the device. A thread that is using the object
//! at that moment finds it empty, but never finds freed memory.
//!
//! # Locks
//!
//! Taken from the top down, never up:
//!
//! | lock | kind | protects |
//! |---|---|---|
//! | `Ep::resets` | mutex | one reset at a time |
//! | `Point::listener` | mutex | the listener of a service point, and its end |
//! | `Site::shared` | mutex | creating and destroying a listener at the shared port |
//! | `rdma_cm`'s handler mutex of an id, a listener's before the one of a new id | mutex | the order of one id's events |
//! | `Ep::preposted` | mutex | receives that wait for a connection; the parts of an Endpoint |
//! | `Point::admission` | mutex | whether a service point takes requests, and how many wait |
//! | `Device::annex` | mutex | the directory of service points |
//! | `Upcalls::settings` | mutex | the upcall policy of an EVD, and taking an event for an upcall |
//! | `Evd::consumer` | mutex | polling the CQs, taking events from the ring |
//! | `Objects::inner` | mutex | one table of handles, who uses its objects, which streams join an EVD |
//! | `Cr::id` | mutex | who owns the id of a request |
//! | `Qp::state` | mutex | the state of a queue pair, also while `rdma_cm` connects it |
//! | `CmId::call` | mutex | the thread that connects an id over iWARP |
//! | `Ep::inner` | spinlock | phase, slots, QP and id of an Endpoint |
//! | `Evd::link` | spinlock, irq-safe | which CNO an EVD triggers, and whether |
//! | `Cno::inner` | spinlock, irq-safe | which EVDs have triggered a CNO; the agent |
//! | `Pz::regions` | spinlock | the memory that the LMR contexts of a Protection Zone name |
//! | `Evd::producer` | spinlock, irq-safe | pushing into the ring |
//!
//! No other lock is taken while one of these is held:
//!
//! | lock | kind | protects |
//! |---|---|---|
//! | `Client::ia` | mutex | the adapter of an open file |
//! | `IaBase::link` | mutex | the adapter's reference to its device |
//! | `Pz::pd` | mutex | the protection domain of a Protection Zone |
//! | `Lmr::backing` | mutex | the memory region of an LMR |
//! | `Runner::evd` | mutex | the EVD of a work item that makes upcalls |
//! | `CmId::handler` | mutex | who receives the events of an id |
//! | `Device::watchers` | mutex | the adapters to notify of a device's removal |
//! | `Lingering::accounts` | mutex | ids and queue pairs over iWARP that wait for their driver |
//!
//! The table of users' accounts (`sys/user.rs`) has a mutex below all other mutexes. `kapi/` has one
//! above `Objects::inner`: `Adapter::slot`, under which a kernel consumer's handle is looked up.
//!
//! `Point::admission`, `Device::annex`, `Objects::inner` and `Cr::id` are taken in `rdma_cm`'s worker, which
//! all connections of the host share. Memory that is charged to a cgroup is never allocated with
//! these locks held and flags that may wait: a cgroup at its limit would stop all other users.
//!
//! Two locks of one kind are held at once in one case only: those of a listener and its new id. A
//! handoff takes the admission of the request's new service point and, with that held, first the
//! table that the request leaves, then the table that it enters. It takes no handler mutex, because
//! no event of a waiting request is handled.
//!
//! Values that a lock protects are dropped after the lock is released: the drop of an id waits for
//! its handlers, and the drop of a QP for its users. The exception is `Point::listener`, which exists to
//! wait. With `Evd::consumer` held nothing waits for `rdma_cm` or for a device: see `ep/due.rs`.
//!
//! [`Arc`]: kernel::sync::Arc
#![deny(unsafe_code)]

pub(crate) mod base;
pub(crate) mod cno;
pub(crate) mod ep;
pub(crate) mod evd;
pub(crate) mod ia;
pub(crate) mod lmr;
pub(crate) mod passive;
pub(crate) mod prelude;
pub(crate) mod pz;
