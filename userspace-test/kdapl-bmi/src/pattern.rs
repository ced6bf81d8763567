// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bmi pattern`: the lists of a file system. Each buffer of the server is written from a
//! list of regions, and read back into another list.

use crate::cli::PatternArgs;
use crate::client::Client;
use crate::protocol::{Kind, Request, FROM_SERVER, TO_SERVER};
use anyhow::{ensure, Result};
use libkdapl_bmi::{Memory, Part};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Instant;
use toolkit::output::{self, say};
use toolkit::progress::Progress;
use toolkit::report::{grouped, size};
use toolkit::stop;

/// Result of the measurement.
#[derive(JsonSchema, Serialize)]
pub struct Outcome {
    server: String,
    buffers: u64,
    /// A signal ended the measurement early.
    stopped: bool,
    /// Buffers in flight.
    depth: u32,
    /// Regions of a list, and bytes of a region.
    regions: u32,
    region: u32,
    seconds: f64,
    /// MiB a second, in both directions together.
    mib_per_second: f64,
}

/// Memory of a buffer in flight: its regions before, and after. Between two regions are bytes that
/// do not belong to the list.
struct Lists<'a> {
    args: &'a PatternArgs,
    sent: Memory,
    got: Memory,
}

pub fn run(args: &PatternArgs, json: bool) -> Result<()> {
    let client = Client::open(&args.client)?;
    let outcome = measure(&client, args)?;
    if json {
        return output::json(&outcome);
    }
    say(format!(
        "{} buffers of {} regions of {} were written to {} and read back, {} at a time: {:.1} \
         MiB/s; every byte was correct.",
        grouped(outcome.buffers),
        outcome.regions,
        size(outcome.region.into()),
        outcome.server,
        outcome.depth,
        outcome.mib_per_second,
    ))
}

impl Lists<'_> {
    /// Returns the regions, in a random order.
    fn regions(&self, memory: &Memory) -> Vec<Part> {
        let length = self.args.region as usize;
        let region = |index: u32| memory.part(2 * index as usize * length, length);
        let mut regions: Vec<Part> = (0..self.args.regions).map(region).collect();
        fastrand::shuffle(&mut regions);
        regions
    }

    /// Returns the bytes of regions, in the order of the list.
    fn bytes(regions: &[Part]) -> Vec<u8> {
        regions.iter().flat_map(Part::to_vec).collect()
    }
}

fn measure(client: &Client, args: &PatternArgs) -> Result<Outcome> {
    let (buffer, count) = (args.regions * args.region, args.iterations);
    let depth = args.depth.min(u32::try_from(count).unwrap_or(u32::MAX));
    client.request(&Request { kind: Kind::Echo, depth, size: buffer, count })?;
    let mut lists = Vec::new();
    for _ in 0..depth {
        let sent = client.random(2 * buffer as usize)?;
        lists.push(Lists { args, sent, got: client.bmi.alloc(2 * buffer as usize)? });
    }
    let progress = Progress::new("buffers", Some(count));
    let start = Instant::now();
    let mut done = 0;
    while done < count && !stop::requested() {
        // All buffers in flight: their order is that of the posts.
        let now = u64::from(depth).min(count - done) as usize;
        let mut flying = Vec::new();
        for lists in &lists[..now] {
            let (from, to) = (lists.regions(&lists.sent), lists.regions(&lists.got));
            let receive = client.context.receive(&client.peer, FROM_SERVER, &to, 0)?;
            let send = client.context.send(&client.peer, TO_SERVER, &from, 0)?;
            flying.push((from, to, send, receive));
        }
        for (from, to, send, receive) in flying {
            client.done(send)?;
            client.done(receive)?;
            ensure!(Lists::bytes(&from) == Lists::bytes(&to), "buffer {done} has a wrong byte");
            done += 1;
            progress.add(1);
        }
    }
    if done == count {
        client.complete()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(Outcome {
        server: client.server(),
        buffers: done,
        stopped: done < count,
        depth,
        regions: args.regions,
        region: args.region,
        seconds,
        mib_per_second: 2.0 * done as f64 * f64::from(buffer) / 1_048_576.0 / seconds,
    })
}
