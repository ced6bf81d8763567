// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A server and a client of one kind, started for one measurement.

use anyhow::{bail, ensure, Context, Result};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// What is measured, and what it is compared with.
#[derive(Clone, Copy)]
pub enum Side {
    Ours,
    Peer,
}

/// Measures both: ours, and what it is compared with.
pub fn both(measure: impl Fn(Side) -> Result<f64>) -> Result<(f64, f64)> {
    Ok((measure(Side::Ours)?, measure(Side::Peer)?))
}

/// A running server; killed when dropped.
pub struct Server(Child);

impl Server {
    /// Starts it, and waits until it says that it listens.
    pub fn start(line: &str) -> Result<Self> {
        let mut child = command(line)?
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start '{line}'"))?;
        let output = child.stdout.take().context("no pipe")?;
        let server = Self(child);
        let mut output = BufReader::new(output);
        ensure!(output.read_line(&mut String::new())? > 0, "'{line}' ended early");
        // Nobody reads what else it says, but it must be able to say it.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok(server)
    }

    /// Waits for its end, which must be a success.
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

/// A running client, of which nobody wants to know what it prints; killed when dropped.
pub struct Client(Child);

impl Client {
    pub fn start(line: &str) -> Result<Self> {
        let child = command(line)?.stdout(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| format!("cannot start '{line}'"))?))
    }

    /// Of its only thread.
    pub fn id(&self) -> i32 {
        self.0.id() as i32
    }

    /// Waits for its end, which must be a success.
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

/// Runs a client to its end; returns what it printed.
pub fn client<T: DeserializeOwned>(line: &str) -> Result<T> {
    serde_json::from_str(&text(line)?).with_context(|| format!("what '{line}' printed"))
}

/// As [`client`], of one that prints for people.
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
