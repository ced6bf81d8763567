// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Configures the guest for fuzzing: a network namespace with a device of its own, an early report
//! of hung tasks, and failing allocations.
#![allow(unsafe_code)]

use anyhow::{ensure, Context as _, Result};
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

/// The device's address.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

const ADD: &str = "rdma link add rxef type rxe netdev fuzz0";
const DELETE: &str = "rdma link del rxef";

/// Settings of the kernel. Settings that this kernel lacks are skipped.
const SETTINGS: &[(&str, &str)] = &[
    ("/proc/sys/kernel/hung_task_timeout_secs", "25"),
    ("/proc/sys/debug/exception-trace", "0"),
    ("/sys/kernel/debug/failslab/ignore-gfp-wait", "N"),
    ("/sys/kernel/debug/failslab/verbose", "0"),
    ("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N"),
    ("/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem", "N"),
    ("/sys/kernel/debug/fail_page_alloc/min-order", "0"),
    ("/sys/kernel/debug/fail_page_alloc/verbose", "0"),
    ("/sys/kernel/debug/fail_usercopy/verbose", "0"),
    ("/sys/kernel/debug/kdapl/fail_kvmalloc/verbose", "0"),
];

/// The network namespace. Its devices are removed with it.
pub struct Host(());

impl Host {
    /// Moves this process to a new network namespace, with a device `rxef` on `fuzz0`, and a device
    /// `rxe6` with an IPv6 address only.
    ///
    /// # Errors
    /// If this is not root, or the kernel has no soft-RoCE.
    pub fn make() -> Result<Self> {
        for (path, value) in SETTINGS {
            let _ = fs::write(path, value);
        }
        // SAFETY: changes this process alone.
        let failed = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        ensure!(
            failed == 0,
            "cannot create a network namespace: {}",
            std::io::Error::last_os_error()
        );
        let host = Self(());
        for line in [
            "ip link set lo up",
            "ip link add fuzz0 type dummy",
            "ip link set fuzz0 mtu 4200",
            &format!("ip addr add {ADDRESS}/24 dev fuzz0"),
            "ip addr add fd09::1/64 dev fuzz0 nodad",
            "ip link set fuzz0 up",
            "ip link add fuzz6 type dummy",
            "ip addr add fd09:6::1/64 dev fuzz6 nodad",
            "ip link set fuzz6 up",
            "rdma link add rxe6 type rxe netdev fuzz6",
            ADD,
        ] {
            command(line)?;
        }
        Ok(host)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = command("rdma link del rxe6");
        let _ = command(DELETE);
    }
}

/// Removes the RDMA device while it is in use, and adds it again.
///
/// # Errors
/// If it cannot be removed or added.
pub fn replug() -> Result<()> {
    command(DELETE)?;
    command(ADD)
}

/// Runs a command without quotes.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn command(line: &str) -> Result<()> {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output();
    let output = output.with_context(|| format!("cannot run {line}"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{line}: {}", error.trim());
    Ok(())
}
