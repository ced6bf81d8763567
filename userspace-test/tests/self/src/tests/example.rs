// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Programs of the documents: `docs/samples/example.c` and `docs/samples/hello.rs`.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::machine::count_of;
use crate::plain::Plain;
use anyhow::{ensure, Result};

tests! {
    readme_program, 60,
        "The Rust program of README.md prints the events that README.md shows, on both sides";
    c_program, 60, "The C example of docs/ioctl.md prints the lines that it shows, on both sides";
}

const DOCUMENT: &str = include_str!("../../../../../docs/ioctl.md");
const README: &str = include_str!("../../../../../README.md");

const CONNECTS: &str = "The side that connects prints";
const SERVES: &str = "The side that serves prints";

/// Returns the lines that a side prints according to a document.
fn documented(document: &'static str, side: &str) -> Vec<&'static str> {
    let after = document.split_once(side).map_or("", |(_, after)| after);
    let block = after.split("```").nth(1).unwrap_or("");
    block.lines().skip(1).collect()
}

fn c_program(context: &Context) -> Result<()> {
    let address = context.server_address();
    if address.is_ipv6() {
        return skip("the program supports IPv4 addresses only");
    }
    let connects = documented(DOCUMENT, CONNECTS);
    let serves = documented(DOCUMENT, SERVES);
    ensure!(
        connects.len() == 3 && serves.len() == 5,
        "the document has changed: {connects:?} {serves:?}"
    );
    both_sides(context, "kdapl-example", &connects, &serves)
}

fn readme_program(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("README.md shows private data padded as by RoCE");
    }
    let connects = documented(README, CONNECTS);
    let serves = documented(README, SERVES);
    ensure!(
        connects.len() == 3 && serves.len() == 3,
        "the document has changed: {connects:?} {serves:?}"
    );
    both_sides(context, "kdapl-hello", &connects, &serves)
}

/// Runs a program on both sides and compares its output.
fn both_sides(context: &Context, program: &str, connects: &[&str], serves: &[&str]) -> Result<()> {
    let mut server = Plain::start(&context.server, program, &[&context.server.device])?;
    context.until("the program listens", || Ok(count_of("psp")? > 0))?;
    let address = context.server_address().to_string();
    let arguments = [context.client.device.as_str(), &address];
    let mut client = Plain::start(&context.client, program, &arguments)?;
    for (plain, lines) in [(&mut client, connects), (&mut server, serves)] {
        lines.iter().try_for_each(|line| plain.says(line))?;
    }
    client.succeeds()?;
    server.succeeds()
}
