// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Programs of random calls to `/dev/kdapl`.
//!
//! ```text
//!   kinds    what a field is for           abi       calls and messages, from the header
//!   program  calls with arguments          text      a program as a person reads it
//!   random   new programs, and changes     run       processes and threads that run a program
//!   coverage which branches have run       console   what the kernel complains of
//!   host     the device and its namespace  past      the programs before a crash
//! ```
//! The search itself, on LibAFL, is the program in `engine/`, which is built when it is wanted.

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
