// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The example of the document of the ioctl interface, which is `docs/samples/example.c`.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::machine::count_of;
use crate::plain::Plain;
use anyhow::{ensure, Result};

tests! {
    example, 60, "The C example of docs/ioctl.md prints what it says there, on both sides";
}

const DOCUMENT: &str = include_str!("../../../../docs/ioctl.md");

/// The lines that the document says a side prints.
fn documented(side: &str) -> Vec<&'static str> {
    let after = DOCUMENT.split_once(side).map_or("", |(_, after)| after);
    let block = after.split("```").nth(1).unwrap_or("");
    block.lines().skip(1).collect()
}

fn example(context: &Context) -> Result<()> {
    let address = context.server_address();
    if address.is_ipv6() {
        return skip("it knows IPv4 addresses only");
    }
    let (connects, serves) =
        (documented("The side that connects prints:"), documented("The side that serves prints:"));
    ensure!(connects.len() == 3 && serves.len() == 5, "another document: {connects:?} {serves:?}");
    let mut server = Plain::start(&context.server, "kdapl-example", &[&context.server.device])?;
    context.until("it listens", || Ok(count_of("psp")? > 0))?;
    let arguments = [context.client.device.as_str(), &address.to_string()];
    let mut client = Plain::start(&context.client, "kdapl-example", &arguments)?;
    for (plain, lines) in [(&mut client, connects), (&mut server, serves)] {
        lines.iter().try_for_each(|line| plain.says(line))?;
    }
    client.succeeds()?;
    server.succeeds()
}
