// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest stat`: shows the open adapters of this machine, with their objects and rates.

use crate::cli::StatArgs;
use anyhow::Result;
use libkdapl::IaStat;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use toolkit::{output, report, stop};

/// Clears a terminal, and moves the cursor to its first line.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub fn run(args: &StatArgs, as_json: bool) -> Result<()> {
    let mut last = Sample::take()?;
    let Some(seconds) = args.watch else {
        return show(&last.records(None), as_json);
    };
    let interval = Duration::from_secs(seconds);
    let mut left = args.count;
    while left != Some(0) && pause(interval) {
        let now = Sample::take()?;
        if !as_json && std::io::stdout().is_terminal() {
            output::say(CLEAR)?;
        }
        show(&now.records(Some(&last)), as_json)?;
        last = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Sleeps. Returns `false` if a stop was requested meanwhile.
fn pause(interval: Duration) -> bool {
    let end = Instant::now() + interval;
    while !stop::requested() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(stop::SLICE));
    }
    false
}

/// The statistics of all adapters at one time.
struct Sample {
    at: Instant,
    stats: Vec<IaStat>,
}

impl Sample {
    fn take() -> Result<Self> {
        Ok(Self { at: Instant::now(), stats: libkdapl::ia_stats()? })
    }

    /// Makes the records, with the rates since an earlier sample. An adapter that was opened since
    /// then has the rates since it was opened.
    fn records(&self, before: Option<&Self>) -> Vec<Record> {
        let earlier: HashMap<u64, &IaStat> = before
            .iter()
            .flat_map(|sample| &sample.stats)
            .map(|stat| (stat.serial, stat))
            .collect();
        let since = before.map(|sample| self.at.duration_since(sample.at));
        let record = |stat: &IaStat| match (since, earlier.get(&stat.serial)) {
            (Some(time), Some(earlier)) => Record::new(stat, Some((earlier, time))),
            _ => Record::new(stat, None),
        };
        self.stats.iter().map(record).collect()
    }
}

/// An adapter with `--json`.
#[derive(JsonSchema, Serialize)]
pub struct Record {
    /// Number that identifies the adapter.
    serial: u64,
    /// Process that opened it; null for a kernel module, and if it has ended.
    pid: Option<u32>,
    /// Name that the process had then; empty for a kernel module.
    process: String,
    kernel: bool,
    uid: u32,
    adapter: String,
    age_seconds: f64,
    objects: Objects,
    connections: u32,
    connections_established: u64,
    connections_broken: u64,
    /// Threads that wait for an EVD or a CNO.
    waiters: u32,
    events_queued: u64,
    requests_outstanding: u32,
    receives_outstanding: u32,
    /// Bytes of all LMRs.
    memory: u64,
    /// Sends, RDMA operations and atomics that have completed.
    requests: u64,
    request_bytes: u64,
    receives: u64,
    receive_bytes: u64,
    /// Operations that have failed, without flushed ones.
    failures: u64,
    /// Rates since the last record with --watch, otherwise since the adapter was opened.
    per_second: Rates,
}

#[derive(JsonSchema, Serialize)]
struct Objects {
    pz: u32,
    lmr: u32,
    rmr: u32,
    cno: u32,
    evd: u32,
    ep: u32,
    srq: u32,
    psp: u32,
    rsp: u32,
    csp: u32,
    cr: u32,
}

#[derive(JsonSchema, Serialize)]
struct Rates {
    requests: f64,
    request_bytes: f64,
    receives: f64,
    receive_bytes: f64,
}

impl Rates {
    /// Returns the rates of a time, in which the counts have grown from those of `earlier`.
    fn new(stat: &IaStat, earlier: Option<&IaStat>, time: Duration) -> Self {
        let seconds = time.as_secs_f64().max(1e-9);
        let rate = |count: fn(&IaStat) -> u64| {
            count(stat).saturating_sub(earlier.map_or(0, count)) as f64 / seconds
        };
        Self {
            requests: rate(|stat| stat.raw.requests),
            request_bytes: rate(|stat| stat.raw.request_bytes),
            receives: rate(|stat| stat.raw.receives),
            receive_bytes: rate(|stat| stat.raw.receive_bytes),
        }
    }
}

impl Record {
    fn new(stat: &IaStat, earlier: Option<(&IaStat, Duration)>) -> Self {
        let raw = &stat.raw;
        let age = Duration::from_nanos(raw.age_ns);
        let per_second = match earlier {
            Some((earlier, time)) => Rates::new(stat, Some(earlier), time),
            None => Rates::new(stat, None, age),
        };
        Self {
            serial: stat.serial,
            pid: stat.pid,
            process: stat.process.clone(),
            kernel: stat.is_kernel,
            uid: raw.uid,
            adapter: stat.adapter.clone(),
            age_seconds: age.as_secs_f64(),
            objects: Objects {
                pz: raw.pzs,
                lmr: raw.lmrs,
                rmr: raw.rmrs,
                cno: raw.cnos,
                evd: raw.evds,
                ep: raw.eps,
                srq: raw.srqs,
                psp: raw.psps,
                rsp: raw.rsps,
                csp: raw.csps,
                cr: raw.crs,
            },
            connections: raw.connections,
            connections_established: raw.connections_established,
            connections_broken: raw.connections_broken,
            waiters: raw.waiters,
            events_queued: raw.events_queued,
            requests_outstanding: raw.requests_outstanding,
            receives_outstanding: raw.receives_outstanding,
            memory: raw.memory,
            requests: raw.requests,
            request_bytes: raw.request_bytes,
            receives: raw.receives,
            receive_bytes: raw.receive_bytes,
            failures: raw.failures,
            per_second,
        }
    }

    /// Returns the name and the number of the process.
    fn owner(&self) -> [String; 2] {
        match (self.kernel, self.pid) {
            (true, _) => ["(kernel)".into(), String::new()],
            (false, Some(pid)) => [self.process.clone(), pid.to_string()],
            (false, None) => [self.process.clone(), "ended".into()],
        }
    }

    fn to_row(&self) -> Vec<String> {
        const MIB: f64 = (1 << 20) as f64;
        let [process, pid] = self.owner();
        let rates = &self.per_second;
        vec![
            process,
            pid,
            self.adapter.clone(),
            format!("{} of {}", self.connections, self.objects.ep),
            self.objects.evd.to_string(),
            self.waiters.to_string(),
            self.events_queued.to_string(),
            format!("{:.0}", rates.requests),
            format!("{:.1}", rates.request_bytes / MIB),
            format!("{:.0}", rates.receives),
            format!("{:.1}", rates.receive_bytes / MIB),
            (self.failures + self.connections_broken).to_string(),
            format!("{:.1}", self.memory as f64 / MIB),
        ]
    }
}

const HEAD: [&str; 13] = [
    "process",
    "pid",
    "adapter",
    "connected",
    "EVDs",
    "waiters",
    "events",
    "requests/s",
    "MiB/s",
    "receives/s",
    "MiB/s",
    "errors",
    "MiB in LMRs",
];

/// Prints the records: a table, or a line of JSON.
fn show(records: &[Record], as_json: bool) -> Result<()> {
    if as_json {
        return output::json(&records);
    }
    if records.is_empty() {
        return output::say("no adapter is open that this user may see");
    }
    let mut rows = vec![HEAD.map(String::from).to_vec()];
    rows.extend(records.iter().map(Record::to_row));
    output::say(report::text_table(&rows))
}
