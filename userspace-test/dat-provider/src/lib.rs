// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A provider for `libdat2`: programs written for uDAPL use `/dev/kdapl` without modification.
//!
//! ```text
//!   program --- libdat2 --- provider.rs: a table of 79 functions
//!                               |  entry.rs: catches panics, converts errors to DAT_RETURN
//!      ia.rs evd.rs cno.rs ep.rs cr.rs service.rs lmr.rs pz.rs rmr.rs srq.rs extension.rs
//!                               |                one file for each DAT object; no `unsafe`
//!   cell.rs: memory of handles           foreign.rs: memory of the program     libkdapl
//! ```
//!
//! A handle is the address of a [`cell`](cell::Cell). `libdat2` finds the function table through
//! the first word of the cell. Cells are never unmapped, so that a stale handle can always be
//! detected.
#![deny(unsafe_code)]

mod abi;
mod cell;
mod cno;
mod context;
mod cr;
mod entry;
mod ep;
mod evd;
mod event;
mod extension;
mod foreign;
mod ia;
mod lmr;
mod object;
mod options;
mod provider;
mod pz;
mod qualifier;
mod registry;
mod ret;
mod rmr;
mod service;
mod srq;
