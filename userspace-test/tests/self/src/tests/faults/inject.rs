// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Fault injection of the kernel: one failure at a chosen place of one call.
//!
//! `/proc/thread-self/fail-nth` makes the n-th request of this thread fail: an allocation, or a
//! copy from or to its own memory. The counters of remaining failures show which of the two it was.

use crate::context::Context;
use crate::harness::skip;
use anyhow::{Context as _, Result};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const FAIL_NTH: &str = "/proc/thread-self/fail-nth";
const DEBUGFS: &str = "/sys/kernel/debug";
/// More failures than a test causes.
const FAILURE_BUDGET: i64 = 1_000_000_000;

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An allocation.
    Memory,
    /// A copy from or to the memory of the process.
    Copy,
}

/// Kinds of fault injection in debugfs.
const FAULT_KINDS: [(&str, Fault); 4] = [
    // Arrays of kDAPL, each of which is one request.
    ("kdapl/fail_kvmalloc", Fault::Memory),
    ("failslab", Fault::Memory),
    ("fail_page_alloc", Fault::Memory),
    ("fail_usercopy", Fault::Copy),
];

/// Settings that let every allocation fail, also those that may wait for memory.
const EVERY_ALLOCATION_FAILS: [(&str, &str); 4] = [
    ("failslab/ignore-gfp-wait", "N"),
    ("fail_page_alloc/ignore-gfp-wait", "N"),
    ("fail_page_alloc/ignore-gfp-highmem", "N"),
    ("fail_page_alloc/min-order", "0"),
];

fn knob(name: &str) -> PathBuf {
    Path::new(DEBUGFS).join(name)
}

/// Writes a setting of the kernel's fault injection.
pub fn set(name: &str, value: &str) -> Result<()> {
    let path = knob(name);
    fs::write(&path, value).with_context(|| format!("{} = {value}", path.display()))
}

/// Prepares fault injection for the devices of a test, as [`set_up`]. Skips the test if their
/// driver does not survive it.
pub fn set_up_for(context: &Context) -> Result<()> {
    if context.server.is_siw() {
        // It frees queues that were never allocated (`siw_free_qp()`), and a listen fails with
        // EADDRINUSE.
        return skip("siw itself does not survive failing memory");
    }
    set_up()
}

/// Prepares fault injection for all allocations. Skips the test if the kernel does not support it.
pub fn set_up() -> Result<()> {
    if !Path::new(FAIL_NTH).exists() || !knob("failslab").exists() {
        return skip("this kernel cannot inject faults");
    }
    for (name, value) in EVERY_ALLOCATION_FAILS {
        set(name, value)?;
    }
    for (kind, _) in FAULT_KINDS {
        set(&format!("{kind}/times"), &FAILURE_BUDGET.to_string())?;
        set(&format!("{kind}/verbose"), "0")?;
    }
    Ok(())
}

/// Enables the stack of each fault on the console.
pub fn be_verbose() -> Result<()> {
    FAULT_KINDS.iter().try_for_each(|(kind, _)| set(&format!("{kind}/verbose"), "2"))
}

/// Injects faults into the calling thread.
pub struct Injector {
    nth: File,
}

impl Injector {
    pub fn new(context: &Context) -> Result<Self> {
        set_up_for(context)?;
        Ok(Self { nth: File::options().read(true).write(true).open(FAIL_NTH).context(FAIL_NTH)? })
    }

    /// Runs `call` and lets its `nth` request fail. Returns the kind of the failure, or `None` if
    /// `call` made fewer requests.
    pub fn during<T>(&self, nth: u32, call: impl FnOnce() -> T) -> Result<(T, Option<Fault>)> {
        let before = left()?;
        let text = nth.to_string();
        self.nth.write_all_at(text.as_bytes(), 0)?;
        let outcome = call();
        // This write copies from the process as well. If it fails, the call did not.
        if self.nth.write_at(b"0", 0).is_err() {
            self.nth.write_all_at(b"0", 0)?;
            return Ok((outcome, None));
        }
        let after = left()?;
        let changed = (0..FAULT_KINDS.len()).find(|kind| before[*kind] != after[*kind]);
        Ok((outcome, changed.map(|kind| FAULT_KINDS[kind].1)))
    }
}

/// Returns the number of failures since [`set_up`].
pub fn failures() -> Result<i64> {
    Ok(left()?.iter().map(|left| FAILURE_BUDGET - left).sum())
}

/// Returns how often each kind may still fail.
fn left() -> Result<[i64; FAULT_KINDS.len()]> {
    let mut counts = [0; FAULT_KINDS.len()];
    for (count, (kind, _)) in counts.iter_mut().zip(FAULT_KINDS) {
        *count = fs::read_to_string(knob(&format!("{kind}/times")))?.trim().parse()?;
    }
    Ok(counts)
}
