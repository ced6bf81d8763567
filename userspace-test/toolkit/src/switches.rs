// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Count of context switches.

/// Returns `voluntary_ctxt_switches` of the calling thread.
pub fn of_this_thread() -> u64 {
    std::fs::read_to_string("/proc/thread-self/status")
        .ok()
        .and_then(|status| {
            status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
                .and_then(|count| count.trim().parse().ok())
        })
        .unwrap_or(0)
}
