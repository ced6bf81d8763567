// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a program asks root to do while it runs.

use super::shared::Shared;
use crate::host;
use crate::kinds::LIMITS;
use anyhow::{Context as _, Result};
use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Takes the device away, and brings it back.
    Replug,
    /// Sets one of [`LIMITS`].
    Limit(u64, u64),
}

impl Errand {
    /// As it lies in the shared memory.
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

    /// Asks for it, and waits until it is done. One at a time: a second one is not asked for.
    pub fn ask(self, shared: &Shared) {
        if shared.errand.compare_exchange(0, self.to_raw(), Relaxed, Relaxed).is_ok() {
            while shared.errand.load(Relaxed) != 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// Does, as root, what programs ask for.
pub struct Errands {
    /// The limits as they were.
    limits: Vec<String>,
    changed: bool,
}

fn path(limit: &str) -> String {
    format!("/sys/module/kdapl/parameters/{limit}")
}

impl Errands {
    /// Remembers what is to be put back.
    ///
    /// # Errors
    /// If the module is not loaded.
    pub fn new() -> Result<Self> {
        let limits = LIMITS.iter().map(|limit| fs::read_to_string(path(limit)).context(*limit));
        Ok(Self { limits: limits.collect::<Result<_>>()?, changed: false })
    }

    /// Does what is asked for now, if anything is.
    ///
    /// # Errors
    /// If the device does not come back.
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

    /// Puts the limits back.
    ///
    /// # Errors
    /// If the module is gone.
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
