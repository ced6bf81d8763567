// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Recording of tracepoints: which thread woke a thread, and state and operations of endpoints.

use crate::skip;
use anyhow::{ensure, Context as _, Result};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

const WAKE_UPS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_waking",
    "workqueue/workqueue_execute_start",
    "workqueue/workqueue_execute_end",
];

const WORK: &[&str] = &["workqueue/workqueue_execute_start"];

const TIMERS: &[&str] = &["timer/hrtimer_start", "timer/hrtimer_expire_entry"];

const ENDPOINTS: &[&str] =
    &["kdapl/kdapl_ep_post", "kdapl/kdapl_ep_complete", "kdapl/kdapl_ep_state"];

const STATES: &[&str] = &["kdapl/kdapl_ep_state", "workqueue/workqueue_execute_start"];

/// A separate trace buffer, which records during its lifetime.
pub struct Recording {
    folder: PathBuf,
    events: &'static [&'static str],
}

/// A recorded event, or a line of the same format.
#[derive(Clone, Debug)]
pub struct Told {
    /// Name of the event.
    pub event: String,
    /// Thread that was running; 0 if it is not known.
    pub task: i32,
    /// Time of `CLOCK_MONOTONIC` in nanoseconds, rounded to a microsecond. 0 unless timers are
    /// recorded.
    pub time: u64,
    /// Fields as `name=value`, in order.
    fields: Vec<(String, String)>,
}

impl Told {
    /// Parses `event: name=value name=value`, with or without the colon.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let event = words.next()?.trim_end_matches(':').into();
        // A function of a module is followed by the module's name.
        let fields = words.filter(|word| !word.starts_with('['));
        let field = |word: &str| word.split_once('=').map(|(a, b)| (a.into(), b.into()));
        Some(Self { event, task: 0, time: 0, fields: fields.map(field).collect::<Option<_>>()? })
    }

    /// Returns the value of a field; empty if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the values of fields, separated by spaces.
    #[must_use]
    pub fn values(&self, names: &[&str]) -> String {
        names.iter().map(|name| self.get(name)).collect::<Vec<_>>().join(" ")
    }
}

/// A sleep of the observed thread.
#[derive(Clone, Debug, Default)]
pub struct Sleep {
    /// Threads that woke it, in order. More than one is a detour.
    pub wakers: Vec<Waker>,
    /// The thread has run again.
    pub over: bool,
}

impl Sleep {
    /// Returns the number of context switches from the action of `poster` to the observed thread:
    /// that of the thread itself, and one for each thread in between.
    #[must_use]
    pub fn switches(&self, poster: i32) -> usize {
        1 + self.wakers.iter().filter(|waker| !waker.is_direct(poster)).count()
    }
}

/// Caller of `try_to_wake_up`.
#[derive(Clone, Debug)]
pub struct Waker {
    /// Name of the thread.
    pub comm: String,
    /// Id of the thread.
    pub pid: i32,
    /// The wake-up came from a hard or soft interrupt during that thread.
    pub interrupt: bool,
    /// Work function that a kworker was executing.
    pub work: Option<String>,
}

impl Waker {
    /// Returns whether the wake-up came from the context of the event itself, without another
    /// thread in between.
    ///
    /// In an interrupt the interrupted thread is irrelevant. A kworker must be the provider's and
    /// must not execute kDAPL's work. `poster` is the thread that posted the operation.
    #[must_use]
    pub fn is_direct(&self, poster: i32) -> bool {
        match &self.work {
            _ if self.interrupt => true,
            Some(work) => !work.contains("kdapl"),
            None => self.pid == poster || self.pid == 0 || self.comm.starts_with("ksoftirqd"),
        }
    }
}

impl Recording {
    /// Records context switches, wake-ups and work items.
    ///
    /// # Errors
    /// [`Skip`](crate::Skip) if this kernel lacks the tracepoints.
    pub fn start() -> Result<Self> {
        Self::of(WAKE_UPS)
    }

    /// Records posts, completions and states of endpoints.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn of_endpoints() -> Result<Self> {
        Self::of(ENDPOINTS)
    }

    /// Records states of endpoints, and work items.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn of_states_and_work() -> Result<Self> {
        Self::of(STATES)
    }

    /// Records work items.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn of_work() -> Result<Self> {
        Self::of(WORK)
    }

    /// Records the high-resolution timers that are set and that expire, with the time.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn of_timers() -> Result<Self> {
        Self::with_clock(TIMERS, "mono")
    }

    /// Records events with their order. It is the same on all CPUs, which a time is not.
    fn of(events: &'static [&'static str]) -> Result<Self> {
        Self::with_clock(events, "counter")
    }

    fn with_clock(events: &'static [&'static str], clock: &str) -> Result<Self> {
        let root = PathBuf::from("/sys/kernel/tracing/instances");
        if !root.exists() {
            return skip("this kernel has no tracefs");
        }
        let folder = root.join(format!("kdapl-{}", std::process::id()));
        fs::create_dir(&folder).context("no trace instance")?;
        let recording = Self { folder, events };
        fs::write(recording.folder.join("trace_clock"), clock)?;
        for event in events {
            let enable = recording.folder.join("events").join(event).join("enable");
            if !enable.exists() {
                return skip(format!("this kernel has no tracepoint {event}"));
            }
            fs::write(enable, "1")?;
        }
        fs::write(recording.folder.join("buffer_size_kb"), "8192")?;
        fs::write(recording.folder.join("trace"), "")?;
        Ok(recording)
    }

    /// Returns the sleeps of thread `tid` since the start. Stops the recording.
    ///
    /// # Errors
    /// The trace buffer overflowed.
    pub fn sleeps(&self, tid: i32) -> Result<Vec<Sleep>> {
        let text = self.stop()?;
        Ok(Observer { tid, ..Default::default() }.watch(&text))
    }
}

impl Recording {
    /// Returns the events since the start. Stops the recording.
    ///
    /// # Errors
    /// Those of [`sleeps`](Self::sleeps).
    pub fn told(&self) -> Result<Vec<Told>> {
        let text = self.stop()?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                // Format: `comm-pid   [cpu] flags  time: event: fields`
                let (head, told) = line.split_once(": ").with_context(|| line.to_string())?;
                let task = head.split_once(" [").and_then(|(task, _)| task.rsplit_once('-'));
                let task = task.and_then(|(_, pid)| pid.trim().parse().ok());
                let told = Told::parse(told).with_context(|| line.to_string())?;
                let task = task.with_context(|| line.to_string())?;
                Ok(Told { task, time: nanoseconds(head).unwrap_or(0), ..told })
            })
            .collect()
    }

    /// Returns the functions of the work items of a module since the start. Stops the recording.
    ///
    /// # Errors
    /// Those of [`sleeps`](Self::sleeps).
    pub fn work_of(&self, module: &str) -> Result<Vec<String>> {
        Ok(functions_of(&self.stop()?, module))
    }

    /// Returns the lines since the start. Stops the recording.
    ///
    /// # Errors
    /// Those of [`sleeps`](Self::sleeps).
    pub fn stop(&self) -> Result<String> {
        fs::write(self.folder.join("tracing_on"), "0")?;
        let text = fs::read_to_string(self.folder.join("trace"))?;
        ensure!(is_whole(&text), "the trace buffer was too small");
        Ok(text)
    }
}

/// Returns the time at the end of the head of a line, which has seconds and microseconds.
fn nanoseconds(head: &str) -> Option<u64> {
    let (seconds, micros) = head.split_whitespace().last()?.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1000)
}

/// Returns the functions of work items in a trace that are in this module.
fn functions_of(text: &str, module: &str) -> Vec<String> {
    let suffix = format!(" [{module}]");
    let functions = text.lines().filter_map(|line| Some(line.split_once(": function ")?.1));
    functions.filter_map(|name| name.trim().strip_suffix(&suffix)).map(String::from).collect()
}

/// Returns whether the trace contains all events that were written to it.
fn is_whole(text: &str) -> bool {
    let counts =
        text.lines().find_map(|line| line.strip_prefix("# entries-in-buffer/entries-written: "));
    let counts = counts.and_then(|counts| counts.split_whitespace().next()?.split_once('/'));
    !text.contains("LOST") && counts.is_none_or(|(there, written)| there == written)
}

impl Drop for Recording {
    fn drop(&mut self) {
        for event in self.events {
            let _ = fs::write(self.folder.join("events").join(event).join("enable"), "0");
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

#[derive(Default)]
struct Observer {
    tid: i32,
    /// Work function that each kworker is executing.
    work: HashMap<i32, String>,
    sleeps: Vec<Sleep>,
}

impl Observer {
    fn watch(mut self, text: &str) -> Vec<Sleep> {
        text.lines().filter(|line| !line.starts_with('#')).for_each(|line| {
            // Skip lines of another format.
            let _ = self.see(line);
        });
        self.sleeps
    }

    /// Parses a line `comm-pid   [cpu] flags  time: event: fields`.
    fn see(&mut self, line: &str) -> Option<()> {
        let (head, rest) = line.split_once(" [")?;
        let (comm, pid) = head.trim().rsplit_once('-')?;
        let pid = pid.trim().parse().ok()?;
        let mut words = rest.split_whitespace();
        let flags = words.nth(1)?;
        let (_, fields) = rest.split_once(": ")?;
        let (event, fields) = fields.split_once(": ")?;
        match event {
            "sched_switch" => self.switched(fields)?,
            "sched_waking" if field(fields, "pid")? == self.tid => {
                // The third flag is the interrupt context.
                let interrupt = matches!(flags.chars().nth(2), Some('h' | 's' | 'H' | 'z' | 'Z'));
                let work = self.work.get(&pid).cloned();
                let waker = Waker { comm: comm.into(), pid, interrupt, work };
                let sleep = self.sleeps.last_mut().filter(|sleep| !sleep.over)?;
                sleep.wakers.push(waker);
            }
            "workqueue_execute_start" => {
                let (_, function) = fields.split_once("function ")?;
                self.work.insert(pid, function.trim().into());
            }
            "workqueue_execute_end" => {
                self.work.remove(&pid);
            }
            _ => {}
        }
        Some(())
    }

    fn switched(&mut self, fields: &str) -> Option<()> {
        if field(fields, "prev_pid")? == self.tid {
            let (_, state) = fields.split_once("prev_state=")?;
            // A preempted thread (R) does not sleep. A thread in uninterruptible sleep (D) sleeps
            // on a lock, for example that of its address space, and not in its wait, which a signal
            // can interrupt (S).
            if state.starts_with('S') {
                self.sleeps.push(Sleep::default());
            } else if let Some(sleep) = self.sleeps.last_mut() {
                sleep.over = true;
            }
        }
        if field(fields, "next_pid")? == self.tid {
            if let Some(sleep) = self.sleeps.last_mut() {
                sleep.over = true;
            }
        }
        Some(())
    }
}

/// Returns the number in the field `name=`.
fn field(fields: &str, name: &str) -> Option<i32> {
    fields
        .split_whitespace()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .and_then(|number| number.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{functions_of, is_whole, nanoseconds, Observer};

    const TEXT: &str = "\
# tracer: nop
 kdapl-selftest-77      [001] d..2.   12.000001: sched_switch: prev_comm=kdapl-selftest prev_pid=77 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
   kworker/u4:3-45      [000] .....   12.000002: workqueue_execute_start: work struct 00000000abcd: function do_work [rdma_rxe]
   kworker/u4:3-45      [000] d..2.   12.000003: sched_waking: comm=kdapl-selftest pid=77 prio=120 target_cpu=001
          <idle>-0       [001] d..2.   12.000004: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=kdapl-selftest next_pid=77 next_prio=120
";

    #[test]
    fn a_trace_whose_beginning_was_overwritten_is_not_whole() {
        let head = "# tracer: nop\n#\n# entries-in-buffer/entries-written: ";
        assert!(is_whole(TEXT));
        assert!(is_whole(&format!("{head}48/48   #P:2\n")));
        assert!(!is_whole(&format!("{head}48/49   #P:2\n")));
        assert!(!is_whole("CPU:1 [LOST 7 EVENTS]\n"));
    }

    #[test]
    fn time_has_seconds_and_microseconds() {
        assert_eq!(nanoseconds("a thread-77 [001] d..2.   12.000034"), Some(12_000_034_000));
        assert_eq!(nanoseconds("a thread-77 [001] d..2.   12"), None);
    }

    #[test]
    fn work_items_are_of_modules() {
        assert_eq!(functions_of(TEXT, "rdma_rxe"), ["do_work"]);
        assert!(functions_of(TEXT, "rxe").is_empty());
    }

    #[test]
    fn one_sleep_and_its_waker_are_found() {
        let sleeps = Observer { tid: 77, ..Default::default() }.watch(TEXT);
        assert_eq!(sleeps.len(), 1);
        assert!(sleeps[0].over);
        assert_eq!(sleeps[0].wakers.len(), 1);
        assert_eq!(sleeps[0].wakers[0].comm, "kworker/u4:3");
        assert_eq!(sleeps[0].wakers[0].work.as_deref(), Some("do_work [rdma_rxe]"));
        assert!(!sleeps[0].wakers[0].interrupt);
        assert_eq!(sleeps[0].switches(1), 1);
        let through_us = TEXT.replace("do_work [rdma_rxe]", "run_work [kdapl]");
        let sleeps = Observer { tid: 77, ..Default::default() }.watch(&through_us);
        assert_eq!(sleeps[0].switches(1), 2);
    }
}
