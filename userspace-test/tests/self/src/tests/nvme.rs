// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests of `kdapl_nvmet.ko` with the stock host `nvme-rdma`. They need Debian's kernel and a guest
//! with its NVMe modules.

pub mod connect;
pub mod io;
