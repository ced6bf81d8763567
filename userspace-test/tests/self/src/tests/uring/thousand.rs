// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The example of docs/ioctl.md.

use super::super::tests;
use crate::context::Context;
use anyhow::Result;

tests! {
}
#[expect(unused)] fn f(_: &Context) -> Result<()> { Ok(()) }
