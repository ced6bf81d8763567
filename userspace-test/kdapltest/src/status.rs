// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Exit status of the program, and the report of its error. `--help` lists the statuses.

use crate::cli::{Cli, Command};
use crate::device::NoDevice;
use crate::output::{self, complain, Unwritten};
use crate::stop::{self, Stopped};
use anyhow::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::process::ExitCode;

const FAILED: u8 = 1;
const NO_DEVICE: u8 = 3;
/// Status that a shell reports for a process that SIGPIPE has ended.
const CLOSED_PIPE: u8 = 141;
/// Added to the number of a signal.
const SIGNALLED: u8 = 128;

/// An error with `--json`.
#[derive(Deserialize, JsonSchema, Serialize)]
pub struct Report {
    command: String,
    version: String,
    pub error: String,
    exit_status: u8,
}

/// Reports the end of a command. Returns its exit status.
pub fn report(cli: &Cli, outcome: Result<()>) -> ExitCode {
    let endless = matches!(&cli.command, Command::Server(args) if args.limit().is_none());
    let stopped = stop::signal().filter(|_| !endless);
    let (status, error) = match outcome {
        Ok(()) => match stopped {
            Some(signal) => {
                complain(format!("kdapltest: {Stopped}"));
                return (SIGNALLED + signal as u8).into();
            }
            None => return ExitCode::SUCCESS,
        },
        Err(error) => (status_of(&error), error),
    };
    if status == CLOSED_PIPE {
        return status.into();
    }
    complain(format!("kdapltest: {error:#}"));
    // The list of devices was printed, and is empty.
    let listed = matches!(cli.command, Command::Devices) && status == NO_DEVICE;
    if cli.json && !listed && !error.is::<Unwritten>() {
        let command = cli.command.name().into();
        let version = env!("CARGO_PKG_VERSION").into();
        let error = format!("{error:#}");
        // Ignore a failed write: the error was reported above.
        let _ = output::json(&Report { command, version, error, exit_status: status });
    }
    status.into()
}

fn status_of(error: &Error) -> u8 {
    if let Some(unwritten) = error.downcast_ref::<Unwritten>() {
        return if unwritten.is_closed_pipe() { CLOSED_PIPE } else { FAILED };
    }
    match stop::signal() {
        Some(signal) if error.is::<Stopped>() => SIGNALLED + signal as u8,
        _ if error.is::<NoDevice>() => NO_DEVICE,
        _ => FAILED,
    }
}

/// Prints what clap has to say: the help, the version, or an error in the arguments.
pub fn of_message(message: &clap::Error) -> ExitCode {
    let printed = message.print().and_then(|()| std::io::stdout().flush());
    if message.use_stderr() {
        return (message.exit_code() as u8).into();
    }
    match printed.map_err(Unwritten::from) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => CLOSED_PIPE.into(),
        Err(error) => {
            complain(format!("kdapltest: {error}"));
            FAILED.into()
        }
    }
}
