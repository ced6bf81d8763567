// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Test harness: runs each test in its own process, and prints KTAP.

use crate::context::{Context, Settings};
use crate::hosts::Driver;
use crate::machine;
use crate::repeat::{Unheard, TRIES};
use crate::tag::Tag;
use anyhow::Result;
use observe::ktap::{self, Outcome, Totals};
use std::fmt;
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Exit status of a test process that could not test.
const SKIPPED: u8 = ktap::EXIT_SKIP;
/// Exit status of a test process that failed with [`Unheard`].
const UNHEARD: u8 = 78;
/// Limit of the shown output of a failed test.
const SHOWN_BYTES: usize = 12_000;

/// Identifies a test by its file and its function: `evd_resize.keeps_events`.
#[derive(Clone, Copy)]
pub struct TestId {
    /// Path of the module.
    pub module: &'static str,
    pub function: &'static str,
}

impl TestId {
    /// Returns whether this is the test `group`, or one of the file or folder of that name.
    pub fn is_in(self, group: &str) -> bool {
        self.to_string()
            .strip_prefix(group)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl fmt::Display for TestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.module.split_once("::tests::").map_or(self.module, |(_, file)| file);
        write!(formatter, "{}.{}", file.replace("::", "."), self.function)
    }
}

/// A test: one promise of the interface.
#[derive(Clone, Copy)]
pub struct Test {
    pub id: TestId,
    pub tags: &'static [Tag],
    /// The promise, as a sentence.
    pub name: &'static str,
    /// Time limit, times the scale, and times the effort if that is above 1. A test that takes
    /// longer counts as hung.
    pub limit: Duration,
    pub run: fn(&Context) -> Result<()>,
}

// Result of a test that cannot run here. It counts as skipped.
pub use observe::{skip, Skip};

/// Runs the test of an identifier in the child process. Reports the result as exit status.
pub fn run_one(tests: &[Test], id: &str, settings: &Settings) -> ExitCode {
    let Some(test) = tests.iter().find(|test| test.id.to_string() == id) else {
        eprintln!("there is no test '{id}'");
        return ExitCode::FAILURE;
    };
    match Context::new(settings).and_then(|context| (test.run)(&context)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Skip>() => {
            println!("{error:#}");
            ExitCode::from(SKIPPED)
        }
        Err(error) => {
            eprintln!("{error:?}");
            if error.is::<Unheard>() {
                ExitCode::from(UNHEARD)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

enum Verdict {
    Passed,
    Skipped(String),
    Failed(String),
    /// Did not end within its limit.
    Hung(String),
    /// Failed with [`Unheard`].
    Unheard,
}

/// Runs `tests` one after another.
pub fn run_all(tests: &[Test], settings: &Settings) -> ExitCode {
    machine::mount_debugfs();
    println!("{}", ktap::header(tests.len()));
    println!("# seed {}, scale {}, effort {}", settings.seed, settings.scale, settings.effort);
    let mut totals = Totals::default();
    let allowed =
        if settings.layout.driver == Driver::Siw { (tests.len() / 20).max(TRIES) } else { 0 };
    let mut allowance = allowed;
    for (index, test) in tests.iter().enumerate() {
        let start = Instant::now();
        let (verdict, output) = match run_patiently(test, settings, &mut allowance) {
            Ok(outcome) => outcome,
            Err(error) => (Verdict::Failed(format!("{error:#}")), String::new()),
        };
        print!("{}", ktap::diagnostics(&(verdict.why(test) + &output)));
        let outcome = verdict.into_outcome();
        println!("{}", outcome.line(index + 1, test.name, start.elapsed()));
        totals.add(&outcome);
        // Flush: the machine may crash in the next test.
        let _ = std::io::stdout().flush();
    }
    println!("{totals}\n# {} repeated; seed {}", allowed - allowance, settings.seed);
    totals.into()
}

/// Runs a test. Over software iWARP, repeats it up to three times if it fails with [`Unheard`].
///
/// siw has faults of its own, which meet another test each time:
///
/// * It may not notice the first message of a peer: `siw_accept()` answers before it reads the
///   socket, and data that arrives in between is not processed until more arrives.
/// * When it disconnects, it drops data that TCP has not sent yet.
/// * It loses requests and answers in races.
///
/// This is rare: `allowance` limits the number of repetitions in the whole run.
fn run_patiently(
    test: &Test,
    settings: &Settings,
    allowance: &mut usize,
) -> Result<(Verdict, String)> {
    let mut before = String::new();
    let mut left = TRIES;
    loop {
        let (verdict, output) = run_in_child(test, settings)?;
        left -= 1;
        if !matches!(verdict, Verdict::Unheard) || left == 0 || *allowance == 0 {
            return Ok((verdict, before + &output));
        }
        *allowance -= 1;
        before += &format!("siw? repeated after:\n{output}");
    }
}

fn run_in_child(test: &Test, settings: &Settings) -> Result<(Verdict, String)> {
    let mut output = memory_file()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--run-one", &test.id.to_string(), "--seed", &settings.seed.to_string()])
        .env("KDAPL_SELFTEST_SCALE", settings.scale.to_string())
        .args(effort_arguments(settings))
        .args(settings.layout.arguments())
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .process_group(0)
        .spawn()?;
    // A higher effort gets more time.
    let limit = test.limit.mul_f64(settings.scale * settings.effort.max(1.0));
    let ended = wait(&mut child, limit)?;
    let stacks = if ended.is_none() { machine::stacks(child.id()) } else { String::new() };
    kill_group(&child);
    let ended = match ended {
        Some(status) => Ok(status),
        None => {
            let killed = wait(&mut child, Duration::from_secs(10).mul_f64(settings.scale))?;
            Err(match killed {
                Some(_) => format!("hung: not finished in {limit:?}, killed\n{stacks}"),
                None => format!("hung, and could not even be killed\n{stacks}"),
            })
        }
    };
    let text = read_back(&mut output)?;
    let verdict = judge(ended, &text).and_nothing_left(test, settings);
    let text = if matches!(verdict, Verdict::Skipped(_)) { String::new() } else { text };
    Ok((verdict, text))
}

fn effort_arguments(settings: &Settings) -> Vec<String> {
    vec!["--stress".into(), settings.effort.to_string()]
}

fn judge(ended: Result<ExitStatus, String>, text: &str) -> Verdict {
    match ended {
        Err(hung) => Verdict::Hung(hung),
        Ok(status) if status.success() => Verdict::Passed,
        Ok(status) if status.code() == Some(SKIPPED.into()) => {
            Verdict::Skipped(text.replace('\n', " "))
        }
        Ok(status) if status.code() == Some(UNHEARD.into()) => Verdict::Unheard,
        Ok(status) => match status.signal() {
            Some(signal) => Verdict::Failed(format!("the test process died of signal {signal}")),
            None => Verdict::Failed(String::new()),
        },
    }
}

impl Verdict {
    /// Fails also if objects are left in the kernel after the processes have ended. Tests that make
    /// the module leak objects are exempt.
    fn and_nothing_left(self, test: &Test, settings: &Settings) -> Self {
        if test.tags.contains(&Tag::Leaks) {
            return self;
        }
        let Err(left) = machine::no_objects_left(settings.scale) else {
            return self;
        };
        match self {
            Self::Failed(why) => Self::Failed(format!("{why}\n{left:#}")),
            Self::Hung(why) => Self::Hung(format!("{why}\n{left:#}")),
            Self::Passed | Self::Skipped(_) | Self::Unheard => Self::Failed(format!("{left:#}")),
        }
    }

    /// Returns lines that identify a failed test and say why it failed.
    fn why(&self, test: &Test) -> String {
        match self {
            Self::Passed | Self::Skipped(_) => String::new(),
            Self::Failed(why) | Self::Hung(why) => format!("identifier: {}\n{why}\n", test.id),
            Self::Unheard => format!("identifier: {}\n", test.id),
        }
    }

    fn into_outcome(self) -> Outcome {
        match self {
            Self::Passed => Outcome::Passed,
            Self::Skipped(why) => Outcome::Skipped(why),
            Self::Failed(_) | Self::Unheard => Outcome::Failed,
            Self::Hung(_) => Outcome::TimedOut,
        }
    }
}

/// Waits for the end of a child. Returns `None` if the time is over first.
pub fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the child and all processes that it has started.
fn kill_group(child: &Child) {
    // SAFETY: the group is the one that `process_group(0)` made for this child.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
}

fn memory_file() -> Result<fs::File> {
    // SAFETY: the name is a C string; the caller owns the new descriptor.
    let fd = unsafe { libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC) };
    anyhow::ensure!(fd >= 0, "memfd_create: {}", std::io::Error::last_os_error());
    // SAFETY: as above.
    let file = unsafe { fs::File::from_raw_fd(fd) };
    // Two writers share the file. Each write appends.
    // SAFETY: the descriptor is open.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) };
    Ok(file)
}

fn read_back(file: &mut fs::File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let start = bytes.len().saturating_sub(SHOWN_BYTES);
    Ok(String::from_utf8_lossy(&bytes[start..]).into_owned())
}
