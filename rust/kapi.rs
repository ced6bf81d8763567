// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT for consumers in the kernel: the symbols of `include/rdma/kdat.h` and
//! `kdat_ib_extensions.h`. A thin adapter over [`dat`](crate::dat), as `/dev/kdapl` is: no rule of DAT is written here.
//!
//! Where a pointer comes from C is said once, in [`export`]; what the header obliges a caller to is what
//! is relied on there. A handle is found in two steps: the adapter that it names, and the object in that
//! adapter's table.

mod cno;
mod connect;
mod dto;
mod ep;
mod evd;
mod event;
mod export;
mod extension;
mod ia;
mod memory;
pub(crate) mod registry;
mod request;
mod service;
mod upcall;
