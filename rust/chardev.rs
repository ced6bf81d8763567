// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `/dev/kdapl`: DAT for user programs.
//!
//! Converts the messages of `include/uapi/rdma/kdapl.h` and calls [`dat`](crate::dat), which
//! implements the rules of DAT.

mod client;
pub(crate) mod fops;
mod ioctl;
mod promises;
