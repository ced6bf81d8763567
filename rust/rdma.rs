// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Safe wrappers of `ib_core` and `rdma_cm`. This layer has no knowledge of DAT (Direct Access
//! Transport).
//!
//! A wrapper owns its C object and destroys it when dropped. It holds an [`Arc`] of each object
//! that the C object depends on, so the order of destruction is right whatever the order of drops:
//!
//! ```text
//!   Qp ---> Srq
//!    |        |
//!    +----> Pd -----+
//!    \----> Cq -----+--> Device <--- the ib_client, until the device is removed
//!   FastMr ---> Umem ---------> Device
//!   Mr, FastMr, KernelMemory, DmaPages ---> Pd
//!   KernelMemory ---> Device
//!   CmId ---> Device, and over iWARP Qp
//!   Registrar ---> Qp, Cq
//! ```
//!
//! The destruction of a [`cm::CmId`] may be deferred. If the peer has not answered a disconnect,
//! the ID goes to the device's [`cm::LingeringIds`] list. It is destroyed there when the peer
//! answers or its time-out of half a minute expires. Over iWARP an ID that waits for the outcome of
//! a connect or an accept goes to the same list, and keeps its [`qp::Qp`].
//!
//! When a device is removed, `ib_core` calls [`client`]. It notifies every [`device::Watcher`],
//! which drops its wrappers, and then waits until the last wrapper is dropped.
//!
//! [`Arc`]: kernel::sync::Arc

pub(crate) mod addr;
pub(crate) mod charge;
pub(crate) mod client;
pub(crate) mod cm;
pub(crate) mod cq;
pub(crate) mod device;
mod dma_list;
pub(crate) mod dma_pages;
pub(crate) mod driver;
pub(crate) mod fast_mr;
pub(crate) mod kernel_memory;
mod leak;
pub(crate) mod mr;
pub(crate) mod pd;
mod port;
pub(crate) mod port_address;
pub(crate) mod qp;
pub(crate) mod registrar;
mod signals;
pub(crate) mod srq;
pub(crate) mod umem;
pub(crate) mod wc;
pub(crate) mod wr;
