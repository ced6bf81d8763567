// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One measurement of a bandwidth test: an operation of one size over some connections at once.

use super::pipeline::Pipeline;
use super::Outcome;
use crate::cli::Operation;
use crate::client::{finish, Target};
use crate::threads;
use anyhow::Result;
use libkdapl::DtoOperation;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::Instant;
use toolkit::limit::Limit;
use toolkit::progress::Progress;
use toolkit::stop;

/// Parameters of a measurement.
#[derive(Clone)]
pub struct Case {
    pub operation: Operation,
    /// Size of an operation in bytes.
    pub size: u32,
    /// Number of operations in flight of each connection.
    pub depth: u32,
    /// Number of connections; for [`Operation::Duplex`] as many for each direction.
    pub connections: u32,
    /// Number of operations of each connection.
    pub iterations: u64,
    /// Seconds to measure instead of a number of operations.
    pub duration: Option<u64>,
}

impl Operation {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Write => "RDMA write",
            Self::Read => "RDMA read",
            Self::Duplex => "duplex",
        }
    }

    /// Returns the operations that are carried out at the same time, each over its own connections.
    fn parts(self) -> &'static [DtoOperation] {
        match self {
            Self::Send => &[DtoOperation::Send],
            Self::Write => &[DtoOperation::RdmaWrite],
            Self::Read => &[DtoOperation::RdmaRead],
            Self::Duplex => &[DtoOperation::RdmaWrite, DtoOperation::RdmaRead],
        }
    }
}

impl Case {
    /// Returns the end of a connection's operations, for a measurement that starts now.
    pub fn limit(&self) -> Limit {
        Limit::new(self.iterations, self.duration)
    }

    /// Returns the number of connections at once.
    fn pipelines(&self) -> u32 {
        self.connections * self.operation.parts().len() as u32
    }
}

/// Lets all connections start to transfer at the same time, when the last of them is prepared.
struct Start {
    barrier: Barrier,
    failed: AtomicBool,
}

impl Start {
    fn new(count: u32) -> Self {
        Self { barrier: Barrier::new(count as usize), failed: AtomicBool::new(false) }
    }

    /// Waits for the other connections. Returns whether all of them are prepared.
    fn wait(&self, prepared: bool) -> bool {
        self.failed.fetch_or(!prepared, Ordering::Relaxed);
        self.barrier.wait();
        !self.failed.load(Ordering::Relaxed)
    }
}

/// Transfers of one connection.
struct Part {
    done: u64,
    start: Instant,
    end: Instant,
}

/// Measures an operation on an open device.
pub fn measure(target: &Target, case: &Case) -> Result<Outcome> {
    let pipelines = case.pipelines();
    let (run, start) = (fastrand::u64(..), Start::new(pipelines));
    let total = case.limit().total().map(|each| each * u64::from(pipelines));
    let progress = Progress::new(case.operation.name(), total);
    let parts = threads::run(pipelines, "--connections", |index| {
        let parts = case.operation.parts();
        let operation = parts[index as usize % parts.len()];
        let pipeline = Pipeline::connect(target, case, operation, (run, pipelines));
        if pipeline.is_err() {
            start.wait(false);
        }
        transfer(pipeline?, &start, &progress)
    })?;
    Ok(outcome(target, case, &parts))
}

/// Measures one connection, and ends it.
fn transfer(mut pipeline: Pipeline<'_>, start: &Start, progress: &Progress) -> Result<Part> {
    let prepared = pipeline.prepare();
    let all = start.wait(prepared.is_ok());
    let start = Instant::now();
    let mut end = start;
    let outcome = prepared.and_then(|()| match all {
        true => {
            let outcome = pipeline.run(progress);
            end = Instant::now();
            outcome.and_then(|()| pipeline.compare())
        }
        // The error of another connection ends the measurement.
        false => Ok(()),
    });
    finish(&mut pipeline.side, outcome)?;
    Ok(Part { done: pipeline.done, start, end })
}

fn outcome(target: &Target, case: &Case, parts: &[Part]) -> Outcome {
    let iterations = parts.iter().map(|part| part.done).sum::<u64>();
    let (start, end) =
        (parts.iter().map(|part| part.start).min(), parts.iter().map(|part| part.end).max());
    let time = start.zip(end).map(|(start, end)| end.duration_since(start));
    let seconds = time.unwrap_or_default().as_secs_f64();
    let per_second = if seconds > 0.0 { iterations as f64 / seconds } else { 0.0 };
    let bytes_per_second = per_second * f64::from(case.size);
    Outcome {
        server: target.address.to_string(),
        device: target.device.clone(),
        operation: case.operation,
        iterations,
        stopped: stop::requested(),
        size: case.size,
        depth: case.depth,
        connections: case.connections,
        seconds,
        mib_per_second: bytes_per_second / 1_048_576.0,
        gbit_per_second: bytes_per_second * 8.0 / 1e9,
        operations_per_second: per_second,
    }
}
