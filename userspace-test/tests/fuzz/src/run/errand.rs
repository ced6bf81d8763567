// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Actions that a program requests from root while it runs.

use super::shared::Shared;
use crate::host;
use crate::kinds::LIMITS;
use anyhow::{Context as _, Result};
use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A requested action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Removes the device and adds it again.
    Replug,
    /// Sets one of [`LIMITS`].
    Limit(u64, u64),
}

impl Errand {
    /// Returns its encoding in the shared memory.
    fn to_raw(self) -> u64 {
        match self {
            Self::Replug => 1,
            Self::Limit(which, value) => {
                ((which % LIMITS.len() as u64 + 2) << 32) | (value & 0xffff_ffff)
            }
        }
    }

    fn from_raw(raw: u64) -> Option<Self> {
        match (raw >> 32, raw & 0xffff_ffff) {
            (0, 1) => Some(Self::Replug),
            (which @ 2.., value) => Some(Self::Limit(which - 2, value)),
            _ => None,
        }
    }

    /// Requests the action, and waits for it. Does nothing while another one is requested.
    pub fn ask(self, shared: &Shared) {
        if shared.errand.compare_exchange(0, self.to_raw(), Relaxed, Relaxed).is_ok() {
            while shared.errand.load(Relaxed) != 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// Executes the requested actions as root.
pub struct Errands {
    /// The original limits.
    limits: Vec<String>,
    changed: bool,
}

fn path(limit: &str) -> String {
    format!("/sys/module/kdapl/parameters/{limit}")
}

impl Errands {
    /// Stores the limits to restore.
    ///
    /// # Errors
    /// If the module is not loaded.
    pub fn new() -> Result<Self> {
        let limits = LIMITS.iter().map(|limit| fs::read_to_string(path(limit)).context(*limit));
        Ok(Self { limits: limits.collect::<Result<_>>()?, changed: false })
    }

    /// Executes the requested action, if any.
    ///
    /// # Errors
    /// If the device cannot be added again.
    pub fn run(&mut self, shared: &Shared) -> Result<()> {
        let raw = shared.errand.load(Relaxed);
        match Errand::from_raw(raw) {
            Some(Errand::Replug) => host::replug()?,
            Some(Errand::Limit(which, value)) => {
                self.changed = true;
                fs::write(path(LIMITS[which as usize]), value.to_string())?;
            }
            None => return Ok(()),
        }
        shared.errand.store(0, Relaxed);
        Ok(())
    }

    /// Restores the limits.
    ///
    /// # Errors
    /// If the module was unloaded.
    pub fn undo(&mut self) -> Result<()> {
        if std::mem::take(&mut self.changed) {
            for (limit, value) in LIMITS.iter().zip(&self.limits) {
                fs::write(path(limit), value.trim())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Errand;

    #[test]
    fn errands_are_understood() {
        for errand in [Errand::Replug, Errand::Limit(0, 0), Errand::Limit(5, 40)] {
            assert_eq!(Errand::from_raw(errand.to_raw()), Some(errand));
        }
        assert_eq!(Errand::from_raw(0), None);
    }
}
