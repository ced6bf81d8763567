// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bmi`: serves and measures messages of BMI over `/dev/kdapl`.

// They panic when a write fails.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bandwidth;
mod cli;
mod client;
mod pattern;
mod ping;
mod protocol;
mod schema;
mod serve;
mod service;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use std::process::ExitCode;
use toolkit::status::{self, Ended};
use toolkit::{pages, stop};

const NAME: &str = "kdapl-bmi";
const NO_DEVICE: u8 = 3;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => return status::of_message(NAME, &message),
    };
    let outcome = stop::on_signals().and_then(|()| run(&cli));
    let ended = Ended {
        program: NAME,
        command: cli.command.name(),
        endless: matches!(cli.command, Command::Serve(_)),
        json: cli.json,
        status_of: |error| no_device(error).then_some(NO_DEVICE),
    };
    ended.report(outcome)
}

fn no_device(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(libkdapl_bmi::Error::NoDevice))
}

fn run(cli: &Cli) -> Result<()> {
    match &cli.command {
        Command::Serve(args) => serve::run(args, cli.json),
        Command::Ping(args) => ping::run(args, cli.json),
        Command::Bandwidth(args) => bandwidth::run(args, cli.json),
        Command::Pattern(args) => pattern::run(args, cli.json),
        Command::Completions(args) => pages::completions(Cli::command(), args),
        Command::Man(args) => pages::man(Cli::command(), args),
        Command::Schema => schema::run(),
    }
}
