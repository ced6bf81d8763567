// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Programs of the documents: `example.c`, `hello.rs` and `message.c` of `docs/samples`.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::machine::count_of;
use crate::plain::Plain;
use anyhow::{ensure, Result};
use std::process::Command;

tests! {
    readme_program, 60,
        "The Rust program of README.md prints the events that README.md shows, on both sides";
    readme_c_program, 60,
        "The C program of README.md exchanges a word with another one and with the program in Rust";
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

fn readme_c_program(context: &Context) -> Result<()> {
    if context.server_address().is_ipv6() {
        return skip("the program supports IPv4 addresses only");
    }
    refuses(context, "kdapl-message", &[], "usage: ")?;
    let malformed = [context.client.device.as_str(), "10.7.0"];
    refuses(context, "kdapl-message", &malformed, "10.7.0 is not an IPv4 address")?;
    refuses(context, "kdapl-message", &["nothing0"], "dat_ia_open(")?;
    both_sides(context, "kdapl-message", &[], &["hello"])?;
    if context.client.is_iwarp() {
        // README.md shows private data padded as by RoCE.
        return Ok(());
    }
    let connects = documented(README, CONNECTS);
    two_programs(context, ["kdapl-hello", "kdapl-message"], &connects, &["hello"])
}

/// Checks that a program fails with these arguments, and says why.
fn refuses(context: &Context, program: &str, arguments: &[&str], reason: &str) -> Result<()> {
    let run = || Command::new(program).args(arguments).output();
    let output = context.client.inside(run)??;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && text.contains(reason), "{}: {text}", output.status);
    Ok(())
}

/// Runs a program on both sides and compares its output.
fn both_sides(context: &Context, program: &str, connects: &[&str], serves: &[&str]) -> Result<()> {
    two_programs(context, [program, program], connects, serves)
}

/// Runs the program that connects and the one that serves, and compares their output.
fn two_programs(
    context: &Context,
    [caller, listener]: [&str; 2],
    connects: &[&str],
    serves: &[&str],
) -> Result<()> {
    let mut server = Plain::start(&context.server, listener, &[&context.server.device])?;
    context.until("the program listens", || Ok(count_of("psp")? > 0))?;
    let address = context.server_address().to_string();
    let arguments = [context.client.device.as_str(), &address];
    let mut client = Plain::start(&context.client, caller, &arguments)?;
    for (plain, lines) in [(&mut client, connects), (&mut server, serves)] {
        lines.iter().try_for_each(|line| plain.says(line))?;
    }
    client.succeeds()?;
    server.succeeds()
}
