// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest connect`: the cost of connections.
//!
//! All connections share a protection zone, an event queue and memory; each has its own endpoint.
//! One thread handles the events of all connections.

mod trials;

use crate::cli::{ConnectArgs, CONNECTIONS_MAX};
use crate::client::Target;
use anyhow::{ensure, Result};
use schemars::JsonSchema;
use serde::Serialize;
use std::mem::ManuallyDrop;
use toolkit::output::{self, say};
use toolkit::report::{grouped, latency_table, Latency};
use trials::Trials;

/// Maximum number of outstanding receives and requests of an endpoint; it posts one of each.
pub const DTOS: u32 = 4;

/// Result of the measurement.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Outcome {
    pub server: String,
    pub device: String,
    /// Number of connections that were made and ended.
    pub connections: u32,
    /// A signal ended the measurement early.
    pub stopped: bool,
    pub parallel: u32,
    pub data: u32,
    pub ready: bool,
    pub seconds: f64,
    pub connections_per_second: f64,
    /// Time from creating the endpoint (with `ready`: from connecting it) to ESTABLISHED.
    pub connect_us: Latency,
    /// Time from creating the endpoint until it is freed; not with `ready`.
    pub whole_us: Option<Latency>,
    /// System calls of this process between the first and the last connection.
    pub calls_per_connection: f64,
}

pub fn run(args: &ConnectArgs, as_json: bool) -> Result<()> {
    ensure!(
        !args.ready || args.connections <= CONNECTIONS_MAX,
        "--ready takes at most {CONNECTIONS_MAX} connections"
    );
    let target = Target::open(&args.client)?;
    // The kernel frees all endpoints together at the end of the process, after the output.
    let mut trials = ManuallyDrop::new(Trials::new(&target, args)?);
    let outcome = trials.measure()?;
    if as_json {
        return output::json(&outcome);
    }
    say(format!(
        "{} connections from {} to {}, {} at a time, {} bytes there and back on each: \
         {:.1} connections/s",
        grouped(outcome.connections.into()),
        outcome.device,
        outcome.server,
        args.parallel,
        args.data,
        outcome.connections_per_second
    ))?;
    let mut rows = vec![("connect", &outcome.connect_us)];
    rows.extend(outcome.whole_us.as_ref().map(|whole| ("create to free", whole)));
    say(latency_table(&rows))?;
    say(format!("system calls of this side per connection: {:.1}", outcome.calls_per_connection))
}
