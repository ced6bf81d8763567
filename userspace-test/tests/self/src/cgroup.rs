// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A control group for one test.

use crate::harness::skip;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::PathBuf;
use std::process::{id, Command};
use std::time::Duration;

/// Control group of this process only. Removed when dropped.
pub struct Cgroup {
    mount: PathBuf,
    own: PathBuf,
}

impl Cgroup {
    /// Creates a group with one controller, writes `limits` to one of its files, and enters it.
    pub fn enter(controller: &str, file: &str, limits: &str) -> Result<Self> {
        let mount = PathBuf::from(format!("/tmp/cgroup-{}", id()));
        fs::create_dir(&mount)?;
        let mounted = Command::new("mount")
            .args(["-t", "cgroup2", "none"])
            .arg(&mount)
            .status()
            .is_ok_and(|status| status.success());
        let controllers = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
        if !mounted || !controllers.split_whitespace().any(|name| name == controller) {
            let _ = Command::new("umount").arg(&mount).status();
            fs::remove_dir(&mount)?;
            return skip(format!("this kernel has no {controller} cgroup controller"));
        }
        let own = mount.join(format!("kdapl-selftest-{}", id()));
        let this = Self { mount, own };
        let enable = format!("+{controller}");
        fs::write(this.mount.join("cgroup.subtree_control"), &enable).context(enable)?;
        fs::create_dir(&this.own)?;
        this.write(file, limits)?;
        this.write("cgroup.procs", &id().to_string())?;
        Ok(this)
    }

    /// Moves this process out of the group. Its children stay.
    pub fn leave(&self) -> Result<()> {
        fs::write(self.mount.join("cgroup.procs"), id().to_string())?;
        Ok(())
    }

    /// Checks whether the group still exists.
    pub fn exists(&self) -> bool {
        self.own.exists()
    }

    pub fn write(&self, file: &str, text: &str) -> Result<()> {
        fs::write(self.own.join(file), text).with_context(|| format!("{text} to {file}"))
    }

    /// Reads a file and trims it. Returns an empty string if it cannot be read.
    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.own.join(file)).unwrap_or_default().trim().to_string()
    }

    /// Returns the number on a line `name number` of a file.
    pub fn number(&self, file: &str, name: &str) -> Result<u64> {
        let text = self.read(file);
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(line.with_context(|| format!("{file} has no {name}"))?.parse()?)
    }

    /// Returns the bytes of kernel memory that are charged to the group. Takes some seconds: the
    /// kernel adds small changes to its statistics every two seconds.
    pub fn kernel_memory(&self) -> Result<u64> {
        std::thread::sleep(Duration::from_secs(3));
        self.number("memory.stat", "kernel")
    }

    /// Limits the memory of the group to its present use and `bytes` more.
    pub fn leave_room(&self, bytes: u64) -> Result<()> {
        let limit = self.read("memory.current").parse::<u64>()? + bytes;
        self.write("memory.max", &limit.to_string())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = self.leave();
        let _ = fs::remove_dir(&self.own);
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = fs::remove_dir(&self.mount);
    }
}
