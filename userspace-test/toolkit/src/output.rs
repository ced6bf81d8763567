// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Standard output and standard error output. A failed write is an error of the command, not a
//! panic as with `println!`.

use anyhow::Result;
use serde::Serialize;
use std::fmt::{self, Display};
use std::io::{self, Write};

/// Error of a write to the standard output.
#[derive(Debug)]
pub struct Unwritten(io::Error);

impl Unwritten {
    /// Returns whether the reader has closed the pipe, as `head` does.
    pub fn is_closed_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the standard output: {}", self.0)
    }
}

impl std::error::Error for Unwritten {}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

/// Writes a line to the standard output.
pub fn say(text: impl Display) -> Result<()> {
    let line = format!("{text}\n");
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(Unwritten)?;
    Ok(())
}

/// Writes a value as one line of JSON to the standard output.
pub fn json(value: &impl Serialize) -> Result<()> {
    say(serde_json::to_string(value)?)
}

/// Writes a line to the standard error output. A failure cannot be reported.
pub fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
