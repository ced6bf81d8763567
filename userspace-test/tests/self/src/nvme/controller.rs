// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Controller of an NVMe host.

use super::{set, Disk, NQN};
use crate::context::Context;
use anyhow::{bail, ensure, Context as _, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Waits for the disk of the namespace.
fn find_disk(patience: Duration) -> Result<PathBuf> {
    let start = Instant::now();
    loop {
        for entry in fs::read_dir("/sys/block")?.flatten() {
            let nqn = fs::read_to_string(entry.path().join("device/subsysnqn"));
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = Path::new("/dev").join(&name);
            // The kernel makes the file before the disk can be opened.
            if nqn.is_ok_and(|nqn| nqn.trim() == NQN) && File::open(&path).is_ok() {
                return Ok(path);
            }
        }
        ensure!(start.elapsed() < patience, "no disk has appeared");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Controller of the host. The drop deletes it.
pub struct Controller(pub(super) PathBuf);

impl Controller {
    pub fn attribute(&self, name: &str) -> Result<String> {
        let file = self.0.join(name);
        let text = fs::read_to_string(&file);
        Ok(text.with_context(|| format!("cannot read {}", file.display()))?.trim().to_string())
    }

    /// Waits until the controller is in a state: `live`, `connecting`, ...
    pub fn wait_for(&self, state: &str, patience: Duration) -> Result<()> {
        let start = Instant::now();
        while self.attribute("state")? != state {
            let now = self.attribute("state")?;
            ensure!(start.elapsed() < patience, "the controller is {now}, not {state}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns the number of commands that have completed on this path to the disk.
    pub fn commands(&self) -> Result<u64> {
        let mut commands = 0;
        for entry in fs::read_dir(&self.0)?.flatten() {
            let stat = entry.path().join("stat");
            if entry.file_name().to_string_lossy().starts_with("nvme") && stat.exists() {
                let stat = fs::read_to_string(stat)?;
                // Reads and writes (Documentation/block/stat.rst).
                let fields: Vec<u64> = stat.split_whitespace().flat_map(str::parse).collect();
                commands += fields[0] + fields[4];
            }
        }
        Ok(commands)
    }

    /// Lets commands of the subsystem take all paths in turns.
    pub fn use_all_paths() -> Result<()> {
        for entry in fs::read_dir("/sys/class/nvme-subsystem")?.flatten() {
            if fs::read_to_string(entry.path().join("subsysnqn"))?.trim() == NQN {
                return set(entry.path().join("iopolicy"), "round-robin");
            }
        }
        bail!("the host has no subsystem")
    }

    pub fn exists(&self) -> bool {
        self.0.exists()
    }

    /// Resets the controller, and waits until that is done.
    pub fn reset(&self) -> Result<()> {
        set(self.0.join("reset_controller"), "1")
    }

    /// Deletes the controller, as the drop, which ignores errors.
    pub fn delete(&self) -> Result<()> {
        set(self.0.join("delete_controller"), "1")
    }

    /// Path of the disk, as soon as it is there.
    pub fn disk_path(&self, patience: Duration) -> Result<PathBuf> {
        find_disk(patience)
    }

    pub fn disk(&self, context: &Context) -> Result<Disk> {
        Disk::open(&self.disk_path(context.patience())?)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.delete();
    }
}
