// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! uDAPL programs over our provider: Debian's, unmodified, and `udapl-consumer`.
//!
//! The exit status of Debian's programs is unreliable. Some end with 0 in any case, and `dapltest`
//! truncates a DAT code to 8 bits. So the tests check their output.

use crate::context::Context;
use crate::harness::{skip, wait};
use crate::hosts::Host;
use crate::repeat::repeat_if_spoilt;
use anyhow::{bail, ensure, Context as _, Error, Result};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Adapter of `dat.conf`. Programs on two hosts exchange its name.
pub const ADAPTER: &str = "kdapl0";

/// Provider of the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Our provider, as it is installed.
    Ours,
    /// Our provider, with connection qualifiers as Debian's provider has them.
    LikeDebians,
    /// Debian's own provider, without kDAPL.
    Debians,
    /// `libkdat` in place of `libdat2` and a provider.
    Libkdat,
}

impl Provider {
    /// Returns the name by which a program opens the adapter of a host.
    pub fn adapter(self, host: &Host) -> &str {
        match self {
            Self::Libkdat => &host.device,
            _ => ADAPTER,
        }
    }
}

/// Output of these programs that reports a failure.
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
    /// File of its output.
    output: String,
    line: String,
}

/// Number of programs that this process has started. It makes the file names unique.
static STARTED: AtomicU32 = AtomicU32::new(0);

impl Program {
    /// Starts a program on a host, with a `dat.conf` for the host's adapter.
    pub fn start(host: &Host, provider: Provider, line: &str) -> Result<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        Self::start_words(host, provider, &words)
    }

    /// Starts a program whose arguments may have spaces.
    pub fn start_words(host: &Host, provider: Provider, words: &[&str]) -> Result<Self> {
        // Write each line at once, not when a buffer is full.
        let mut command = Command::new("stdbuf");
        command.arg("-oL").args(words);
        match provider {
            // Its calls precede those of libdat2, which the program is linked with.
            Provider::Libkdat => command.env("LD_PRELOAD", "libkdat.so.1"),
            _ => command.env("DAT_OVERRIDE", configuration(host, provider)?),
        };
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
        Ok(Self { child, output, line: words.join(" ") })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its output so far.
    pub fn output(&self) -> String {
        fs::read(&self.output).map_or(String::new(), |b| String::from_utf8_lossy(&b).into_owned())
    }

    /// Waits until it has printed `words`.
    pub fn says(&mut self, context: &Context, words: &str) -> Result<()> {
        let end = Instant::now() + context.patience() * 3;
        while !self.output().contains(words) {
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() > end {
                bail!("'{}' does not print '{words}' ({ended:?}):\n{}", self.line, self.output());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Waits for its end. Returns its status and its output.
    pub fn ends(mut self, limit: Duration) -> Result<(ExitStatus, String)> {
        let Some(status) = wait(&mut self.child, limit)? else {
            let stacks = crate::machine::stacks(self.id());
            bail!("'{}' hangs:\n{}\n{stacks}", self.line, self.output());
        };
        Ok((status, self.output()))
    }

    /// Waits for its end, and checks that its output has no failure and has all `wanted` words.
    pub fn passes(self, limit: Duration, wanted: &[&str]) -> Result<String> {
        let line = self.line.clone();
        let (status, output) = self.ends(limit)?;
        judge(&line, status, &output, wanted)?;
        Ok(output)
    }

    /// Sends the signal that `udapl-consumer` waits for when it has printed `ready`.
    pub fn resume(&self) -> Result<()> {
        // SAFETY: the call has no memory arguments.
        let outcome = unsafe { libc::kill(self.id() as i32, libc::SIGUSR1) };
        ensure!(outcome == 0, "kill: {}", std::io::Error::last_os_error());
        Ok(())
    }

    /// Waits for its end, and checks that its exit status is 0.
    pub fn succeeds(self, limit: Duration) -> Result<()> {
        let line = self.line.clone();
        let (status, output) = self.ends(limit)?;
        ensure!(status.success(), "'{line}' ended with {status}:\n{output}");
        Ok(())
    }

    /// Returns its status if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Kills it.
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

/// Providers of server and client.
pub type Sides = (Provider, Provider);

/// Our provider on both sides.
pub const OURS: Sides = (Provider::Ours, Provider::Ours);

/// A `dapltest` server. It runs until a client sends it the command to end.
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

    /// Runs a test of a client with this server.
    pub fn serves(&self, test: &str, wanted: &[&str]) -> Result<String> {
        let (kind, rest) = test.split_once(' ').unwrap_or((test, ""));
        let what = || format!("{test}, server and client: {:?}", self.sides);
        self.client(kind, rest)?.passes(self.context.patience() * 6, wanted).with_context(what)
    }

    /// Ends the server. The client that sends the command may report an error: the server may be
    /// gone before the message is acknowledged.
    pub fn ends(self) -> Result<()> {
        let limit = self.context.patience() * 2;
        self.client("Q", "")?.ends(limit)?;
        self.program.passes(limit, &["Service Point Ready"]).map(|_| ())
    }
}

/// Checks whether a test of `dapltest` can succeed: soft-RoCE breaks RDMA reads of several packets
/// when packets are lost.
pub fn arrives(context: &Context, test: &str) -> bool {
    !(context.loses_reads() && test.contains("RR"))
}

/// Output of a `dapltest` client whose last message, a command or the end of a test, was not
/// acknowledged.
const UNANSWERED: [&str; 2] =
    ["Client_Cmd_Send-reaping DTO problem", "Client_Sync_Send-reaping DTO problem"];

/// Runs `dapltest` with a server. Repeats it up to three times if the last message may stay without
/// an acknowledgement: the server disconnects as soon as it has received it. Over a bad link, a
/// lost packet is not repeated then. Debian's provider does not wait for packets in flight.
pub fn answered(context: &Context, sides: Sides, work: impl Fn() -> Result<()>) -> Result<()> {
    let hasty = sides.1 == Provider::Debians;
    let excused = |error: &Error| {
        let error = format!("{error:#}");
        UNANSWERED.iter().any(|words| error.contains(words))
    };
    repeat_if_spoilt(hasty || context.link_is_spoilt(), excused, work)
}

/// Checks the status and the output of a program.
pub fn judge(line: &str, status: ExitStatus, output: &str, wanted: &[&str]) -> Result<()> {
    let wrong = WRONG.iter().find(|words| output.contains(**words));
    ensure!(wrong.is_none(), "'{line}' prints '{}':\n{output}", wrong.unwrap_or(&""));
    ensure!(status.signal().is_none(), "'{line}' ended with {status}:\n{output}");
    for words in wanted {
        ensure!(output.contains(words), "'{line}' does not print '{words}':\n{output}");
    }
    Ok(())
}

/// Writes a `dat.conf` with the adapter of a host, and returns its path.
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

/// Checks whether a socket listens at a TCP port of a host.
pub fn listens(host: &Host, port: u16) -> Result<bool> {
    // Fields of `proc_pid_net(5)`: local address, peer's address, and state (0A is LISTEN).
    let wanted = format!(":{port:04X}");
    let is_wanted = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        matches!(fields[..], [_, local, _, "0A", ..] if local.ends_with(&wanted))
    };
    host.inside(|| {
        // Without IPv6, its table does not exist.
        let tables = ["tcp", "tcp6"].map(|name| format!("/proc/thread-self/net/{name}"));
        let mut tables = tables.iter().filter_map(|path| fs::read_to_string(path).ok());
        tables.any(|table| table.lines().any(is_wanted))
    })
}

/// Checks the requirements of a uDAPL test: programs, IPv4 addresses, and a tested driver.
pub fn possible(context: &Context) -> Result<IpAddr> {
    for file in ["/usr/bin/dapltest", "/usr/bin/dtest", "/usr/lib/x86_64-linux-gnu/libdat2.so.2"] {
        if !fs::exists(file)? {
            return skip(format!("there is no {file}"));
        }
    }
    let address = context.server_address();
    if address.is_ipv6() {
        return skip("Debian's uDAPL programs support IPv4 addresses only");
    }
    if context.server.is_iwarp() {
        return skip(
            "over iWARP the side that connects has to send first, and these programs do not",
        );
    }
    Ok(address)
}
