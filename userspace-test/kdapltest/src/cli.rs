// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Command line.

mod bandwidth;

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use toolkit::pages::{CompletionsArgs, ManArgs};

pub use bandwidth::{BandwidthArgs, Operation};

/// Default connection qualifier of server and clients.
pub const DEFAULT_PORT: u16 = 7174;

/// Meaning of `--timeout` for a server.
const LOST_AFTER: &str = "Seconds without a connection after which a client of 'connect' is lost";

/// Shown after the help of the program.
const AFTER_HELP: &str = "Examples:
  kdapltest devices               lists the RDMA devices
  kdapltest stat --watch          shows who uses them, and how much
  kdapltest demo                  runs a server and a client on this machine
  kdapltest server                serves clients; then, on another machine:
  kdapltest ping 10.7.0.1         measures latency and context switches
  kdapltest bandwidth 10.7.0.1 --json | jq .

Without an RDMA device, make a soft-RoCE one on any network device that has an
address:  rdma link add rxe0 type rxe netdev eth0

Ctrl-C (SIGINT) or SIGTERM ends a command within a second; it prints what it has
measured so far. A second one ends it at once.

Exit status:
    0  success; also of a server that serves until Ctrl-C
    1  an error, which is printed: a wrong byte, a lost peer, a full disk
    2  wrong arguments
    3  this machine has no RDMA device
  130  stopped by SIGINT before the end (143: by SIGTERM)
  141  the reader of the output has closed its pipe";

/// Tests and measures data transfer through /dev/kdapl.
#[derive(Parser)]
#[command(name = "kdapltest", version, after_help = AFTER_HELP)]
pub struct Cli {
    /// Prints JSON instead of text, one value a line; also an error
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Lists the RDMA devices that /dev/kdapl offers; exit status 3 if there is none
    #[command(after_help = "Examples:
  kdapltest devices --json
  kdapltest devices >/dev/null; [ $? != 3 ] || echo 'no RDMA device'")]
    Devices,
    /// Shows the open adapters of its user by process: objects, connections, rates and errors
    #[command(
        after_help = "With CAP_NET_ADMIN it shows the adapters of all users and of kernel modules, in its
network namespace.

Examples:
  kdapltest stat                       once; rates are since an adapter was opened
  kdapltest stat --watch               every second, until Ctrl-C
  kdapltest stat --json | jq '.[] | select(.connections_broken > 0)'"
    )]
    Stat(StatArgs),
    /// Serves clients until Ctrl-C: echoes messages or offers memory, as each client requests
    #[command(mut_arg("timeout", |timeout| timeout.help(LOST_AFTER)))]
    #[command(after_help = "Examples:
  kdapltest server                     serves any number of clients
  kdapltest server --once --events     serves one and shows every event it saw")]
    Server(ServerArgs),
    /// Measures the round-trip time of messages; both sides sleep while they wait
    #[command(after_help = "Examples:
  kdapltest ping 10.7.0.1
  kdapltest ping --size 4096 --iterations 100000
  kdapltest ping --pause 200           both sides wait up to 200 us at random
  kdapltest ping --poll                dequeues in a loop instead of waiting
  kdapltest ping --histogram           shows how the times are distributed")]
    Ping(PingArgs),
    /// Measures the throughput of many operations in flight, and compares the data afterwards
    #[command(after_help = "Examples:
  kdapltest bandwidth 10.7.0.1
  kdapltest bandwidth --operation write --size 1048576 --depth 16
  kdapltest bandwidth -s 64..1048576 --svg sizes.svg     each power of two, as a plot
  kdapltest bandwidth -o duplex -q 4                     4 connections in each direction")]
    Bandwidth(BandwidthArgs),
    /// Measures connection set-up and tear-down
    #[command(after_help = "Examples:
  kdapltest connect 10.7.0.1
  kdapltest connect --connections 1000 --parallel 16 --data 64
  kdapltest connect --ready            creates the endpoints before the clock starts")]
    Connect(ConnectArgs),
    /// Sends numbered messages to the server and back, and checks that each returns once
    #[command(after_help = "Examples:
  kdapltest stream 10.7.0.1
  kdapltest stream --depth 64 --size 1024
  kdapltest stream --through-silence 15 --timeout 60   stop the server's machine when it says 'pause'")]
    Stream(StreamArgs),
    /// Mixes sends, RDMA Writes and RDMA Reads of random sizes, and verifies every byte
    #[command(after_help = "Examples:
  kdapltest transaction 10.7.0.1
  kdapltest transaction --threads 4 --eps 8 --iterations 10000 --seed 7")]
    Transaction(TransactionArgs),
    /// Runs a server and a client process on this machine and explains every event
    #[command(after_help = "Example:\n  kdapltest demo --iterations 10000")]
    Demo(DemoArgs),
    /// Prints completions for a shell
    #[command(after_help = "Example:
  kdapltest completions bash >/usr/share/bash-completion/completions/kdapltest")]
    Completions(CompletionsArgs),
    /// Writes the manual pages of all commands
    #[command(after_help = "Example:\n  kdapltest man /usr/share/man/man1")]
    Man(ManArgs),
    /// Prints the JSON Schema of what each command prints with --json
    #[command(after_help = "Example:\n  kdapltest schema | jq .ping.properties")]
    Schema,
}

impl Command {
    /// Returns the name of the subcommand.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Devices => "devices",
            Self::Stat(_) => "stat",
            Self::Server(_) => "server",
            Self::Ping(_) => "ping",
            Self::Bandwidth(_) => "bandwidth",
            Self::Connect(_) => "connect",
            Self::Stream(_) => "stream",
            Self::Transaction(_) => "transaction",
            Self::Demo(_) => "demo",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
            Self::Schema => "schema",
        }
    }
}

#[derive(Args)]
pub struct StatArgs {
    /// Repeats the output after this number of seconds
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    pub watch: Option<u64>,
    /// Ends after this number of outputs
    #[arg(short = 'n', long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

#[derive(Args, Clone)]
pub struct DeviceArgs {
    /// RDMA device, network device or address, as in rxe0, mlx5_0/2, eth0.100, 10.7.0.1 or
    /// mlx5_0/2@10.7.0.1 [default: the first device whose port is up]
    #[arg(short, long)]
    pub device: Option<String>,
    /// Connection qualifier of the server, 1 to 65535; a server needs CAP_NET_BIND_SERVICE below
    /// 1024; 299 is reserved
    #[arg(short, long, default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Seconds without an event after which the test fails
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
}

#[derive(Args, Clone)]
pub struct ClientArgs {
    /// Name or address of the server [default: the address of the device, for a server on this
    /// machine]
    #[arg(value_name = "SERVER")]
    address: Option<String>,
    /// The same, as an option
    #[arg(long, value_name = "SERVER", conflicts_with = "address")]
    server: Option<String>,
    #[command(flatten)]
    pub device: DeviceArgs,
}

impl ClientArgs {
    /// Returns the arguments for a server on this machine.
    pub fn on_this_machine(device: &DeviceArgs) -> Self {
        Self { address: None, server: None, device: device.clone() }
    }

    /// Returns name or address of the server, if it was given.
    pub fn server(&self) -> Option<&str> {
        self.address.as_deref().or(self.server.as_deref())
    }
}

#[derive(Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Ends after one client, with exit status 1 after an error or if it was lost
    #[arg(long)]
    pub once: bool,
    /// Ends after this number of clients
    #[arg(long, conflicts_with = "once", value_name = "N")]
    pub clients: Option<u64>,
    /// Shows every event of each connection
    #[arg(long)]
    pub events: bool,
    /// Ends with the process that has started it
    #[arg(long, hide = true)]
    pub with_parent: bool,
}

impl ServerArgs {
    /// Returns the number of clients after which the server ends.
    pub fn limit(&self) -> Option<u64> {
        if self.once {
            Some(1)
        } else {
            self.clients
        }
    }
}

#[derive(Args, Clone)]
pub struct PingArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Number of round trips
    #[arg(short = 'n', short_alias = 'i', long, alias = "iters", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Measures for so many seconds instead of a number
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "iterations", value_parser = clap::value_parser!(u64).range(1..))]
    pub duration: Option<u64>,
    /// Size of each message in bytes
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=16 << 20))]
    pub size: u32,
    /// Dequeues in a loop instead of waiting
    #[arg(long)]
    pub poll: bool,
    /// Each side pauses for a random time of up to this many microseconds before it replies
    #[arg(long, default_value_t = 0, value_name = "US")]
    pub pause: u32,
    /// Shows a histogram of the round-trip times
    #[arg(long)]
    pub histogram: bool,
    /// Writes a plot of that histogram to this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Args, Clone)]
pub struct StreamArgs {
    #[command(flatten)]
    pub client: ClientArgs,
    /// Messages
    #[arg(short = 'n', short_alias = 'i', long, alias = "iters", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2..))]
    pub iterations: u64,
    /// Measures for so many seconds instead of a number
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "iterations", value_parser = clap::value_parser!(u64).range(1..))]
    pub duration: Option<u64>,
    /// Bytes of each message
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=1 << 20))]
    pub size: u32,
    /// Messages in flight
    #[arg(short = 't', long, alias = "tx-depth", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: u32,
    /// Prints "pause" after half of the messages, goes on until no message has returned for
    /// SECONDS, then sends the rest
    #[arg(long, value_name = "SECONDS", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub through_silence: Option<u64>,
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
    #[arg(short = 'q', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX as i64))]
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
    #[arg(short = 'n', short_alias = 'i', long, alias = "iters", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Measures for so many seconds instead of a number
    #[arg(short = 'D', long, value_name = "SECONDS", conflicts_with = "iterations", value_parser = clap::value_parser!(u64).range(1..))]
    pub duration: Option<u64>,
    /// Maximum size of a transaction in bytes
    #[arg(short, long, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=16 << 20))]
    pub size: u32,
    /// Number of threads
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    /// Number of endpoints of each thread, each with its own connection
    #[arg(short = 'q', long, alias = "qp", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
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
    #[arg(short = 'n', short_alias = 'i', long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// Number of operations of each type of the bandwidth measurement
    #[arg(short, long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    pub operations: u32,
}
