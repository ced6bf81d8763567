// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! uDAPL programs over our provider: Debian's, unmodified, and `udapl-consumer`.
//!
//! Debian's programs tell little by their exit status: some end with 0 whatever happened, and
//! `dapltest` cuts a DAT code down to 8 bits. So they are judged by what they print.

use crate::again::again;
use crate::context::Context;
use crate::harness::{skip, wait};
use crate::hosts::Host;
use anyhow::{bail, ensure, Context as _, Error, Result};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The adapter of `dat.conf`; programs of two hosts tell each other its name.
pub const ADAPTER: &str = "kdapl0";

/// What stands behind the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Ours, as it is installed.
    Ours,
    /// Ours, with connection qualifiers as Debian's provider has them.
    LikeDebians,
    /// Debian's own, which knows nothing of kDAPL.
    Debians,
}

/// What such a program prints when something is wrong.
const WRONG: [&str; 9] = [
    "failed in file",
    "Error = ",
    "Test Error",
    ": error",
    "UNEXPECTED",
    "FAILED",
    "ERR:",
    "Validation failed",
    "unexpected",
];

/// A running program.
pub struct Program {
    child: Child,
    /// The file that it prints to.
    output: String,
    line: String,
}

/// Programs of this process, for the names of their files.
static STARTED: AtomicU32 = AtomicU32::new(0);

impl Program {
    /// Starts it on a host, with a `dat.conf` that has the adapter there.
    pub fn start(host: &Host, provider: Provider, line: &str) -> Result<Self> {
        let configuration = configuration(host, provider)?;
        let mut words = line.split_whitespace();
        let program = words.next().context("an empty command")?;
        // What it prints must not wait for a full buffer.
        let mut command = Command::new("stdbuf");
        command.args(["-oL", program]).args(words).env("DAT_OVERRIDE", configuration);
        let (process, number) = (std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let output = format!("/tmp/udapl-{process}-{number}");
        let file = File::options().create(true).append(true).open(&output)?;
        command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
        let child = match host.inside(|| command.spawn())? {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return skip("there is no program 'stdbuf'");
            }
            other => other?,
        };
        Ok(Self { child, output, line: line.into() })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed until now.
    pub fn output(&self) -> String {
        fs::read(&self.output).map_or(String::new(), |b| String::from_utf8_lossy(&b).into_owned())
    }

    /// Waits until it has printed this.
    pub fn says(&mut self, context: &Context, words: &str) -> Result<()> {
        let end = Instant::now() + context.patience() * 3;
        while !self.output().contains(words) {
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() > end {
                bail!("'{}' does not say '{words}' ({ended:?}):\n{}", self.line, self.output());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Waits for its end; returns its status, and all that it has printed.
    pub fn ends(mut self, limit: Duration) -> Result<(ExitStatus, String)> {
        let Some(status) = wait(&mut self.child, limit)? else {
            let stacks = crate::machine::stacks(self.id());
            bail!("'{}' hangs:\n{}\n{stacks}", self.line, self.output());
        };
        Ok((status, self.output()))
    }

    /// Waits for its end, and looks for what is wrong in what it has printed, and for what must be there.
    pub fn passes(self, limit: Duration, wanted: &[&str]) -> Result<String> {
        let line = self.line.clone();
        let (status, output) = self.ends(limit)?;
        judge(&line, status, &output, wanted)?;
        Ok(output)
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.kill();
        let _ = fs::remove_file(&self.output);
    }
}

/// Who serves and who calls.
pub type Sides = (Provider, Provider);

/// Both over ours.
pub const OURS: Sides = (Provider::Ours, Provider::Ours);

/// A server of `dapltest`, which serves until it is told to end.
pub struct Server<'a> {
    context: &'a Context,
    program: Program,
    sides: Sides,
}

impl<'a> Server<'a> {
    pub fn start(context: &'a Context, sides: Sides) -> Result<Self> {
        let line = format!("dapltest -T S -D {ADAPTER}");
        let mut program = Program::start(&context.server, sides.0, &line)?;
        program.says(context, "Service Point Ready")?;
        Ok(Self { context, program, sides })
    }

    fn client(&self, kind: &str, rest: &str) -> Result<Program> {
        let Self { context, sides, .. } = self;
        let address = context.server_address();
        let line = format!("dapltest -T {kind} -D {ADAPTER} -s {address} {rest}");
        Program::start(&context.client, sides.1, &line)
    }

    /// A client runs a test with it.
    pub fn serves(&self, test: &str, wanted: &[&str]) -> Result<String> {
        let (kind, rest) = test.split_once(' ').unwrap_or((test, ""));
        let what = || format!("{test}, served and called by {:?}", self.sides);
        self.client(kind, rest)?.passes(self.context.patience() * 6, wanted).with_context(what)
    }

    /// Who tells it to end may find it gone before the message is acknowledged, and calls that an error.
    pub fn ends(self) -> Result<()> {
        let limit = self.context.patience() * 2;
        self.client("Q", "")?.ends(limit)?;
        self.program.passes(limit, &["Service Point Ready"]).map(|_| ())
    }
}

/// Whether a test of `dapltest` may be tried: soft-RoCE breaks RDMA reads of several packets where some get lost.
pub fn arrives(context: &Context, test: &str) -> bool {
    !(context.loses_reads() && test.contains("RR"))
}

/// How a client of `dapltest` tells that its command was not acknowledged.
const UNANSWERED: &str = "Client_Cmd_Send-reaping DTO problem";

/// Runs `dapltest` with a server, up to three times where a command may go without an acknowledgement: the server
/// disconnects as soon as it has one. Over a bad link what got lost then does not come again, and Debian's provider
/// does not wait for what is on its way.
pub fn answered(context: &Context, sides: Sides, work: impl Fn() -> Result<()>) -> Result<()> {
    let hasty = sides.1 == Provider::Debians;
    let excused = |error: &Error| format!("{error:#}").contains(UNANSWERED);
    again(hasty || context.link_is_spoilt(), excused, work)
}

/// Whether what a program printed is right.
pub fn judge(line: &str, status: ExitStatus, output: &str, wanted: &[&str]) -> Result<()> {
    let wrong = WRONG.iter().find(|words| output.contains(**words));
    ensure!(wrong.is_none(), "'{line}' says '{}':\n{output}", wrong.unwrap_or(&""));
    ensure!(status.signal().is_none(), "'{line}' ended with {status}:\n{output}");
    for words in wanted {
        ensure!(output.contains(words), "'{line}' says nothing of '{words}':\n{output}");
    }
    Ok(())
}

/// A `dat.conf` with the adapter of a host.
fn configuration(host: &Host, provider: Provider) -> Result<String> {
    let (device, netdev) = (&host.device, &host.netdev);
    let ours = "libkdapl_provider.so kdapl.1.0";
    let lines: Vec<String> = match provider {
        Provider::Debians => vec![format!(
            "{ADAPTER} u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"{netdev} 0\" \"\""
        )],
        _ => {
            let mapping = if provider == Provider::Ours { "kdapl" } else { "daplofa" };
            let parameters = format!("\"{device} 1 qualifiers={mapping}\" \"\"");
            let line = |safety| format!("{ADAPTER} u2.0 {safety} default {ours} {parameters}");
            vec![line("nonthreadsafe"), line("threadsafe")]
        }
    };
    let path = format!("/tmp/dat-{device}-{provider:?}.conf");
    fs::write(&path, lines.join("\n") + "\n")?;
    Ok(path)
}

/// Whether somebody listens at a TCP port of a host.
pub fn listens(host: &Host, port: u16) -> Result<bool> {
    // Of `proc_pid_net(5)`: the local address, that of a peer, and the state LISTEN.
    let wanted = format!(":{port:04X}");
    let is_wanted = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        matches!(fields[..], [_, local, _, "0A", ..] if local.ends_with(&wanted))
    };
    host.inside(|| {
        // Without IPv6 there is no table of it.
        let tables = ["tcp", "tcp6"].map(|name| format!("/proc/thread-self/net/{name}"));
        let mut tables = tables.iter().filter_map(|path| fs::read_to_string(path).ok());
        tables.any(|table| table.lines().any(is_wanted))
    })
}

/// What a uDAPL test needs: the programs, addresses that they understand, and a driver that was tried.
pub fn possible(context: &Context) -> Result<IpAddr> {
    for file in ["/usr/bin/dapltest", "/usr/bin/dtest", "/usr/lib/x86_64-linux-gnu/libdat2.so.2"] {
        if !fs::exists(file)? {
            return skip(format!("there is no {file}"));
        }
    }
    let address = context.server_address();
    if address.is_ipv6() {
        return skip("Debian's uDAPL programs know addresses of IPv4 only");
    }
    if context.server.is_iwarp() {
        return skip(
            "over iWARP the side that connects has to send first, which these programs do not",
        );
    }
    Ok(address)
}
