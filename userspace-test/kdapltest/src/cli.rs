// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::net::IpAddr;

/// The connection qualifier that server and clients use unless told otherwise.
pub const DEFAULT_PORT: u16 = 7174;

/// Tries out, measures and verifies data transfer through /dev/kdapl.
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:
  kdapltest devices               which RDMA devices there are
  kdapltest demo                  a server and a client on this machine, explained
  kdapltest server                on one machine, and on another:
  kdapltest ping -s 10.7.0.1      latency and context switches to that server
  kdapltest bandwidth -s 10.7.0.1 --json | jq .

Without an RDMA device, make a soft-RoCE one on any network device that has an
address:  rdma link add rxe0 type rxe netdev eth0"
)]
pub struct Cli {
    /// Prints one JSON value on a line for machines instead of text for people.
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
    /// Serves clients until Ctrl-C: echoes, or offers memory, as each client asks.
    #[command(after_help = "Examples:
  kdapltest server                     serves any number of clients
  kdapltest server --once --events     serves one and shows every event it saw")]
    Server(ServerArgs),
    /// Measures the round trip of messages, with both sides asleep in between.
    #[command(after_help = "Examples:
  kdapltest ping -s 10.7.0.1
  kdapltest ping --size 4096 --iterations 100000
  kdapltest ping --pause 200           both sides wait up to 200 us at random
  kdapltest ping --poll                dequeues in a loop instead of waiting")]
    Ping(PingArgs),
    /// Measures how fast many operations in flight move data; compares what they left in memory.
    #[command(after_help = "Examples:
  kdapltest bandwidth -s 10.7.0.1
  kdapltest bandwidth --operation write --size 1048576 --depth 16")]
    Bandwidth(BandwidthArgs),
    /// Measures what connections cost: made, used if wanted, and ended, again and again.
    #[command(after_help = "Examples:
  kdapltest connect -s 10.7.0.1
  kdapltest connect --connections 1000 --parallel 16 --data 64
  kdapltest connect --ready            endpoints are there before the clock runs")]
    Connect(ConnectArgs),
    /// Sends numbered messages to the server and back, of which each must come back once.
    #[command(after_help = "Examples:
  kdapltest stream -s 10.7.0.1
  kdapltest stream --depth 64 --size 1024
  kdapltest stream --through-silence 15 --timeout 60   stop the server's machine when it says 'pause'")]
    Stream(StreamArgs),
    /// Mixes sends, RDMA writes and RDMA reads of random sizes, every byte verified.
    #[command(after_help = "Examples:
  kdapltest transaction -s 10.7.0.1
  kdapltest transaction --threads 4 --eps 8 --iterations 10000 --seed 7")]
    Transaction(TransactionArgs),
    /// Shows it all: a server and a client process on this machine, every event explained.
    #[command(after_help = "Example:\n  kdapltest demo --iterations 10000")]
    Demo(DemoArgs),
}

#[derive(Args, Clone)]
pub struct DeviceArgs {
    /// RDMA device or its network device [default: the first that is up]
    #[arg(short, long)]
    pub device: Option<String>,
    /// Connection qualifier of the server, 1 to 65535
    #[arg(short, long, default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Seconds without any event after which the test gives up
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
}

#[derive(Args, Clone)]
pub struct ClientArgs {
    /// Address of the server [default: the device's own, a server on this machine]
    #[arg(short, long)]
    pub server: Option<IpAddr>,
    #[command(flatten)]
    pub device: DeviceArgs,
}

#[derive(Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Ends after one client, with exit status 1 if anything went wrong
    #[arg(long)]
    pub once: bool,
    /// Ends after that many clients
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
    /// Round trips
    #[arg(short, long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Bytes of each message
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=16 << 20))]
    pub size: u32,
    /// Dequeues in a loop instead of waiting
    #[arg(long)]
    pub poll: bool,
    /// Both sides pause at random, up to so many microseconds, before they answer
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

/// What a bandwidth test does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Sends into receives that the server posts
    Send,
    /// RDMA writes into the server's memory
    Write,
    /// RDMA reads from the server's memory
    Read,
}

#[derive(Args, Clone)]
pub struct BandwidthArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// What to measure [default: all three]
    #[arg(short, long)]
    pub operation: Vec<Operation>,
    /// Operations of each kind
    #[arg(short, long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Bytes of each operation
    #[arg(long, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
    pub size: u32,
    /// Operations in flight
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: u32,
}

/// Connections that may be there at a time: the server has memory for so many.
pub const CONNECTIONS_MAX: u32 = 1024;

#[derive(Args, Clone)]
pub struct ConnectArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Connections to make
    #[arg(short = 'n', long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Connections that are being made or used at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX as i64))]
    pub parallel: u32,
    /// Bytes to send there and back on each connection
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=4096))]
    pub data: u32,
    /// Makes all endpoints before, frees them after; up to 1024 connections
    #[arg(long)]
    pub ready: bool,
}

#[derive(Args, Clone)]
pub struct TransactionArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Transactions of each endpoint
    #[arg(short, long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Largest number of bytes that one transaction moves
    #[arg(long, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=16 << 20))]
    pub size: u32,
    /// Threads
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    /// Endpoints of each thread, each with its own connection
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub eps: u32,
    /// Makes sizes and order the same again [default: a new one each time]
    #[arg(long)]
    pub seed: Option<u64>,
}

#[derive(Args, Clone)]
pub struct DemoArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Round trips of the latency measurement
    #[arg(short, long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Operations of each kind of the bandwidth measurement
    #[arg(short, long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    pub operations: u32,
}
