// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! DAT 2.0 for C programs over `/dev/kdapl`: the calls of `include/dat2/udat.h`.
//!
//! ```text
//!   libkdat: exports dat_*()            libkdapl_provider: a table of functions for libdat2
//!            \                          /
//!             calls.rs: every call by its name in the header
//!                 |  entry.rs: catches panics, converts errors to DAT_RETURN
//!      ia.rs evd.rs cno.rs ep.rs cr.rs service.rs lmr.rs pz.rs rmr.rs srq.rs extension.rs
//!                 |                one file for each DAT object; no `unsafe`
//!   cell.rs: memory of handles           foreign.rs: memory of the program     libkdapl
//! ```
//!
//! A handle is the address of a [`cell`](cell::Cell), and `libdat2` finds the function table
//! through the first word of the cell. Cells are never unmapped, so that a stale handle can always
//! be detected.
//!
//! The functions here trust the pointers that a C program passes, as those of every C library do.
//! So they are not safe to call from Rust: [`libkdapl`] is the library for Rust.
#![deny(unsafe_code)]
#![allow(missing_docs, reason = "the calls are documented in include/dat2")]

pub mod abi;
pub mod calls;
mod cell;
mod cno;
mod context;
mod cr;
pub mod entry;
mod ep;
mod evd;
mod event;
pub mod extension;
pub mod foreign;
pub mod ia;
mod lmr;
mod object;
pub mod options;
pub mod origin;
mod pz;
mod qualifier;
pub mod ret;
mod rmr;
mod service;
mod srq;
