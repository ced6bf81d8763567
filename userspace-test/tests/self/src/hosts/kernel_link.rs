// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Two hosts, of which one is the network namespace of the start: consumers in the kernel open
//! adapters there only.

use super::{Count, Host, Layout, Plan};
use crate::context::Context;
use crate::harness::skip;
use anyhow::Result;

const KERNEL: Plan = Plan { namespace: None, device: "kdapl_k", netdev: "kdaplK", number: 3 };
const USER: Plan =
    Plan { namespace: Some("kdapl-c"), device: "kdapl_c", netdev: "kdaplC", number: 4 };

/// The hosts, until dropped. The link between them is as that of the run.
pub struct KernelLink {
    /// Host of consumers in the kernel.
    pub kernel: Host,
    /// Host of processes.
    pub user: Host,
    _made: Made,
}

/// What is removed in the end.
struct Made;

impl Drop for Made {
    fn drop(&mut self) {
        KERNEL.clear();
        USER.clear();
    }
}

impl KernelLink {
    /// Skips the test unless it runs with two hosts.
    pub fn new(context: &Context) -> Result<Self> {
        let layout: Layout = context.settings.layout;
        if layout.hosts != Count::Two {
            return skip("only between two hosts");
        }
        // From here on, a failure removes all that was made.
        let made = Made;
        KERNEL.clear();
        USER.clear();
        layout.link([&KERNEL, &USER])?;
        Ok(Self { kernel: KERNEL.host(layout)?, user: USER.host(layout)?, _made: made })
    }
}
