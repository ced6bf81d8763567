// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Exit statuses, and the report of an error.

use crate::output::{self, complain, Unwritten};
use crate::stop::{self, Stopped};
use anyhow::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::process::ExitCode;

/// Status after an error.
pub const FAILED: u8 = 1;
/// Status that a shell reports for a process that SIGPIPE has ended.
const CLOSED_PIPE: u8 = 141;
/// Added to the number of a signal.
const SIGNALLED: u8 = 128;

/// An error with `--json`.
#[derive(Deserialize, JsonSchema, Serialize)]
pub struct Report {
    command: String,
    version: String,
    /// Text of the error.
    pub error: String,
    exit_status: u8,
}

/// A command that has ended.
pub struct Ended<'a> {
    /// Name of the program.
    pub program: &'a str,
    /// Name of the command.
    pub command: &'a str,
    /// The command has no end but a signal.
    pub endless: bool,
    /// Errors are printed as JSON too.
    pub json: bool,
    /// Returns the status of an error of the program's own.
    pub status_of: fn(&Error) -> Option<u8>,
}

impl Ended<'_> {
    /// Reports the end of a command. Returns its exit status.
    #[must_use]
    pub fn report(&self, outcome: Result<()>) -> ExitCode {
        let stopped = stop::signal().filter(|_| !self.endless);
        let (status, error) = match outcome {
            Ok(()) => match stopped {
                Some(signal) => {
                    complain(format!("{}: {Stopped}", self.program));
                    return (SIGNALLED + signal as u8).into();
                }
                None => return ExitCode::SUCCESS,
            },
            Err(error) => (self.status(&error), error),
        };
        if status != CLOSED_PIPE {
            self.complain_of(&error, status);
        }
        status.into()
    }

    fn complain_of(&self, error: &Error, status: u8) {
        complain(format!("{}: {error:#}", self.program));
        if self.json && !error.is::<Unwritten>() {
            let report = Report {
                command: self.command.into(),
                version: env!("CARGO_PKG_VERSION").into(),
                error: format!("{error:#}"),
                exit_status: status,
            };
            // Ignore a failed write: the error was reported above.
            let _ = output::json(&report);
        }
    }

    fn status(&self, error: &Error) -> u8 {
        if let Some(unwritten) = error.downcast_ref::<Unwritten>() {
            return if unwritten.is_closed_pipe() { CLOSED_PIPE } else { FAILED };
        }
        match stop::signal() {
            Some(signal) if error.is::<Stopped>() => SIGNALLED + signal as u8,
            _ => (self.status_of)(error).unwrap_or(FAILED),
        }
    }
}

/// Prints what clap has to say: the help, the version, or an error in the arguments. Returns the
/// exit status.
#[must_use]
pub fn of_message(program: &str, message: &clap::Error) -> ExitCode {
    let printed = message.print().and_then(|()| std::io::stdout().flush());
    if message.use_stderr() {
        return (message.exit_code() as u8).into();
    }
    match printed.map_err(Unwritten::from) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => CLOSED_PIPE.into(),
        Err(error) => {
            complain(format!("{program}: {error}"));
            FAILED.into()
        }
    }
}
