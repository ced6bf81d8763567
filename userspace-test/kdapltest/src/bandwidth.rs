// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest bandwidth`: the throughput of many operations in flight. The data are compared after
//! the clock has stopped.

mod measure;
mod pipeline;

use crate::cli::{BandwidthArgs, Operation};
use crate::client::Target;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use toolkit::output::{self, say};
use toolkit::plot::{Line, Svg, Texts};
use toolkit::report::{self, grouped, size};
use toolkit::stop;

pub use measure::{measure, Case};

/// Result of the measurement of one operation.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Outcome {
    pub server: String,
    pub device: String,
    pub operation: Operation,
    /// Number of operations that were measured, of all connections together.
    pub iterations: u64,
    /// A signal ended the measurement early.
    pub stopped: bool,
    pub size: u32,
    /// Number of operations in flight of each connection.
    pub depth: u32,
    /// Number of connections at once; with duplex in each direction.
    pub connections: u32,
    pub seconds: f64,
    pub mib_per_second: f64,
    pub gbit_per_second: f64,
    pub operations_per_second: f64,
}

pub fn run(args: &BandwidthArgs, as_json: bool) -> Result<()> {
    let target = Target::open(&args.client)?;
    let svg = args.svg.as_deref().map(Svg::create).transpose()?;
    let mut outcomes = Vec::new();
    let complete = measure_all(&target, args, &mut outcomes);
    // An error does not lose the earlier measurements.
    if complete.is_ok() || !outcomes.is_empty() {
        show(&target, args, &outcomes, as_json)?;
        if let Some(svg) = svg {
            plot(svg, &target, &outcomes)?;
        }
    }
    complete
}

fn measure_all(target: &Target, args: &BandwidthArgs, outcomes: &mut Vec<Outcome>) -> Result<()> {
    for case in cases(args) {
        outcomes.extend(stop::forgive(measure(target, &case))?);
        if stop::requested() {
            break;
        }
    }
    Ok(())
}

fn show(target: &Target, args: &BandwidthArgs, outcomes: &[Outcome], as_json: bool) -> Result<()> {
    if as_json {
        return output::json(&outcomes);
    }
    say(format!("From {} to {}, {}:", target.device, target.address, connections(args)))?;
    say(table(outcomes))
}

fn connections(args: &BandwidthArgs) -> String {
    match args.connections {
        1 => "one connection".into(),
        many => format!("{many} connections at once"),
    }
}

/// Returns all combinations of operations, sizes and depths, in the order of their measurement.
fn cases(args: &BandwidthArgs) -> Vec<Case> {
    let BandwidthArgs { connections, iterations, duration, .. } = *args;
    let mut cases = Vec::new();
    for operation in operations(args) {
        for &size in args.sizes().values() {
            for &depth in args.depth.values() {
                cases.push(Case { operation, size, depth, connections, iterations, duration });
            }
        }
    }
    cases
}

fn operations(args: &BandwidthArgs) -> Vec<Operation> {
    if args.operation.is_empty() {
        vec![Operation::Send, Operation::Write, Operation::Read]
    } else {
        args.operation.clone()
    }
}

/// Formats the results, one row for each measurement.
pub fn table(outcomes: &[Outcome]) -> comfy_table::Table {
    let head = ["", "size", "in flight", "operations", "MiB/s", "Gbit/s", "operations/s"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(outcomes.iter().map(|outcome| {
        vec![
            outcome.operation.name().into(),
            size(outcome.size.into()),
            outcome.depth.to_string(),
            grouped(outcome.iterations),
            format!("{:.1}", outcome.mib_per_second),
            format!("{:.3}", outcome.gbit_per_second),
            grouped(outcome.operations_per_second as u64),
        ]
    }));
    report::table(&rows)
}

/// Draws the throughput over the size, or over the depth if there is one size.
fn plot(svg: Svg, target: &Target, outcomes: &[Outcome]) -> Result<()> {
    let title = format!("Throughput from {} to {}", target.device, target.address);
    let by_size = outcomes.windows(2).any(|pair| pair[0].size != pair[1].size);
    let (x, format_x): (_, fn(f64) -> String) = match by_size {
        true => ("bytes of an operation", |bytes| size(bytes as u64)),
        false => ("operations in flight", |depth| format!("{depth}")),
    };
    svg.lines(&Texts { title: &title, x, y: "MiB/s", format_x }, &lines(outcomes, by_size))
}

/// Returns a line for each operation, and for each depth if the sizes differ.
fn lines(outcomes: &[Outcome], by_size: bool) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for outcome in outcomes {
        let (name, depth) = (outcome.operation.name(), outcome.depth);
        let (name, x) = match by_size {
            true => (format!("{name}, {depth} in flight"), outcome.size),
            false => (name.to_string(), depth),
        };
        let point = (f64::from(x), outcome.mib_per_second);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name, points: vec![point] }),
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    lines
}

#[cfg(test)]
mod tests {
    use super::{cases, lines, Operation, Outcome};
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn outcome(operation: Operation, size: u32, depth: u32, mib_per_second: f64) -> Outcome {
        Outcome {
            server: "10.7.0.1".into(),
            device: "rxe0".into(),
            operation,
            iterations: 1,
            stopped: false,
            size,
            depth,
            connections: 1,
            seconds: 1.0,
            mib_per_second,
            gbit_per_second: 0.0,
            operations_per_second: 1.0,
        }
    }

    #[test]
    fn each_combination_is_measured_once() {
        let line = "kdapltest bandwidth -o write -o duplex -s 64..256 -t 1,16";
        let Command::Bandwidth(args) = Cli::parse_from(line.split(' ')).command else {
            panic!("another command");
        };
        let cases: Vec<_> =
            cases(&args).iter().map(|case| (case.operation, case.size, case.depth)).collect();
        let (write, duplex) = (Operation::Write, Operation::Duplex);
        let sizes = |operation| {
            [64, 128, 256].map(|size| [(operation, size, 1), (operation, size, 16)]).concat()
        };
        assert_eq!(cases, [sizes(write), sizes(duplex)].concat());
    }

    #[test]
    fn all_sizes_are_those_of_perftest() {
        let line = "kdapltest bandwidth -a -o read";
        let Command::Bandwidth(args) = Cli::parse_from(line.split(' ')).command else {
            panic!("another command");
        };
        let sizes: Vec<_> = cases(&args).iter().map(|case| case.size).collect();
        assert_eq!((sizes.first(), sizes.last(), sizes.len()), (Some(&2), Some(&8_388_608), 23));
    }

    #[test]
    fn lines_connect_the_sizes_of_an_operation_and_a_depth() {
        let (send, read) = (Operation::Send, Operation::Read);
        let outcomes =
            [outcome(send, 128, 4, 2.0), outcome(send, 64, 4, 1.0), outcome(read, 64, 4, 3.0)];
        let drawn = |by_size| -> Vec<_> {
            lines(&outcomes, by_size).into_iter().map(|line| (line.name, line.points)).collect()
        };
        let point = |x: u32, y| (f64::from(x), y);
        assert_eq!(
            drawn(true),
            [
                ("send, 4 in flight".to_string(), vec![point(64, 1.0), point(128, 2.0)]),
                ("RDMA read, 4 in flight".to_string(), vec![point(64, 3.0)]),
            ]
        );
        assert_eq!(drawn(false)[1], ("RDMA read".to_string(), vec![point(4, 3.0)]));
    }
}
