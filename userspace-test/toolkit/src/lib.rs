// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What `kdapltest` and `kdapl-bmi` have in common: output, signals, progress and figures.

// They panic when a write fails.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod histogram;
pub mod limit;
pub mod output;
pub mod pages;
pub mod plot;
pub mod progress;
pub mod report;
pub mod status;
pub mod stop;
pub mod switches;
