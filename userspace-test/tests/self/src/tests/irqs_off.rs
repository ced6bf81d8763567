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
use libkdapl::{Evd, EvdFlags};
use std::fs;
use std::path::Path;

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

/// Times each step of a program with the EVDs of a CNO.
fn sections(
    context: &Context,
    tracer: &Tracer,
    count: u64,
) -> Result<Vec<(&'static str, Section)>> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let mut evds: Vec<Evd> = Vec::new();
    let mut steps = Vec::new();
    let mut step = |name, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
        steps.push((name, tracer.longest(work)?));
        Ok(())
    };
    step("create", &mut || {
        evds =
            (0..count).map(|_| Ok(ia.create_evd(EvdFlags::SOFTWARE, 1)?)).collect::<Result<_>>()?;
        Ok(())
    })?;
    step("attach", &mut || Ok(evds.iter().try_for_each(|evd| evd.modify_cno(Some(&cno)))?))?;
    step("trigger", &mut || Ok(evds.iter().try_for_each(|evd| evd.post_se(1))?))?;
    step("return triggers", &mut || {
        for evd in &evds {
            let found = cno.wait(Some(context.patience()))?;
            ensure!(found == Some(evd.handle()), "{found:?} is out of order");
        }
        Ok(())
    })?;
    step("dequeue", &mut || {
        for evd in &evds {
            evd.dequeue()?;
            ensure!(evd.dequeue().is_err_and(|error| error.is_empty()), "the EVD is not empty");
        }
        Ok(())
    })?;
    step("detach", &mut || Ok(evds.iter().rev().try_for_each(|evd| evd.modify_cno(None))?))?;
    step("attach again", &mut || {
        Ok(evds.iter().try_for_each(|evd| evd.modify_cno(Some(&cno)))?)
    })?;
    let mut evds = Some(evds);
    step("free", &mut || {
        drop(evds.take());
        Ok(cno.free()?)
    })?;
    Ok(steps)
}

fn cno_with_many_evds(context: &Context) -> Result<()> {
    let tracer = Tracer::new()?;
    let count = (10_000.0 * context.settings.effort) as u64;
    let mut worst = Vec::new();
    // Lockdep learns its lock classes during the first round.
    for (count, judged) in [(count.div_ceil(10), false), (count, true)] {
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
