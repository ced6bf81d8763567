// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Kernel interfaces that the `kernel` crate lacks and this module needs.
//!
//! They are written as if for the `kernel` crate. Names and signatures follow its own where these
//! exist, so that the abstraction of a later kernel can replace the one here.

pub(crate) mod adapters;
pub(crate) mod census;
pub(crate) mod cred;
pub(crate) mod debugfs;
pub(crate) mod eventfd;
pub(crate) mod fops;
pub(crate) mod jiffies;
pub(crate) mod kvvec;
pub(crate) mod lock;
pub(crate) mod mapped_memory;
pub(crate) mod memcg;
pub(crate) mod net;
pub(crate) mod percpu_period;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod rcu;
pub(crate) mod record_file;
pub(crate) mod task;
pub(crate) mod thread;
pub(crate) mod trace;
pub(crate) mod uapi;
pub(crate) mod uring;
pub(crate) mod user;
pub(crate) mod wait;
pub(crate) mod worker_call;
pub(crate) mod workqueue;
