// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The protection matrix: who may do what through which context. Each cell of each table is tried.

mod access;
mod local;
mod posted;
mod remote;
mod stage;
mod zero_based;

pub use stage::stranger;

use super::tests;
use crate::context::Context;
use anyhow::Result;
use stage::Stage;

tests! {
    #[Long, Transport]
    peers_and_lmrs, 300,
        "A peer reaches an LMR as its privileges and its PZ say, and no other connection suffers";
    #[Long, Transport]
    peers_and_rmrs, 300,
        "A peer reaches an RMR as its bind and its PZ say, and no other connection suffers";
    #[Long, Transport]
    zero_based, 120,
        "The same of a zero-based LMR: neither the last address of all nor that of the process";
    #[Transport]
    own_side, 120,
        "A post reaches an LMR or RMR as privileges and PZ say, or is refused and moves nothing";
    #[Transport]
    freed_while_posted, 60,
        "An LMR that is freed under a posted DTO breaks that connection only, and no byte moves";
}

fn peers_and_lmrs(context: &Context) -> Result<()> {
    let stage = Stage::new(context)?;
    access::every_cell(&stage, remote::LMRS)?;
    stage.end()
}

fn peers_and_rmrs(context: &Context) -> Result<()> {
    let stage = Stage::new(context)?;
    access::every_cell(&stage, remote::RMRS)?;
    stage.end()
}

fn zero_based(context: &Context) -> Result<()> {
    let stage = Stage::new(context)?;
    zero_based::every_cell(&stage)?;
    stage.end()
}

fn own_side(context: &Context) -> Result<()> {
    let stage = Stage::new(context)?;
    local::every_row(&stage, &[local::LMRS, local::RMRS])?;
    stage.end()
}

fn freed_while_posted(context: &Context) -> Result<()> {
    let stage = Stage::new(context)?;
    posted::freed(&stage)?;
    stage.end()
}
