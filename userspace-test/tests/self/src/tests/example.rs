// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Programs of the documents: `example.c`, `hello.rs` and `receive.c` of `docs/samples`.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::machine::count_of;
use crate::plain::Plain;
use anyhow::{ensure, Result};
use std::process::Command;

tests! {
    readme_programs, 60,
        "The programs of README.md, in Rust and C, exchange a word and print what README.md shows";
    readme_arguments, 60, "The programs of README.md say what is wrong with their arguments, and that nobody listens";
    c_program, 60, "The C example of docs/ioctl.md prints the lines that it shows, on both sides";
}

const DOCUMENT: &str = include_str!("../../../../../docs/ioctl.md");
const README: &str = include_str!("../../../../../README.md");

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
    let connects = documented(DOCUMENT, "The side that connects prints");
    let serves = documented(DOCUMENT, "The side that serves prints");
    ensure!(
        connects.len() == 3 && serves.len() == 5,
        "the document has changed: {connects:?} {serves:?}"
    );
    two_programs(context, ["kdapl-example"; 2], &connects, &serves)
}

fn readme_programs(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("README.md shows private data padded as by RoCE");
    }
    let sends = documented(README, "The sender prints");
    ensure!(sends.len() == 3, "README.md has changed: {sends:?}");
    two_programs(context, ["kdapl-hello", "kdapl-receive"], &sends, &["hello"])
}

fn readme_arguments(context: &Context) -> Result<()> {
    let device = context.client.device.as_str();
    refuses(context, "kdapl-hello", &[], "which device?")?;
    refuses(context, "kdapl-hello", &[device], "which address?")?;
    refuses(context, "kdapl-hello", &[device, "10.7.0"], "AddrParseError(Ip)")?;
    let server = context.server_address().to_string();
    refuses(context, "kdapl-hello", &[device, &server], "nobody listens")?;
    refuses(context, "kdapl-receive", &[], "usage: ")?;
    refuses(context, "kdapl-receive", &["nothing0"], "dat_ia_open(")
}

/// Checks that a program fails with these arguments, and says why.
fn refuses(context: &Context, program: &str, arguments: &[&str], reason: &str) -> Result<()> {
    let run = || Command::new(program).args(arguments).output();
    let output = context.client.inside(run)??;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && text.contains(reason), "{}: {text}", output.status);
    Ok(())
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
