// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Runs programs as an unprivileged user, each in its own processes.
//!
//! ```text
//!   the fuzzer (root): removes the device and sets limits on request of the program
//!     zygote (nobody): forks A, kills and reaps its remaining processes
//!       process A: lanes 0 to 3; runs further programs, until one forks or ends it
//!       process B: lanes 4 and 5, forked by A
//! ```
//! Both processes are killed by a timer if a program takes too long, wherever they are.
#![allow(unsafe_code)]

mod calls;
mod errand;
pub mod mapped;
pub mod memory;
mod process;
mod ring;
mod shared;
mod zygote;

pub use shared::Answers;
pub use zygote::{Executor, Outcome};
