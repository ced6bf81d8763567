// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests of `kdapl_nvmet.ko` with the stock host `nvme-rdma`, and of `kdapl_nvme.ko` (`host`) with
//! the stock target and ours. They need Debian's kernel and a guest with its NVMe modules.

pub mod connect;
pub mod ends;
pub mod host;
pub mod host_ends;
pub mod host_hostile;
pub mod host_io;
pub mod host_link;
pub mod hostile;
pub mod io;
pub mod link;
mod load;
