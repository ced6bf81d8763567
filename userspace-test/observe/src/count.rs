// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Counting of kernel operations by the code on the stack, with the kernel's histogram triggers.

use crate::skip;
use anyhow::{ensure, Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

const TRACING: &str = "/sys/kernel/tracing";

/// Tracepoints of memory allocations.
pub const ALLOCATIONS: &[&str] = &["kmem/kmalloc", "kmem/kmem_cache_alloc", "kmem/mm_page_alloc"];

/// Maximum number of different stacks in a histogram.
const STACKS: u32 = 32_768;

/// Counts, during its lifetime, how often tracepoints are hit with a module's code on the stack.
pub struct Stacks {
    folder: PathBuf,
    events: Vec<String>,
}

fn trigger() -> String {
    format!("hist:keys=common_stacktrace:size={STACKS}")
}

impl Stacks {
    /// Starts to count hits of `events`, each given as `system/event`.
    ///
    /// # Errors
    /// [`Skip`](crate::Skip) if this kernel has no histograms by stack.
    pub fn of(events: &[&str]) -> Result<Self> {
        let root = Path::new(TRACING).join("instances");
        if !root.exists() {
            return skip("this kernel has no tracefs");
        }
        let folder = root.join(format!(
            "kdapl-count-{}-{}",
            std::process::id(),
            events.join("-").replace('/', ".")
        ));
        fs::create_dir(&folder).context("no trace instance")?;
        let mut stacks = Self { folder, events: Vec::new() };
        for event in events {
            let place = stacks.folder.join("events").join(event);
            if !place.join("hist").exists() {
                return skip(format!("this kernel does not count {event} by its stack"));
            }
            fs::write(place.join("trigger"), trigger())
                .with_context(|| format!("cannot count {event}"))?;
            stacks.events.push((*event).into());
        }
        Ok(stacks)
    }

    /// Returns the number of hits with code of `module` on the stack.
    ///
    /// # Errors
    /// The histogram has run out of entries for different stacks.
    pub fn with(&self, module: &str) -> Result<u64> {
        self.sum(|text| hits(text, |frames| frames.iter().any(|frame| *frame == module)))
    }

    /// Returns the stacks with code of `module`, as the kernel prints them.
    ///
    /// # Errors
    /// Those of reading the histograms.
    pub fn stacks_with(&self, module: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for event in &self.events {
            let text = self.histogram(event)?;
            let with = |(stack, _): &(&str, &str)| modules_of(stack).contains(&module);
            let stacks = entries(&text)?.into_iter().filter(with);
            found.extend(stacks.map(|(stack, _)| format!("{event}: {stack}")));
        }
        Ok(found)
    }

    fn histogram(&self, event: &str) -> Result<String> {
        let file = self.folder.join("events").join(event).join("hist");
        fs::read_to_string(&file).with_context(|| file.display().to_string())
    }

    fn sum(&self, hits: impl Fn(&str) -> Result<u64>) -> Result<u64> {
        let mut sum = 0;
        for event in &self.events {
            let text = self.histogram(event)?;
            sum += hits(&text).with_context(|| event.clone())?;
        }
        Ok(sum)
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        for event in &self.events {
            let place = self.folder.join("events").join(event).join("trigger");
            let _ = fs::write(place, format!("!{}", trigger()));
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Sums the hits of the histogram entries that `wanted` accepts. Its argument is the modules on the
/// stack, innermost first.
fn hits(text: &str, wanted: impl Fn(&[&str]) -> bool) -> Result<u64> {
    let dropped = text.lines().find_map(|line| line.trim().strip_prefix("Dropped:"));
    let dropped: u64 = dropped.context("not a histogram")?.trim().parse()?;
    ensure!(dropped == 0, "{dropped} hits were not counted");
    let mut sum = 0;
    for (stack, rest) in entries(text)? {
        if wanted(&modules_of(stack)) {
            let count = rest.split_whitespace().next().context("an empty count")?;
            sum += count.parse::<u64>()?;
        }
    }
    Ok(sum)
}

/// Splits a histogram into its entries: the stack, and the text that begins with the count.
fn entries(text: &str) -> Result<Vec<(&str, &str)>> {
    let split = text.split("{ ").skip(1).map(|entry| entry.split_once("hitcount:"));
    split.map(|entry| entry.context("an entry without a count")).collect()
}

/// Returns the modules on a stack, innermost first.
fn modules_of(stack: &str) -> Vec<&str> {
    // Frames outside of an interrupt belong to the interrupted code, which is unrelated.
    let frames = stack.lines().take_while(|frame| !is_interrupt(frame));
    frames.filter_map(module_of).collect()
}

/// Returns the module of a frame, `function+offset/size [module]`.
fn module_of(frame: &str) -> Option<&str> {
    frame.trim().strip_suffix(']')?.rsplit_once('[').map(|(_, module)| module)
}

/// Returns whether the frame is the entry of an interrupt.
fn is_interrupt(frame: &str) -> bool {
    frame.contains("asm_sysvec_") || frame.contains("asm_common_interrupt")
}

/// A kernel probe (kprobe) at the entry of a function, during its lifetime.
pub struct Probe {
    name: String,
}

impl Probe {
    /// Installs a probe at the entry of `function`.
    ///
    /// # Errors
    /// [`Skip`](crate::Skip) if this kernel has no kprobes.
    pub fn at(function: &str) -> Result<Self> {
        let file = Path::new(TRACING).join("kprobe_events");
        if !file.exists() {
            return skip("this kernel has no probes");
        }
        let name = format!("{function}_{}", std::process::id());
        append(&file, &format!("p:kdapl_observe/{name} {function}"))
            .with_context(|| format!("no probe at {function}"))?;
        Ok(Self { name })
    }

    /// Returns the name of the event for [`Stacks::of`].
    #[must_use]
    pub fn event(&self) -> String {
        format!("kdapl_observe/{}", self.name)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let file = Path::new(TRACING).join("kprobe_events");
        let _ = append(&file, &format!("-:kdapl_observe/{}", self.name));
    }
}

/// Appends a line: overwriting the file would remove other probes.
fn append(file: &Path, line: &str) -> std::io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().append(true).open(file)?.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::hits;

    const TEXT: &str = "\
# event histogram
#
# trigger info: hist:keys=common_stacktrace:vals=hitcount:sort=hitcount:size=8192 [active]
#

{ common_stacktrace:
         __kmalloc_noprof+0x1c1/0x4d0
         krealloc_node_align_noprof+0x50/0x90
         _RNvMs_something+0x12/0x40 [kdapl]
         do_syscall_64+0x84/0x800
} hitcount:          3
{ common_stacktrace:
         __kmalloc_noprof+0x1c1/0x4d0
         rxe_init_packet+0x66/0x1b0 [rdma_rxe]
} hitcount:         40
{ common_stacktrace:
         __kmalloc_noprof+0x1c1/0x4d0
         handle_softirqs+0xdf/0x2d0
         asm_sysvec_apic_timer_interrupt+0x1a/0x20
         _RNvMs_something+0x12/0x40 [kdapl]
} hitcount:          5

{ common_stacktrace:
         try_to_wake_up+0x1/0x700
         rxe_sched_task+0x5a/0x80 [rdma_rxe]
         _RNvMs_post+0x12/0x40 [kdapl]
} hitcount:          7

Totals:
    Hits: 55
    Entries: 4
    Dropped: 0
";

    fn with(text: &str, module: &str) -> anyhow::Result<u64> {
        hits(text, |frames| frames.contains(&module))
    }

    #[test]
    fn only_what_has_the_module_on_its_stack_counts() {
        assert_eq!(with(TEXT, "kdapl").unwrap(), 10);
        assert_eq!(with(TEXT, "rdma_rxe").unwrap(), 47);
        assert_eq!(with(TEXT, "ib_core").unwrap(), 0);
    }

    #[test]
    fn what_was_not_counted_is_an_error() {
        assert!(with(&TEXT.replace("Dropped: 0", "Dropped: 2"), "kdapl").is_err());
        assert!(with("", "kdapl").is_err());
    }
}
