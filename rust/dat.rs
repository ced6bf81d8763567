// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT objects: the layer between the consumer interfaces (`chardev`, `kapi`) and the kernel's RDMA
//! core.
//!
//! Follows the DAT specification, and contains no `unsafe` code.
//!
//! # Layers
//!
//! ```text
//!   ia        opens and closes Interface Adapters (IA), resolves handles
//!   rmr       Remote Memory Regions (RMR)
//!   passive   Public, Reserved and Common Service Points (PSP, RSP, CSP), Connection Requests (CR)
//!   ep        Endpoints (EP)
//!   srq       Shared Receive Queues (SRQ)
//!   evd       Event Dispatchers (EVD)
//!   cno       Consumer Notification Objects (CNO)
//!   lmr       Local Memory Regions (LMR)
//!   pz        Protection Zones (PZ)
//!   base      the adapter's device and attributes, tables of handles, use counts
//! ```
//!
//! A module uses modules of lower layers only. `userspace-test/vm/lib/layers` checks this. If a
//! lower layer has to call a higher one, it defines a trait that the higher one implements. A CNO
//! calls its EVDs through [`cno::Sources`]. An EVD calls the Endpoints that report to it through
//! [`evd::CompletionTarget`].
//!
//! # Lifetime
//!
//! An object's memory lives as long as an [`Arc`] of it. The object *exists* in the sense of DAT
//! from its create call to its free call, while a table of its [`ia::Ia`] contains it. Freeing
//! removes it from the table and releases all its device resources. A thread that is using the
//! object at that moment finds those resources gone, but never finds freed memory.
//!
//! # Locks
//!
//! Lock order. A thread that holds a lock takes only locks from further down in this table. QP is a
//! queue pair, CQ a completion queue, id an `rdma_cm_id`:
//!
//! | lock | kind | protects |
//! |---|---|---|
//! | `Pending::work` | mutex | the wait of a command of io_uring, also while it runs |
//! | `Promises::promised` | mutex | promises to post mapped DTOs, also while they are kept |
//! | `SharedRing::ring` | mutex | the DTOs that a process maps, also while they are posted |
//! | `Rmr::state` | mutex | the bind of an RMR |
//! | `Lmr::backing` | mutex | the memory region of an LMR, also while it is looked for in DTOs |
//! | `FastLmr::dropped` | mutex | resources of an LMR that requests register, during their drop |
//! | `Ep::past_lives` | mutex | the completions of earlier lives; one reset or modify at a time |
//! | `Ep::old_qp` | mutex | the queue pair that a reset is destroying |
//! | `Point::listener` | mutex | the listener of a service point, and its end |
//! | `ListenAddress::shared` | mutex | creating and destroying a listener at the shared port |
//! | `rdma_cm`'s handler mutex of an id; a listener's before a new id's | mutex | event order |
//! | `Ep::preposted` | mutex | receives that wait for a connection; the parts of an Endpoint |
//! | `Point::admission` | mutex | whether a service point takes requests; number of waiting ones |
//! | `Device::annex` | mutex | the directory of service points |
//! | `Upcalls::settings` | mutex (1) | the upcall policy of an EVD; taking an event for an upcall |
//! | `Srq::slots` | mutex | the number of slots of an SRQ; one resize at a time |
//! | `Evd::consumer` | mutex (1) | polling the CQs, taking events from the ring |
//! | `Client::ia` | mutex | the adapter of an open file |
//! | `Adapter::slot` | mutex | the adapter of a kernel consumer's handle (`kapi/`) |
//! | `Objects::inner` | mutex | a table of handles, use counts, joining of streams to EVDs |
//! | `Cr::id` | mutex | ownership of the id of a request |
//! | `Pz::registrar` | mutex | the queue pair that registers memory of a PZ, while it does so |
//! | `Qp::state` | mutex | the state of a queue pair, also while `rdma_cm` connects it |
//! | `CmId::call` | mutex | the thread that connects an id over iWARP |
//! | `Ep::inner` | spinlock, irq-safe | phase, slots, QP and id of an Endpoint |
//! | `Pz::peers` | spinlock, irq-safe | the LMRs that peers of a Protection Zone may invalidate |
//! | `Lmr::fast` | spinlock, irq-safe | the state of an LMR that requests register |
//! | `Evd::link` | spinlock, irq-safe | which CNO an EVD triggers, and whether |
//! | `Cno::inner` | spinlock, irq-safe | which EVDs have triggered a CNO; the agent |
//! | `Srq::inner` | spinlock, irq-safe | slots, queue and members of an SRQ |
//! | `Pz::regions` | spinlock, irq-safe | the memory that LMR contexts of a Protection Zone name |
//! | `Pz::bound` | spinlock, irq-safe | the memory that RMR contexts of a Protection Zone name |
//! | `Evd::producer` | spinlock, irq-safe | pushing into the ring |
//! | `EpContext::totals` | spinlock, irq-safe | counts of the DTOs of all Endpoints |
//!
//! (1) A spinlock, irq-safe, for an EVD of a kernel consumer whose upcalls are made in soft
//! interrupts ([`ContextLock`](crate::sys::lock::ContextLock)). Under it only spinlocks are taken:
//! objects are found under RCU.
//!
//! No other lock is taken while one of these is held:
//!
//! | lock | kind | protects |
//! |---|---|---|
//! | `IaBase::link` | mutex | the adapter's reference to its device |
//! | `Pz::pd` | mutex | the protection domain of a Protection Zone |
//! | `Srq::pools` | mutex | room for completions of an SRQ |
//! | `Srq::charge` | mutex | the charge for a shared receive queue, while it is resized |
//! | `Runner::evd` | spinlock, irq-safe | the EVD of a work item that makes upcalls |
//! | `CmId::handler` | mutex | the receiver of the events of an id |
//! | `Device::watchers` | mutex | the adapters to notify of a device's removal |
//! | `LingeringIds::accounts` | mutex | ids and iWARP queue pairs that wait for their driver |
//! | `Registry::commands` | mutex | the commands of io_uring of an open file |
//! | `ThreadResult::result` | mutex | the result of a call that another thread makes |
//! | `DEVICES` | mutex | the registered devices (`rdma/client.rs`) |
//! | `ACCOUNTS` | mutex | the accounts of users (`sys/user.rs`) |
//! | `LIST` | mutex | the open adapters (`sys/adapters.rs`) |
//! | `period_lock` | mutex | a wait for a work item on each processor |
//!
//! A kernel consumer posts in any context. So all spinlocks save the interrupt state. The longest
//! work under them is a driver's call for each DTO of a list, and the end of the DMA mapping of a
//! registration, which copies each page on a machine with bounce buffers (swiotlb). The objects
//! that posts name are found under RCU, without a lock
//! ([`Objects::borrow_for_kernel`](base::Objects::borrow_for_kernel)).
//!
//! `Client::ia` is held only while an object is found by its handle, or the adapter of the file is
//! read or set. No thread waits under it.
//!
//! In `period_lock` (`helpers/workqueue.c`) only `cpus_read_lock()` is taken.
//!
//! io_uring holds the lock of its ring while a command is issued, runs or is cancelled, above all
//! of these.
//!
//! `Point::admission`, `Device::annex`, `Objects::inner`, `Cr::id` and `Ep::preposted` are taken in
//! `rdma_cm`'s worker, which all connections of the host share. So no thread waits for
//! `Evd::consumer` under these locks, or does work by the length of an EVD. And no memory is
//! allocated with flags that charge a cgroup and may wait: a cgroup at its limit would block all
//! other users. No queue pair is created under them.
//!
//! Two locks of one kind are held at once in one case only: the handler mutexes of a listener and
//! of its new id. A handoff takes the admission lock of the request's new service point. Under it,
//! the handoff locks the table that the request leaves and then, after it has released that one,
//! the table that the request enters. It takes no handler mutex, because no event of a waiting
//! request is handled.
//!
//! Values that a lock protects are dropped after the lock is released: the drop of an id waits for
//! its handlers, and the drop of a QP for its users. The exceptions are `Point::listener`,
//! `ListenAddress::shared`, `Ep::old_qp`, `Rmr::state`, `Lmr::backing` and `FastLmr::dropped`:
//! other threads take them to wait for the drop. No thread waits for `rdma_cm` or for a device
//! while it holds `Evd::consumer`: see `ep/effects.rs`.
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
pub(crate) mod rmr;
pub(crate) mod srq;
