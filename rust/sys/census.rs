// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counts of the existing objects of each kind.
//!
//! `debugfs/kdapl/objects` shows them, and tests look for leaks there.

use core::fmt;
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// Kind of object that is counted.
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
    /// Remote Memory Regions.
    Rmr,
    /// Shared Receive Queues.
    Srq,
}

const NAMES: [&str; 12] = [
    "ia", "pz", "evd", "ep", "psp", "rsp", "csp", "cr", "lmr", "cno", "rmr", "srq",
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
    Atomic::new(0),
    Atomic::new(0),
];

fn add(kind: Kind, difference: i64) {
    if let Some(count) = COUNTS.get(kind as usize) {
        count.add(difference, Relaxed);
    }
}

/// One counted object. A field of this type counts its owner from creation until its memory is
/// freed.
pub(crate) struct Counted(Kind);

impl Counted {
    /// Adds one to the count.
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
