// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::net::IpAddr;

/// Default connection qualifier of server and clients.
pub const DEFAULT_PORT: u16 = 7174;

/// Tests and measures data transfer through /dev/kdapl.
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:
  kdapltest devices               lists the RDMA devices
  kdapltest demo                  runs a server and a client on this machine
  kdapltest server                serves clients; then, on another machine:
  kdapltest ping -s 10.7.0.1      measures latency and context switches
  kdapltest bandwidth -s 10.7.0.1 --json | jq .

Without an RDMA device, make a soft-RoCE one on any network device that has an
address:  rdma link add rxe0 type rxe netdev eth0"
)]
pub struct Cli {
    /// Prints one line of JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Lists the RDMA devices that /dev/kdapl offers.
    #[command(after_help = "Example:\n  kdapltest devices --json")]
    Devices,
    /// Serves clients until Ctrl-C: echoes messages or offers memory, as each client requests
    #[command(after_help = "Examples:
  kdapltest server                     serves any number of clients
  kdapltest server --once --events     serves one and shows every event it saw")]
    Server(ServerArgs),
    /// Measures the round-trip time of messages; both sides sleep while they wait
    #[command(after_help = "Examples:
  kdapltest ping -s 10.7.0.1
  kdapltest ping --size 4096 --iterations 100000
  kdapltest ping --pause 200           both sides wait up to 200 us at random
  kdapltest ping --poll                dequeues in a loop instead of waiting")]
    Ping(PingArgs),
    /// Measures the throughput of many operations in flight, and compares the data afterwards
    #[command(after_help = "Examples:
  kdapltest bandwidth -s 10.7.0.1
  kdapltest bandwidth --operation write --size 1048576 --depth 16")]
    Bandwidth(BandwidthArgs),
    /// Measures connection set-up and tear-down
    #[command(after_help = "Examples:
  kdapltest connect -s 10.7.0.1
  kdapltest connect --connections 1000 --parallel 16 --data 64
  kdapltest connect --ready            creates the endpoints before the clock starts")]
    Connect(ConnectArgs),
    /// Sends numbered messages to the server and back, and checks that each returns once
    #[command(after_help = "Examples:
  kdapltest stream -s 10.7.0.1
  kdapltest stream --depth 64 --size 1024
  kdapltest stream --through-silence 15 --timeout 60   stop the server's machine when it says 'pause'")]
    Stream(StreamArgs),
    /// Mixes sends, RDMA Writes and RDMA Reads of random sizes, and verifies every byte
    #[command(after_help = "Examples:
  kdapltest transaction -s 10.7.0.1
  kdapltest transaction --threads 4 --eps 8 --iterations 10000 --seed 7")]
    Transaction(TransactionArgs),
    /// Runs a server and a client process on this machine and explains every event
    #[command(after_help = "Example:\n  kdapltest demo --iterations 10000")]
    Demo(DemoArgs),
}

#[derive(Args, Clone)]
pub struct DeviceArgs {
    /// RDMA device, network device or address, as in rxe0, mlx5_0/2, eth0.100, 10.7.0.1 or
    /// mlx5_0/2@10.7.0.1 [default: the first device whose port is up]
    #[arg(short, long)]
    pub device: Option<String>,
    /// Connection qualifier of the server, 1 to 65535
    #[arg(short, long, default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Seconds without an event after which the test fails
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
}

#[derive(Args, Clone)]
pub struct ClientArgs {
    /// Address of the server [default: that of the device, for a server on this machine]
    #[arg(short, long)]
    pub server: Option<IpAddr>,
    #[command(flatten)]
    pub device: DeviceArgs,
}

#[derive(Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Ends after one client, with exit status 1 after an error
    #[arg(long)]
    pub once: bool,
    /// Ends after this number of clients
    #[arg(long, conflicts_with = "once", value_name = "N")]
    pub clients: Option<u64>,
    /// Shows every event of each connection
    #[arg(long)]
    pub events: bool,
}

#[derive(Args, Clone)]
pub struct PingArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Number of round trips
    #[arg(short, long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Size of each message in bytes
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=16 << 20))]
    pub size: u32,
    /// Dequeues in a loop instead of waiting
    #[arg(long)]
    pub poll: bool,
    /// Each side pauses for a random time of up to this many microseconds before it replies
    #[arg(long, default_value_t = 0, value_name = "US")]
    pub pause: u32,
}

#[derive(Args, Clone)]
pub struct StreamArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Messages
    #[arg(short, long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2..))]
    pub iterations: u64,
    /// Bytes of each message
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=1 << 20))]
    pub size: u32,
    /// Messages in flight
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: u32,
    /// Prints "pause" after half of the messages, goes on until nothing came back for so long, then
    /// sends the other half
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub through_silence: Option<u64>,
}

/// Operation of a bandwidth test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Sends into receives that the server posts
    Send,
    /// RDMA Writes to the server's memory
    Write,
    /// RDMA Reads from the server's memory
    Read,
}

#[derive(Args, Clone)]
pub struct BandwidthArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Operations to measure [default: all three]
    #[arg(short, long)]
    pub operation: Vec<Operation>,
    /// Number of operations of each type
    #[arg(short, long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Size of each operation in bytes
    #[arg(long, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
    pub size: u32,
    /// Number of operations in flight
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: u32,
}

/// Maximum number of connections at a time, limited by the memory that the server provides.
pub const CONNECTIONS_MAX: u32 = 1024;

#[derive(Args, Clone)]
pub struct ConnectArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Number of connections
    #[arg(short = 'n', long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Number of connections that are set up or used at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX as i64))]
    pub parallel: u32,
    /// Bytes to send in each direction on each connection
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=4096))]
    pub data: u32,
    /// Creates all endpoints before the measurement and frees them after it; up to 1024 connections
    #[arg(long)]
    pub ready: bool,
}

#[derive(Args, Clone)]
pub struct TransactionArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Number of transactions of each endpoint
    #[arg(short, long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Maximum size of a transaction in bytes
    #[arg(long, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=16 << 20))]
    pub size: u32,
    /// Number of threads
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    /// Number of endpoints of each thread, each with its own connection
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub eps: u32,
    /// Repeats the sizes and the order of an earlier run [default: a random seed]
    #[arg(long)]
    pub seed: Option<u64>,
}

#[derive(Args, Clone)]
pub struct DemoArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Number of round trips of the latency measurement
    #[arg(short, long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Number of operations of each type of the bandwidth measurement
    #[arg(short, long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    pub operations: u32,
}
