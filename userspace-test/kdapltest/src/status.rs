// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Exit status of the program, and the report of its error. `--help` lists the statuses.

use crate::cli::{Cli, Command};
use crate::device::NoDevice;
use anyhow::{Error, Result};
use std::process::ExitCode;
use toolkit::status::Ended;

const NO_DEVICE: u8 = 3;

/// Reports the end of a command. Returns its exit status.
pub fn report(cli: &Cli, outcome: Result<()>) -> ExitCode {
    // The list of devices was printed, and is empty.
    let listed = matches!(cli.command, Command::Devices)
        && outcome.as_ref().is_err_and(|error| error.is::<NoDevice>());
    let ended = Ended {
        program: "kdapltest",
        command: cli.command.name(),
        endless: matches!(&cli.command, Command::Server(args) if args.limit().is_none()),
        json: cli.json && !listed,
        status_of,
    };
    ended.report(outcome)
}

fn status_of(error: &Error) -> Option<u8> {
    error.is::<NoDevice>().then_some(NO_DEVICE)
}
