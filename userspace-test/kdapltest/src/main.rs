// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest`: tries out, measures and verifies data transfer through `/dev/kdapl`.

mod bandwidth;
mod cli;
mod client;
mod connect;
mod demo;
mod devices;
mod pattern;
mod ping;
mod progress;
mod protocol;
mod record;
mod report;
mod server;
mod side;
mod stop;
mod stream;
mod switches;
mod transaction;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    stop::on_ctrl_c();
    let outcome = match &cli.command {
        Command::Devices => devices::run(cli.json),
        Command::Server(args) => server::run(args, cli.json),
        Command::Ping(args) => ping::run(args, cli.json),
        Command::Bandwidth(args) => bandwidth::run(args, cli.json),
        Command::Connect(args) => connect::run(args, cli.json),
        Command::Stream(args) => stream::run(args, cli.json),
        Command::Transaction(args) => transaction::run(args, cli.json),
        Command::Demo(args) => demo::run(args, cli.json),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if stop::requested() => {
            eprintln!("kdapltest: stopped");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("kdapltest: {error:#}");
            ExitCode::FAILURE
        }
    }
}
