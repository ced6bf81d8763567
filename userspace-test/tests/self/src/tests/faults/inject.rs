// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The kernel's fault injection: one failure at a chosen place of one call.
//!
//! `/proc/thread-self/fail-nth` makes the n-th thing fail that this thread asks for: memory, or a copy
//! from or to its own memory. Which of the two it was shows in how often each may fail still.

use crate::context::Context;
use crate::harness::skip;
use anyhow::{Context as _, Result};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const NTH: &str = "/proc/thread-self/fail-nth";
const DEBUGFS: &str = "/sys/kernel/debug";
/// More failures than a test makes.
const MANY: i64 = 1_000_000_000;

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An allocation.
    Memory,
    /// A copy from or to the memory of the process.
    Copy,
}

/// Where each of them is set up, and what it is.
const KINDS: [(&str, Fault); 3] = [
    ("failslab", Fault::Memory),
    ("fail_page_alloc", Fault::Memory),
    ("fail_usercopy", Fault::Copy),
];

/// Every allocation may fail, also those that may wait for memory.
const ALL: [(&str, &str); 4] = [
    ("failslab/ignore-gfp-wait", "N"),
    ("fail_page_alloc/ignore-gfp-wait", "N"),
    ("fail_page_alloc/ignore-gfp-highmem", "N"),
    ("fail_page_alloc/min-order", "0"),
];

fn knob(name: &str) -> PathBuf {
    Path::new(DEBUGFS).join(name)
}

/// Sets a knob of the kernel's fault injection.
pub fn set(name: &str, value: &str) -> Result<()> {
    let path = knob(name);
    fs::write(&path, value).with_context(|| format!("{} = {value}", path.display()))
}

/// As [`set_up`], for the devices of a test; skips it where their driver does not bear that.
pub fn set_up_for(context: &Context) -> Result<()> {
    if context.server.is_siw() {
        // It frees queues that were never allocated (`siw_free_qp()`), and listens with EADDRINUSE.
        return skip("siw itself does not survive failing memory");
    }
    set_up()
}

/// Lets every allocation fail; skips the test where the kernel cannot.
pub fn set_up() -> Result<()> {
    if !Path::new(NTH).exists() || !knob(KINDS[0].0).exists() {
        return skip("this kernel cannot inject faults");
    }
    for (name, value) in ALL {
        set(name, value)?;
    }
    for (kind, _) in KINDS {
        set(&format!("{kind}/times"), &MANY.to_string())?;
        set(&format!("{kind}/verbose"), "0")?;
    }
    Ok(())
}

/// Prints the stack of each fault on the console from now on.
pub fn be_verbose() -> Result<()> {
    KINDS.iter().try_for_each(|(kind, _)| set(&format!("{kind}/verbose"), "2"))
}

/// Lets things fail that the calling thread asks for.
pub struct Injector {
    nth: File,
}

impl Injector {
    pub fn new(context: &Context) -> Result<Self> {
        set_up_for(context)?;
        Ok(Self { nth: File::options().read(true).write(true).open(NTH).context(NTH)? })
    }

    /// Calls, and lets the `nth` thing fail that the call asks for; says what that was, if there were
    /// as many.
    pub fn during<T>(&self, nth: u32, call: impl FnOnce() -> T) -> Result<(T, Option<Fault>)> {
        let before = left()?;
        let text = nth.to_string();
        self.nth.write_all_at(text.as_bytes(), 0)?;
        let outcome = call();
        // This, too, copies from the process: then it was not the call.
        if self.nth.write_at(b"0", 0).is_err() {
            self.nth.write_all_at(b"0", 0)?;
            return Ok((outcome, None));
        }
        let after = left()?;
        let changed = (0..KINDS.len()).find(|kind| before[*kind] != after[*kind]);
        Ok((outcome, changed.map(|kind| KINDS[kind].1)))
    }
}

/// How many failures there have been since [`set_up`].
pub fn failures() -> Result<i64> {
    Ok(left()?.iter().map(|left| MANY - left).sum())
}

/// How often each kind may fail still.
fn left() -> Result<[i64; KINDS.len()]> {
    let mut counts = [0; KINDS.len()];
    for (count, (kind, _)) in counts.iter_mut().zip(KINDS) {
        *count = fs::read_to_string(knob(&format!("{kind}/times")))?.trim().parse()?;
    }
    Ok(counts)
}
