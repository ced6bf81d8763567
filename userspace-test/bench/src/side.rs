// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Servers and clients of a measurement.

use anyhow::{bail, ensure, Context, Result};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// kDAPL, or the program that it is compared with.
#[derive(Clone, Copy)]
pub enum Side {
    Ours,
    Peer,
}

/// Measures both sides: kDAPL, and the program that it is compared with.
pub fn both(measure: impl Fn(Side) -> Result<f64>) -> Result<(f64, f64)> {
    let ours = measure(Side::Ours).context("with kDAPL")?;
    let peers = measure(Side::Peer).context("with the program beside kDAPL")?;
    Ok((ours, peers))
}

/// A running server, killed on drop.
pub struct Server(Child);

impl Server {
    /// Starts a server and waits until it prints a line.
    pub fn start(line: &str) -> Result<Self> {
        let mut child = command(line)?
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start '{line}'"))?;
        let output = child.stdout.take().context("no pipe")?;
        let server = Self(child);
        let mut output = BufReader::new(output);
        ensure!(output.read_line(&mut String::new())? > 0, "'{line}' ended early");
        // Discard further output, so that the server cannot block on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok(server)
    }

    /// Waits for the server to exit successfully.
    pub fn ends(mut self) -> Result<()> {
        let status = self.0.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running client whose output is discarded. Killed on drop.
pub struct Client(Child);

impl Client {
    pub fn start(line: &str) -> Result<Self> {
        let child = command(line)?.stdout(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| format!("cannot start '{line}'"))?))
    }

    /// Returns the id of its only thread.
    pub fn id(&self) -> i32 {
        self.0.id() as i32
    }

    /// Waits for the client to exit successfully.
    pub fn ends(mut self) -> Result<()> {
        let status = self.0.wait()?;
        ensure!(status.success(), "the client ended with {status}");
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a client until it exits, and parses its JSON output.
pub fn client<T: DeserializeOwned>(line: &str) -> Result<T> {
    serde_json::from_str(&text(line)?).with_context(|| format!("output of '{line}'"))
}

/// Runs a client until it exits, and returns its output.
pub fn text(line: &str) -> Result<String> {
    let output = command(line)?
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start '{line}'"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "'{line}' ended with {}: {text}", output.status);
    Ok(text)
}

fn command(line: &str) -> Result<Command> {
    let mut words = line.split_whitespace();
    let Some(program) = words.next() else { bail!("an empty command") };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    Ok(command)
}
