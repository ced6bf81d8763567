// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Service points: Public, Reserved and Common ones.

mod csp;
mod psp;
mod rsp;

pub use csp::{Csp, CspQuery};
pub use psp::{EpCreator, Psp, PspOptions, PspQuery};
pub use rsp::{Rsp, RspQuery};
