// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use libkdapl_bmi::Options;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use toolkit::pages::{CompletionsArgs, ManArgs};

/// Shown after the help of the program.
const AFTER_HELP: &str = "Examples:
  kdapl-bmi serve kdapl://10.7.0.1:7180          on one machine; then, on another one:
  kdapl-bmi ping kdapl://10.7.0.1:7180           measures the round-trip time
  kdapl-bmi bandwidth kdapl://10.7.0.1:7180      measures long messages
  kdapl-bmi pattern kdapl://10.7.0.1:7180        measures the lists of a file system

Exit status:
    0  success; also of a server that serves until Ctrl-C
    1  an error, which is printed: a wrong byte, a lost peer, a full disk
    2  wrong arguments
    3  without --device: no RDMA device of this machine has a port that is up
  130  stopped by SIGINT before the end (143: by SIGTERM)
  141  the reader of the output has closed its pipe";

/// Serves and measures messages of BMI through /dev/kdapl.
#[derive(Parser)]
#[command(name = "kdapl-bmi", version, after_help = AFTER_HELP)]
pub struct Cli {
    /// Prints one line of JSON instead of text; also for an error. serve: a line for each client
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serves clients until Ctrl-C; prints a line for each that has ended
    #[command(after_help = "Example:\n  kdapl-bmi serve kdapl://10.7.0.1:7180 --rails 2")]
    Serve(ServeArgs),
    /// Measures the round-trip time of messages; both sides sleep while they wait
    #[command(after_help = "Examples:
  kdapl-bmi ping kdapl://10.7.0.1:7180
  kdapl-bmi ping kdapl://10.7.0.1:7180 --size 4096 --iterations 100000")]
    Ping(PingArgs),
    /// Measures the throughput of many messages in flight
    #[command(after_help = "Examples:
  kdapl-bmi bandwidth kdapl://10.7.0.1:7180
  kdapl-bmi bandwidth kdapl://10.7.0.1:7180 --size 4194304 --direction from")]
    Bandwidth(BandwidthArgs),
    /// Writes lists of regions to buffers of the server and reads them back, as a file system does;
    /// verifies every byte
    #[command(after_help = "Examples:
  kdapl-bmi pattern kdapl://10.7.0.1:7180        8 buffers of 64 regions of 4 KiB, which needs
                                                 10 MiB of locked memory (ulimit -l)
  kdapl-bmi pattern kdapl://10.7.0.1:7180 --regions 16 --region 16384")]
    Pattern(PatternArgs),
    /// Prints completions for a shell
    #[command(after_help = "Example:
  kdapl-bmi completions bash >/usr/share/bash-completion/completions/kdapl-bmi")]
    Completions(CompletionsArgs),
    /// Writes the manual pages of all commands
    #[command(after_help = "Example:\n  kdapl-bmi man /usr/share/man/man1")]
    Man(ManArgs),
    /// Prints the JSON Schema of what each command prints with --json
    #[command(after_help = "Example:\n  kdapl-bmi schema | jq .ping.properties")]
    Schema,
}

impl Command {
    /// Returns the name of the subcommand.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Serve(_) => "serve",
            Self::Ping(_) => "ping",
            Self::Bandwidth(_) => "bandwidth",
            Self::Pattern(_) => "pattern",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
            Self::Schema => "schema",
        }
    }
}

#[derive(Args, Clone)]
pub struct AdapterArgs {
    /// RDMA device, network device or address, as in rxe0, mlx5_0/2, eth0.100 or 10.7.0.1; several
    /// ones are separated by commas [default: the devices of the address to listen at, or the first
    /// device whose port is up]
    #[arg(short, long)]
    pub device: Option<String>,
    /// Connections to each peer, at least one for each device; the smaller number of both sides is
    /// used. The n-th one goes from the n-th device to the n-th host of the server's address
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    pub rails: u8,
    /// Long messages are written by their senders, instead of being read by their receivers
    #[arg(long)]
    pub push: bool,
    /// Seconds without an answer after which a peer is given up
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(2..))]
    pub timeout: u64,
}

impl AdapterArgs {
    /// Returns the options of the library.
    pub fn options(&self) -> Options {
        Options {
            adapter: self.device.clone(),
            rails: self.rails,
            pull: !self.push,
            silence: Duration::from_secs(self.timeout) / 2,
            connect_timeout: Duration::from_secs(self.timeout),
            ..Options::default()
        }
    }
}

#[derive(Args)]
pub struct ServeArgs {
    /// Address to listen at, kdapl://HOST:PORT, or kdapl://HOST+HOST:PORT for several devices
    pub address: String,
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// Ends with the process that has started it
    #[arg(long, hide = true)]
    pub with_parent: bool,
}

#[derive(Args, Clone)]
pub struct ClientArgs {
    /// Address of the server, kdapl://HOST:PORT, or kdapl://HOST+HOST:PORT for several devices
    pub address: String,
    #[command(flatten)]
    pub adapter: AdapterArgs,
}

#[derive(Args, Clone)]
pub struct PingArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Number of round trips
    #[arg(short = 'n', long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Measures for so many seconds instead of a number
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "iterations", value_parser = clap::value_parser!(u64).range(1..))]
    pub duration: Option<u64>,
    /// Size of each message in bytes
    #[arg(short, long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
    pub size: u32,
}

/// Direction of the messages of a bandwidth test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the server
    To,
    /// From the server
    From,
}

#[derive(Args, Clone)]
pub struct BandwidthArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Directions to measure [default: both, one after the other]
    #[arg(long)]
    pub direction: Vec<Direction>,
    /// Number of messages in each direction
    #[arg(short = 'n', long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Size of each message in bytes
    #[arg(short, long, default_value_t = 256 << 10, value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
    pub size: u32,
    /// Number of messages in flight; all of them have at most 256 MiB
    #[arg(short = 't', long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub depth: u32,
}

#[derive(Args, Clone)]
pub struct PatternArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Number of buffers to write and to read back
    #[arg(short = 'n', long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Number of buffers in flight
    #[arg(short = 't', long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub depth: u32,
    /// Regions of a list
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub regions: u32,
    /// Bytes of a region
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub region: u32,
}
