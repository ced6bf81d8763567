// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bmi bandwidth`: the throughput of many messages in flight.

use crate::cli::{BandwidthArgs, Direction};
use crate::client::Client;
use crate::protocol::{Kind, Request, FROM_SERVER, TO_SERVER};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Instant;
use toolkit::output::{self, say};
use toolkit::progress::Progress;
use toolkit::report::{grouped, size, table};
use toolkit::stop;

/// Result for one direction.
#[derive(JsonSchema, Serialize)]
pub struct Outcome {
    server: String,
    direction: Direction,
    messages: u64,
    /// A signal ended the measurement early.
    stopped: bool,
    /// Bytes of each message.
    size: u32,
    /// Messages in flight.
    depth: u32,
    seconds: f64,
    mib_per_second: f64,
}

pub fn run(args: &BandwidthArgs, json: bool) -> Result<()> {
    let client = Client::open(&args.client)?;
    let directions = match args.direction.as_slice() {
        [] => &[Direction::To, Direction::From],
        chosen => chosen,
    };
    let outcomes = directions.iter().map(|direction| measure(&client, args, *direction));
    let outcomes: Vec<Outcome> = outcomes.collect::<Result<_>>()?;
    if json {
        return output::json(&outcomes);
    }
    let mut rows = vec![["", "messages", "size", "in flight", "MiB/s"].map(String::from).to_vec()];
    for outcome in &outcomes {
        let direction = match outcome.direction {
            Direction::To => "to the server",
            Direction::From => "from the server",
        };
        rows.push(vec![
            direction.to_owned(),
            grouped(outcome.messages),
            size(outcome.size.into()),
            outcome.depth.to_string(),
            format!("{:.1}", outcome.mib_per_second),
        ]);
    }
    say(table(&rows))
}

fn measure(client: &Client, args: &BandwidthArgs, direction: Direction) -> Result<Outcome> {
    let (count, depth) = (args.iterations, args.depth);
    let kind = match direction {
        Direction::To => Kind::Sink,
        Direction::From => Kind::Source,
    };
    client.request(&Request { kind, depth, size: args.size, count })?;
    let memory = client.random(depth as usize * args.size as usize)?;
    let progress = Progress::new("messages", Some(count));
    let start = Instant::now();
    let post = |buffer: u64| {
        let size = args.size as usize;
        let part = [memory.part(buffer as usize * size, size)];
        match direction {
            Direction::To => client.context.send(&client.peer, TO_SERVER, &part, buffer),
            Direction::From => client.context.receive(&client.peer, FROM_SERVER, &part, buffer),
        }
    };
    let mut posted = u64::from(depth).min(count);
    for buffer in 0..posted {
        post(buffer)?;
    }
    let mut done = 0;
    while done < count && !stop::requested() {
        let completion = client.next()?;
        done += 1;
        progress.add(1);
        if posted < count {
            post(completion.user)?;
            posted += 1;
        }
    }
    if done == count {
        client.complete()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(Outcome {
        server: client.server(),
        direction,
        messages: done,
        stopped: done < count,
        size: args.size,
        depth,
        seconds,
        mib_per_second: done as f64 * f64::from(args.size) / 1_048_576.0 / seconds,
    })
}
