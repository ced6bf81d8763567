// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `/dev/kdapl`: DAT for user programs. A thin adapter over [`dat`](crate::dat): no rule of DAT is
//! written here.
//!
//! The ABI is `include/uapi/rdma/kdapl.h`.

mod client;
pub(crate) mod fops;
mod ioctl;
