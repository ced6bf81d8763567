// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Programs of random calls to `/dev/kdapl`.
//!
//! ```text
//!   kinds    use of each field             abi       calls and messages, from the header
//!   program  calls with arguments          text      programs in readable form
//!   random   new programs, and changes     run       processes and threads that run a program
//!   coverage branch coverage               console   complaints of the kernel
//!   host     the device and its namespace  past      the programs before a crash
//! ```
//! The search itself uses LibAFL. It is the separate program in `engine/`.

pub mod abi;
pub mod console;
pub mod coverage;
pub mod host;
pub mod kinds;
pub mod past;
pub mod program;
pub mod random;
pub mod run;
pub mod text;
