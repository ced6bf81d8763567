// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Safe wrappers of `ib_core` and `rdma_cm`. Nothing here knows of DAT.
//!
//! A wrapper owns its C object and destroys it when dropped; it holds an [`Arc`] of what the object
//! stands on, so that the order of destruction is right whatever the order of drops:
//!
//! ```text
//!   Qp ---> Pd -----+
//!    \----> Cq -----+--> Device <--- the ib_client, until the device goes
//!   Mr, KernelMemory ---> Pd
//!                   |
//!   CmId -----------+
//! ```
//!
//! A [`cm::CmId`] whose peer has not answered a disconnect is not destroyed at once: it goes to the
//! device's [`cm::Lingering`] ids, and stays for half a minute at most. One over iWARP that waits for the
//! outcome of a connect or an accept goes there, too, and keeps its [`qp::Qp`].
//!
//! When a device is removed, `ib_core` calls [`client`], which tells every [`device::Watcher`] to
//! let go and then waits until the last wrapper is gone.
//!
//! [`Arc`]: kernel::sync::Arc

pub(crate) mod addr;
pub(crate) mod charge;
pub(crate) mod client;
pub(crate) mod cm;
pub(crate) mod cq;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod kernel_memory;
mod leak;
pub(crate) mod mr;
pub(crate) mod pd;
pub(crate) mod qp;
pub(crate) mod wc;
pub(crate) mod wr;
