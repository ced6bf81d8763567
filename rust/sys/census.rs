// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How many objects of each kind exist, for `debugfs/kdapl/objects` and for the tests that look
//! for leaks there.

use core::fmt;
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// What is counted.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Open Interface Adapters.
    Ia,
    /// Protection Zones.
    Pz,
    /// Event Dispatchers.
    Evd,
    /// Endpoints.
    Ep,
    /// Public Service Points.
    Psp,
    /// Reserved Service Points.
    Rsp,
    /// Common Service Points.
    Csp,
    /// Connection Requests.
    Cr,
    /// Local Memory Regions.
    Lmr,
    /// Consumer Notification Objects.
    Cno,
}

const NAMES: [&str; 10] = [
    "ia", "pz", "evd", "ep", "psp", "rsp", "csp", "cr", "lmr", "cno",
];

static COUNTS: [Atomic<i64>; NAMES.len()] = [
    Atomic::new(0),
    Atomic::new(0),
    Atomic::new(0),
    Atomic::new(0),
    Atomic::new(0),
    Atomic::new(0),
    Atomic::new(0),
    Atomic::new(0),
    Atomic::new(0),
    Atomic::new(0),
];

fn add(kind: Kind, difference: i64) {
    if let Some(count) = COUNTS.get(kind as usize) {
        count.add(difference, Relaxed);
    }
}

/// Counts the object that holds it, from its making to the drop of its memory.
pub(crate) struct Counted(Kind);

impl Counted {
    /// One more.
    pub(crate) fn new(kind: Kind) -> Self {
        add(kind, 1);
        Self(kind)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        add(self.0, -1);
    }
}

/// Writes one line `name count` for each kind.
pub(crate) fn write(out: &mut impl fmt::Write) -> fmt::Result {
    for (name, count) in NAMES.iter().zip(&COUNTS) {
        writeln!(out, "{name} {}", count.load(Relaxed))?;
    }
    Ok(())
}
