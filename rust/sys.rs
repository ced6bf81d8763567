// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the `kernel` crate lacks and DAT needs, written as if it were to go there.
//!
//! Names and call shapes follow upstream where upstream has some, so that a later kernel's own
//! abstraction can take the place of ours.

pub(crate) mod census;
pub(crate) mod cred;
pub(crate) mod debugfs;
pub(crate) mod eventfd;
pub(crate) mod lock;
pub(crate) mod memcg;
pub(crate) mod net;
pub(crate) mod poll;
pub(crate) mod random;
pub(crate) mod task;
pub(crate) mod thread;
pub(crate) mod trace;
pub(crate) mod uapi;
pub(crate) mod user;
pub(crate) mod wait;
pub(crate) mod workqueue;
