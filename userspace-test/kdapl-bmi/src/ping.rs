// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bmi ping`: the round-trip time of a message.

use crate::cli::PingArgs;
use crate::client::Client;
use crate::protocol::{Kind, Request, FROM_SERVER, TO_SERVER};
use anyhow::{bail, ensure, Result};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Instant;
use toolkit::limit::Limit;
use toolkit::output::{self, say};
use toolkit::progress::Progress;
use toolkit::report::{grouped, latency_table, Latency, Times};
use toolkit::stop::{self, Stopped};

/// Result of the measurement.
#[derive(JsonSchema, Serialize)]
pub struct Outcome {
    server: String,
    /// Number of round trips that were measured.
    iterations: u64,
    /// A signal ended the measurement early.
    stopped: bool,
    size: u32,
    /// Round-trip times in microseconds.
    round_trip_us: Latency,
}

pub fn run(args: &PingArgs, json: bool) -> Result<()> {
    let client = Client::open(&args.client)?;
    client.request(&Request { kind: Kind::Echo, depth: 1, size: args.size, count: 0 })?;
    let mut trips = Trips { times: Times::new()?, done: 0 };
    stop::forgive(trips.measure(&client, args))?;
    if trips.done == 0 {
        bail!(Stopped);
    }
    let Trips { times, done: iterations } = trips;
    let outcome = Outcome {
        server: client.server(),
        iterations,
        stopped: stop::requested(),
        size: args.size,
        round_trip_us: times.latency(),
    };
    if json {
        return output::json(&outcome);
    }
    say(format!(
        "{} round trips of {} bytes to {}; every reply was correct.",
        grouped(outcome.iterations),
        outcome.size,
        outcome.server,
    ))?;
    say(latency_table(&[("round trip", &outcome.round_trip_us)]))
}

/// Round trips, and their times.
struct Trips {
    times: Times,
    done: u64,
}

impl Trips {
    fn measure(&mut self, client: &Client, args: &PingArgs) -> Result<()> {
        let size = args.size as usize;
        let (message, reply) = (client.random(size)?, client.bmi.alloc(size)?);
        let limit = Limit::new(args.iterations, args.duration);
        let progress = Progress::new("round trips", limit.total());
        while !limit.reached(self.done) {
            let start = Instant::now();
            let receive = client.context.receive(&client.peer, FROM_SERVER, &[reply.whole()], 0)?;
            let send = client.context.send(&client.peer, TO_SERVER, &[message.whole()], 0)?;
            client.done(receive)?;
            self.times.add(start.elapsed());
            client.done(send)?;
            let same = reply.buffer().to_vec(0, size) == message.buffer().to_vec(0, size);
            ensure!(same, "reply {} has a wrong byte", self.done);
            // Another message next time.
            message.buffer().write(0, &[fastrand::u8(..)]);
            self.done += 1;
            progress.add(1);
        }
        Ok(())
    }
}
