// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! kDAPL: the Direct Access Programming Library (DAPL) in the kernel. It implements the Direct
//! Access Transport (DAT) interface on the kernel's own `ib_core` and `rdma_cm`.
//!
//! ```text
//!     chardev   kapi       /dev/kdapl, and the symbols for consumers in the kernel
//!          \   /
//!           dat            the DAT objects; no `unsafe`
//!          /   \
//!      model   rdma        pure rules        safe wrappers of ib_core and rdma_cm
//!                |
//!               sys        kernel interfaces that the kernel crate lacks
//!                |
//!         kdapl_bindings   bindgen output and C helpers
//! ```
//!
//! Arrows point down only. `rdma` and `sys` use `model`, too. `docs/architecture.md` explains the
//! design. The lock order is in [`dat`].

use kernel::{
    prelude::*,
    InPlaceModule, //
};

mod chardev;
mod compat;
mod dat;
mod kapi;
mod model;
mod rdma;
mod sys;

use sys::debugfs;

module! {
    type: Kdapl,
    name: "kdapl",
    authors: ["The kDAPL authors"],
    description: "DAT/DAPL: Direct Access Transport over ib_core and rdma_cm",
    license: "Dual BSD/GPL",
    params: {
        unsafe_drivers: i32 {
            default: 0,
            description: "1: all users may open devices that peers can abuse (docs/drivers.md)",
        },
        peer_timeout_ms: u32 {
            default: 30_000,
            description: "Milliseconds without an answer before a connection is broken; 0: never",
        },
        keepalive_ms: u32 {
            default: 0,
            description: "Milliseconds of silence before an idle connection is broken; 0: never",
        },
    },
}

/// The loaded module.
///
/// Fields are dropped in declaration order: first the interfaces that admit callers, then the
/// devices, then the workqueues.
#[pin_data]
struct Kdapl {
    #[pin]
    chardev: chardev::fops::DeviceNode,
    /// The IAs of files that were released may still be open. This waits for their closes.
    release_queue: sys::workqueue::OwnedQueue,
    adapters: kapi::registry::ConsumerApi,
    objects: debugfs::File<Census>,
    trace_entries: debugfs::File<dat::ep::TraceEntries>,
    users: debugfs::File<Users>,
    debugfs: debugfs::Folder,
    #[pin]
    client: rdma::client::IbClient,
    call_queue: sys::workqueue::OwnedQueue,
    upcall_queue: sys::workqueue::OwnedQueue,
    bh_upcall_queue: sys::workqueue::OwnedQueue,
    period_queue: sys::workqueue::OwnedQueue,
    queue: sys::workqueue::OwnedQueue,
    accounts: sys::user::Registration,
    listing: sys::adapters::AdapterList,
}

/// Contents of `debugfs/kdapl/objects`.
struct Census;

impl debugfs::Show for Census {
    fn show(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        sys::census::write(f)
    }
}

/// Contents of `debugfs/kdapl/users`.
struct Users;

impl debugfs::Show for Users {
    fn show(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        sys::user::write(f)
    }
}

impl InPlaceModule for Kdapl {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            let accounts = sys::user::Registration::new();
            let listing = sys::adapters::AdapterList::new();
            let queue = sys::workqueue::OwnedQueue::new(c"kdapl")?;
            let period_queue = sys::workqueue::OwnedQueue::for_periods(c"kdapl-periods")?;
            let release_queue = sys::workqueue::OwnedQueue::for_releases(c"kdapl-releases")?;
            let upcall_queue = sys::workqueue::OwnedQueue::for_upcalls(c"kdapl-upcalls")?;
            let bh_upcall_queue = sys::workqueue::OwnedQueue::for_bh_upcalls(c"kdapl-bh-upcalls")?;
            let call_queue = sys::workqueue::OwnedQueue::for_calls(c"kdapl-calls")?;
            Ok(try_pin_init!(Self {
                // Initialised fields are dropped in reverse order if a later one fails: the folder
                // must outlive its files.
                debugfs: debugfs::Folder::new(c"kdapl"),
                client <- rdma::client::IbClient::new(),
                objects: debugfs::File::new(c"objects", Census)?,
                users: debugfs::File::new(c"users", Users)?,
                trace_entries: debugfs::File::new_writable(
                    c"trace_entries",
                    dat::ep::TraceEntries
                )?,
                adapters: kapi::registry::ConsumerApi::new()?,
                chardev <- chardev::fops::DeviceNode::new(),
                release_queue,
                call_queue,
                upcall_queue,
                bh_upcall_queue,
                period_queue,
                queue,
                accounts,
                listing,
            }? Error))
        })
    }
}
