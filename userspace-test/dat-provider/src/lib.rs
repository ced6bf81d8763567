// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A provider for `libdat2`: programs written for uDAPL run over `/dev/kdapl`, unchanged.
//!
//! ```text
//!   program --- libdat2 --- provider.rs: a table of 79 functions
//!                               |  entry.rs: no panic leaves, every error is a DAT_RETURN
//!      ia.rs evd.rs cno.rs ep.rs cr.rs service.rs lmr.rs pz.rs rmr.rs srq.rs extension.rs
//!                               |                one noun a file, as in DAT; no `unsafe`
//!   cell.rs: what a handle points to     foreign.rs: memory of the program     libkdapl
//! ```
//!
//! A handle is the address of a [`cell`](cell::Cell): `libdat2` finds the table of functions through its
//! first word. Cells are never given back to the system, so a handle that is stale is told from one that
//! is not, whatever a program does.
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
