// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `libkdat`: DAT 2.0 for C programs over `/dev/kdapl`.
//!
//! ```text
//!   program --- dat_*() of include/dat2/udat.h
//!                  |  this crate: exports; open.rs, registry.rs, extension.rs: calls that need no
//!                  |  registry of providers here; names.rs: the names of codes
//!               udat: all other calls, which the provider for libdat2 has, too
//! ```
//!
//! An adapter is opened by the name of its device, `rxe0`, and no configuration is needed.
#![allow(unsafe_code, reason = "a function with a C name is declared so")]
#![allow(missing_docs, reason = "the calls are documented in include/dat2")]

mod extension;
mod names;
mod open;
mod registry;

use udat::abi::*;

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
