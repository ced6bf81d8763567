// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Arguments of `kdapltest bandwidth`.

use super::ClientArgs;
use crate::sweep::Sweep;
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// Operation of a bandwidth test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Sends into receives that the server posts
    Send,
    /// RDMA Writes to the server's memory
    Write,
    /// RDMA Reads from the server's memory
    Read,
    /// RDMA Writes and RDMA Reads at once, over a connection each: data in both directions
    Duplex,
}

/// Smallest and largest size that `--all` measures, as those of perftest.
const ALL_SIZES: (u32, u32) = (2, 8 << 20);

fn sizes(text: &str) -> Result<Sweep, String> {
    Sweep::parse(text, 1..=64 << 20)
}

fn depths(text: &str) -> Result<Sweep, String> {
    Sweep::parse(text, 1..=1024)
}

#[derive(Args, Clone)]
pub struct BandwidthArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Operations to measure [default: send, write and read]
    #[arg(short, long)]
    pub operation: Vec<Operation>,
    /// Number of operations of each type, on each connection
    #[arg(short = 'n', short_alias = 'i', long, alias = "iters", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Measures for so many seconds instead of a number
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "iterations", value_parser = clap::value_parser!(u64).range(1..))]
    pub duration: Option<u64>,
    /// Size of each operation in bytes. 64,4096 measures two sizes, and 64..1048576 each from 64
    /// on, doubled until 1048576
    #[arg(short, long, default_value = "65536", value_name = "SIZES", value_parser = sizes)]
    size: Sweep,
    /// Measures the sizes 2..8388608, as perftest does
    #[arg(short, long, conflicts_with = "size")]
    all: bool,
    /// Number of operations in flight on each connection; several as for --size
    #[arg(short = 't', long, alias = "tx-depth", default_value = "16", value_name = "DEPTHS", value_parser = depths)]
    pub depth: Sweep,
    /// Number of connections at once, each with its own thread; with 'duplex' for each direction
    #[arg(short = 'q', long, alias = "qp", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub connections: u32,
    /// Writes a plot to this file, as SVG: MiB/s over the sizes, or over the depths
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl BandwidthArgs {
    /// Returns the sizes to measure.
    pub fn sizes(&self) -> Sweep {
        match self.all {
            true => Sweep::doubling(ALL_SIZES.0, ALL_SIZES.1),
            false => self.size.clone(),
        }
    }
}
