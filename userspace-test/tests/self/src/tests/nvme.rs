// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests of `kdapl_nvmet.ko` with the stock host `nvme-rdma`, and of `kdapl_nvme.ko` (`host`) with
//! the stock target and ours. They need Debian's kernel and a guest with its NVMe modules.

use crate::context::Context;
use crate::machine;
use crate::nvme::{Pair, PortSettings, Target};
use anyhow::{Context as _, Result};

pub mod connect;
pub mod ends;
mod fake;
mod fake_data;
pub mod host;
pub mod host_ends;
pub mod host_hostile;
pub mod host_io;
pub mod host_link;
pub mod host_recovery;
pub mod host_unanswered;
pub mod hostile;
pub mod io;
pub mod link;
mod load;
mod raw;

/// The stock host with our target.
const STOCK_HOST: [Pair; 1] = [Pair::StockHost];

/// Calls a test with a target, and a host, of each of these kinds.
fn each(
    context: &Context,
    pairs: &[Pair],
    settings: PortSettings,
    test: impl Fn(&Target) -> Result<()>,
) -> Result<()> {
    for &pair in pairs {
        let target = Target::of(context, pair, settings)?;
        test(&target).with_context(|| format!("with {pair:?}"))?;
        drop(target);
        machine::no_objects_left(1.0).with_context(|| format!("after {pair:?}"))?;
    }
    Ok(())
}
