// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Network namespaces of threads.

use anyhow::{Context as _, Result};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Network namespace of the process at its start. Hosts without a namespace of their own use it.
static INITIAL_NAMESPACE: OnceLock<File> = OnceLock::new();

/// Records the namespace, before any thread leaves it.
fn begin_here() -> Result<()> {
    if INITIAL_NAMESPACE.get().is_none() {
        // Another thread may have been faster. It has the same value.
        let _ = INITIAL_NAMESPACE.set(File::open("/proc/thread-self/ns/net")?);
    }
    Ok(())
}

fn namespace_of(name: Option<&str>) -> Result<File> {
    if let Some(name) = name {
        let path = format!("/run/netns/{name}");
        return File::open(&path).context(path);
    }
    begin_here()?;
    Ok(INITIAL_NAMESPACE.get().context("the namespace of the start is unknown")?.try_clone()?)
}

fn same(one: &File, other: &File) -> Result<bool> {
    Ok(one.metadata()?.ino() == other.metadata()?.ino())
}

/// Moves this thread into a network namespace.
fn enter(namespace: &File) -> Result<()> {
    // SAFETY: the descriptor is open; only this thread's network namespace changes.
    let outcome = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    anyhow::ensure!(outcome == 0, "setns: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Runs `work` in a network namespace, and returns to the previous one.
pub fn inside<T>(namespace: Option<&str>, work: impl FnOnce() -> T) -> Result<T> {
    let (home, there) = (File::open("/proc/thread-self/ns/net")?, namespace_of(namespace)?);
    if same(&home, &there)? {
        return Ok(work());
    }
    enter(&there)?;
    let outcome = work();
    enter(&home)?;
    Ok(outcome)
}

/// Moves this thread, and its future children, into a network namespace for good.
pub(super) fn settle(namespace: Option<&str>) -> Result<()> {
    begin_here()?;
    let (here, there) = (File::open("/proc/thread-self/ns/net")?, namespace_of(namespace)?);
    if same(&here, &there)? {
        return Ok(());
    }
    enter(&there)
}
