// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of the whole machine that a program's end has to give back.

use crate::context::Context;
use crate::machine;
use anyhow::{ensure, Result};

/// Returns the kernel's own memory in kilobytes.
fn kernel_memory() -> Result<i64> {
    Ok(machine::meminfo(machine::SLAB)? + machine::meminfo("VmallocUsed")?)
}

/// Returns the number of pinned pages of the whole machine.
fn pinned() -> Result<i64> {
    // Adds up the counters of all processors.
    std::fs::write("/proc/sys/vm/stat_refresh", "1")?;
    let text = std::fs::read_to_string("/proc/vmstat")?;
    let count = |name: &str| -> i64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    };
    Ok(count("nr_foll_pin_acquired ") - count("nr_foll_pin_released "))
}

/// Memory in the course of `times` rounds.
pub struct Watch {
    times: u64,
    pinned: i64,
    /// Kilobytes at each quarter.
    memory: Vec<i64>,
}

impl Watch {
    pub fn new(times: u64) -> Result<Self> {
        Ok(Self { times, pinned: pinned()?, memory: Vec::new() })
    }

    /// Measures before a round, of some rounds.
    pub fn round(&mut self, round: u64) -> Result<()> {
        if round % self.times.div_ceil(4) == 0 {
            self.memory.push(kernel_memory()?);
        }
        Ok(())
    }

    /// Checks at the end that nothing has grown.
    pub fn end(mut self, context: &Context) -> Result<()> {
        self.memory.push(kernel_memory()?);
        let (times, memory) = (self.times, &self.memory);
        println!("{times} rounds, kernel memory {memory:?} KiB");
        // The kernel's caches fill at first. A leak goes on: a completion queue alone has 200 KiB.
        let grown = memory.last().unwrap_or(&0) - memory[memory.len() / 2];
        let most = times as i64 * 4;
        ensure!(times < 100 || grown < most, "the kernel's memory grows: {memory:?} KiB");
        context.until("no page is pinned", || Ok(pinned()? <= self.pinned))
    }
}
