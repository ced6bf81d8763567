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
mod sweep;
mod threads;
mod transaction;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use std::process::ExitCode;
use toolkit::{pages, stop};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => return toolkit::status::of_message("kdapltest", &message),
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
        Command::Completions(args) => pages::completions(Cli::command(), args),
        Command::Man(args) => pages::man(Cli::command(), args),
        Command::Schema => schema::run(),
    }
}
