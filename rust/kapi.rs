// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Kernel consumer API: the functions declared in `include/rdma/kdat.h` and
//! `include/rdma/kdat_ib_extensions.h`.
//!
//! Each function converts its arguments and calls [`dat`](crate::dat), as `/dev/kdapl` does. The
//! rules of DAT are implemented there, not here.
//!
//! [`export`] converts pointers from C. Its safety arguments rely on the obligations that the
//! header puts on the caller. A handle is resolved in two steps: first the Interface Adapter (IA)
//! that it names, then the object in that IA's table.

mod address;
mod cno;
mod connect;
mod dto;
mod ep;
mod evd;
mod event;
mod export;
mod extension;
mod fmr;
mod ia;
mod list;
mod memory;
mod private_data;
mod region;
pub(crate) mod registry;
mod request;
mod rmr;
mod service;
mod srq;
mod upcall;
mod waits;
