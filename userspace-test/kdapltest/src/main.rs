// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest`: tests and measures data transfer through `/dev/kdapl`.

// They panic when a write fails.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bandwidth;
mod cli;
mod client;
mod connect;
mod demo;
mod device;
mod devices;
mod pattern;
mod ping;
mod protocol;
mod record;
mod schema;
mod server;
mod side;
mod stat;
mod status;
mod stream;
mod transaction;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};
use cli::{Cli, Command, CompletionsArgs, ManArgs};
use std::process::ExitCode;
use toolkit::{output, stop};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => return status::of_message(&message),
    };
    let outcome = stop::on_signals().and_then(|()| run(&cli));
    status::report(&cli, outcome)
}

fn run(cli: &Cli) -> Result<()> {
    match &cli.command {
        Command::Devices => devices::run(cli.json),
        Command::Stat(args) => stat::run(args, cli.json),
        Command::Server(args) => server::run(args, cli.json),
        Command::Ping(args) => ping::run(args, cli.json),
        Command::Bandwidth(args) => bandwidth::run(args, cli.json),
        Command::Connect(args) => connect::run(args, cli.json),
        Command::Stream(args) => stream::run(args, cli.json),
        Command::Transaction(args) => transaction::run(args, cli.json),
        Command::Demo(args) => demo::run(args, cli.json),
        Command::Completions(args) => completions(args),
        Command::Man(args) => man(args),
        Command::Schema => schema::run(),
    }
}

fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kdapltest", &mut script);
    output::say(String::from_utf8_lossy(&script).trim_end())
}

/// Writes a page for `kdapltest` and for each of its commands.
fn man(args: &ManArgs) -> Result<()> {
    let folder = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("cannot create {folder}"))?;
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .with_context(|| format!("cannot write the pages to {folder}"))
}
