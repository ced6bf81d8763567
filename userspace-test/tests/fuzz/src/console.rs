// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Detects complaints that the kernel survives, above all lockdep's reports.

use anyhow::{Context as _, Result};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

/// Text that a healthy kernel never prints (as in `vm/lib/verdict.sh`).
const COMPLAINTS: &[&str] = &[
    "BUG:",
    "WARNING:",
    "kernel BUG at",
    "Oops",
    "KASAN",
    "UBSAN",
    "KFENCE",
    "ODEBUG",
    "general protection fault",
    "possible circular locking",
    "possible recursive locking",
    "suspicious RCU",
    "inconsistent lock state",
    "INFO: task",
    "INFO: rcu",
    "INFO: trying to register",
    "blocked for more than",
    "refcount_t:",
    "sleeping function called",
    "scheduling while atomic",
    "corruption",
    "soft lockup",
];

/// The kernel's log, from the time of its creation.
pub struct Console {
    file: File,
}

impl Console {
    /// Opens the log at its end.
    ///
    /// # Errors
    /// If this is not root.
    pub fn open() -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        let mut file = file.context("cannot read the kernel's log")?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { file })
    }

    /// Returns the first complaint since the last call.
    pub fn complaint(&mut self) -> Option<String> {
        let mut found = None;
        let mut record = [0; 8192];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => return found,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    if found.is_none() && is_complaint(&text) {
                        found = Some(text.lines().next().unwrap_or_default().to_string());
                    }
                }
                // Records were overwritten. Continue with the oldest that is left.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return found,
            }
        }
    }
}

fn is_complaint(text: &str) -> bool {
    COMPLAINTS.iter().any(|complaint| text.contains(complaint))
}
