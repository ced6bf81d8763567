// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A provider for `libdat2`: programs written for uDAPL use `/dev/kdapl` without modification.
//!
//! ```text
//!   program --- libdat2 --- registry.rs: loads the provider
//!                       --- provider.rs: a table of 79 functions
//!                               |  open.rs: those that depend on the line of dat.conf
//!                           udat: all calls, which libkdat has, too
//! ```
#![deny(unsafe_code)]

mod open;
mod provider;
mod registry;
