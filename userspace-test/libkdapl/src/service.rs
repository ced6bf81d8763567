// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Listening: service points, public, reserved and common.

mod csp;
mod psp;
mod rsp;

pub use csp::{Csp, CspQuery};
pub use psp::{EpCreator, Psp, PspOptions, PspQuery};
pub use rsp::{Rsp, RspQuery};
