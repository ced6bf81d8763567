// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Measures how long interrupts are off where a program chooses the amount of work.
//!
//! The kernel's `irqsoff` tracer records the longest section. Its figure has a meaning only where
//! time is a count of instructions. Elsewhere the machine or the emulator may have done other work
//! in between.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, Cno, Evd, EvdFlags, Ia};
use std::fs;
use std::path::Path;
use std::time::Duration;

tests! {
    cno_with_many_evds, 3600, "Interrupts are off for less than 100 us at a time, however many EVDs a CNO has";
}

const FOLDER: &str = "/sys/kernel/tracing";
const LIMIT_US: u64 = 100;

/// Runs the tracer until it is dropped.
struct Tracer;

impl Tracer {
    fn new() -> Result<Self> {
        let tracers = fs::read_to_string(Path::new(FOLDER).join("available_tracers"));
        if !tracers.is_ok_and(|names| names.split_whitespace().any(|name| name == "irqsoff")) {
            return skip("this kernel has no irqsoff tracer");
        }
        if !fs::read_to_string("/proc/cmdline")?.contains("kdapl.clock=instructions") {
            return skip("time does not count instructions here: see vm/run --icount");
        }
        write("current_tracer", "irqsoff")?;
        Ok(Self)
    }

    /// Runs `work`, and returns the longest section with interrupts off meanwhile.
    fn longest(&self, work: impl FnOnce() -> Result<()>) -> Result<Section> {
        write("tracing_max_latency", "0")?;
        write("tracing_on", "1")?;
        let done = work();
        write("tracing_on", "0")?;
        done?;
        Section::read()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = write("current_tracer", "nop");
        let _ = write("tracing_on", "1");
    }
}

fn write(file: &str, text: &str) -> Result<()> {
    let path = Path::new(FOLDER).join(file);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// A section with interrupts off.
struct Section {
    micros: u64,
    /// The functions at the end of the section, the innermost first.
    stack: String,
}

impl Section {
    /// Returns whether the section is the module's own. An interrupt that arrives while interrupts
    /// are on is not, nor is a section of lockdep. A section that ends in the module began there,
    /// since only the outermost section counts.
    fn is_ours(&self) -> bool {
        let mut innermost = self.stack.split(" < ").take_while(|frame| !frame.contains("kdapl"));
        let is_lockdeps = innermost.any(|frame| matches!(frame, "lock_acquire" | "lock_release"));
        self.stack.contains("kdapl") && !self.stack.contains("asm_sysvec_") && !is_lockdeps
    }
}

impl Section {
    fn read() -> Result<Self> {
        let read = |file| fs::read_to_string(Path::new(FOLDER).join(file));
        let micros = read("tracing_max_latency")?.trim().parse()?;
        let trace = read("trace")?;
        let lines = trace.lines().filter_map(|line| line.trim().strip_prefix("=> "));
        let stack = lines.collect::<Vec<_>>().join(" < ");
        Ok(Self { micros, stack })
    }
}

/// Number of EVDs whose calls are traced, of all that the CNO has. A traced call takes several
/// times as long as another.
const SAMPLE: usize = 2_000;

/// The longest section of each step.
type Steps = Vec<(&'static str, Section)>;

/// A CNO and its EVDs.
struct Crowd<'a> {
    tracer: &'a Tracer,
    ia: Ia,
    cno: Cno,
    evds: Vec<Evd>,
    steps: Steps,
}

impl<'a> Crowd<'a> {
    fn new(context: &Context, tracer: &'a Tracer) -> Result<Self> {
        let ia = context.open()?;
        let cno = ia.create_cno(None)?;
        Ok(Self { tracer, ia, cno, evds: Vec::new(), steps: Vec::new() })
    }

    /// Traces `work`.
    fn step(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let section = self.tracer.longest(|| work(self))?;
        // A step that is repeated counts as one.
        match self.steps.iter_mut().find(|(known, _)| *known == name) {
            Some((_, longest)) if longest.micros < section.micros => *longest = section,
            Some(_) => (),
            None => self.steps.push((name, section)),
        }
        Ok(())
    }

    /// Creates EVDs until there are `count`, and attaches them.
    fn grow_to(&mut self, count: usize) -> Result<()> {
        while self.evds.len() < count {
            let evd = self.ia.create_evd(EvdFlags::SOFTWARE, 1)?;
            evd.modify_cno(Some(&self.cno))?;
            self.evds.push(evd);
        }
        Ok(())
    }

    /// Creates the EVDs. Calls are traced where a table may grow, which is at powers of two.
    fn fill(&mut self, count: usize) -> Result<()> {
        const MARGIN: usize = 4;
        for power in (0..).map(|exponent| 1_usize << exponent).take_while(|power| *power < count) {
            self.grow_to(power.saturating_sub(MARGIN))?;
            self.step("create and attach", |crowd| crowd.grow_to(power + MARGIN))?;
        }
        self.grow_to(count)
    }

    /// Removes some EVDs from the CNO, and attaches them again.
    fn detach_and_attach(&mut self) -> Result<()> {
        let some = self.evds.len().min(SAMPLE);
        self.step("detach", |crowd| {
            Ok(crowd.evds[..some].iter().rev().try_for_each(|evd| evd.modify_cno(None))?)
        })?;
        self.step("attach again", |crowd| {
            Ok(crowd.evds[..some].iter().try_for_each(|evd| evd.modify_cno(Some(&crowd.cno)))?)
        })
    }

    /// Triggers the CNO by all EVDs, takes some of these triggers, and dequeues their events.
    fn trigger(&mut self) -> Result<()> {
        let some = self.evds.len().min(SAMPLE);
        self.step("trigger", |crowd| {
            Ok(crowd.evds[..some].iter().try_for_each(|evd| evd.post_se(1))?)
        })?;
        self.evds[some..].iter().try_for_each(|evd| evd.post_se(1))?;
        self.step("return triggers", |crowd| {
            for evd in &crowd.evds[..some] {
                let found = crowd.cno.wait(Some(Duration::ZERO))?;
                ensure!(found == Some(evd.handle()), "{found:?} is out of order");
            }
            Ok(())
        })?;
        self.step("dequeue", |crowd| {
            for evd in &crowd.evds[..some] {
                evd.dequeue()?;
                ensure!(evd.dequeue().is_err_and(|error| error.is_empty()), "the EVD is not empty");
            }
            Ok(())
        })
    }

    /// Frees some EVDs by a call each, and the others, most of which have triggered, by the close
    /// of the adapter.
    fn free(mut self) -> Result<Steps> {
        let some = self.evds.len().min(SAMPLE) / 2;
        self.step("free", |crowd| Ok(drop(crowd.evds.drain(..some))))?;
        self.step("close", |crowd| Ok(crowd.ia.close(Close::Abrupt)?))?;
        let Self { evds, cno, steps, .. } = self;
        // The close has freed them.
        std::mem::forget((evds, cno));
        Ok(steps)
    }
}

/// Traces the calls of a program with `count` EVDs of a CNO.
fn sections(context: &Context, tracer: &Tracer, count: usize) -> Result<Steps> {
    let mut crowd = Crowd::new(context, tracer)?;
    crowd.fill(count)?;
    crowd.detach_and_attach()?;
    crowd.trigger()?;
    crowd.free()
}

fn cno_with_many_evds(context: &Context) -> Result<()> {
    let tracer = Tracer::new()?;
    let count = (10_000.0 * context.settings.effort) as usize;
    let mut worst = Vec::new();
    // Lockdep learns its lock classes during the first round.
    for (count, judged) in [(SAMPLE, false), (count, true)] {
        for (name, section) in sections(context, &tracer, count)? {
            let micros = section.micros;
            println!("{count} EVDs, {name}: {micros} us in {}", section.stack);
            if judged && micros >= LIMIT_US && section.is_ours() {
                worst.push(format!("{micros} us ({count} EVDs, {name})"));
            }
        }
    }
    ensure!(worst.is_empty(), "interrupts were off for {}", worst.join(", "));
    Ok(())
}
