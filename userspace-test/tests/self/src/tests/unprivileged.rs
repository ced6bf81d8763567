// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Hostile tests as an ordinary user, whose limit of locked memory counts. Root's CAP_IPC_LOCK
//! bypasses that limit, and its capabilities those of devices.
//!
//! Tests that withhold pages (`userfaultfd`) or change the machine need root, and are not repeated.

use super::tests;
use crate::context::Context;
use crate::expect::refused;
use crate::machine::{become_user_with, CAP_DAC_READ_SEARCH, CAP_SYS_RAWIO, NOBODY};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Buffer, Privileges, Type};

tests! {
    #![Hosts]
    random_messages, 120, "Random messages of an ordinary user do no harm";
    region_lengths, 60,
        "An ordinary user's region of any length at any address that it does not have is refused";
    extreme_words, 300, "Extreme values in any word of an ordinary user's message do no harm";
    vanishing_memory, 120,
        "An ordinary user's reads into memory that another thread unmaps lose no event";
    frees, 240, "An ordinary user's reads, writes and polls end while EVDs are freed and IAs closed";
    index_beside_writer, 60,
        "An ordinary user that writes any index of mapped events leaves no write asleep beside room";
    kills, 120, "An ordinary user's processes that are killed in reads and polls leave nothing behind";
    same_answers, 60, "Each request of an ordinary user has the same answer as a command";
    malformed_entries, 20, "An ordinary user's malformed submission entry is refused";
    bad_addresses, 20, "An ordinary user's message at a bad address is refused";
    malformed_streams, 20, "An ordinary user's stream with a malformed message is refused";
    unmapped_in_flight, 30, "An ordinary user that unmaps a message in flight loses no event";
    bad_buffers, 20, "An ordinary user's provided buffer that is too short ends the stream";
    overflow, 30, "An ordinary user's stream that finds its completion queue full ends";
}

/// Limit of locked memory, in bytes: the kernel's default.
const LOCKED: u64 = 8 << 20;

/// Runs a test as an ordinary user. It may read the module's counters of objects, and open a siw
/// device.
fn as_user(context: &Context, test: fn(&Context) -> Result<()>) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: LOCKED, rlim_max: LOCKED };
    // SAFETY: changes this process only, which runs only this test.
    let limited = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) };
    ensure!(limited == 0, "setrlimit: {}", std::io::Error::last_os_error());
    let device = if context.client.is_siw() { CAP_SYS_RAWIO } else { 0 };
    become_user_with(NOBODY, CAP_DAC_READ_SEARCH | device)?;
    // Otherwise the process could not look at its own threads.
    // SAFETY: the call reads no memory.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
    limit_counts(context)?;
    test(context)
}

/// Checks that the limit of locked memory counts for this process.
fn limit_counts(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    let register = |length| ia.register(&pz, Buffer::new(length)?, Privileges::ALL);
    refused(register(LOCKED as usize + 4096), Type::INSUFFICIENT_RESOURCES)?;
    register(64 << 10).map(drop).context("a region below the limit")
}

/// Defines each test by the one of a file that root runs.
macro_rules! as_user {
    ($file:path => $($test:ident)*) => {$(
        fn $test(context: &Context) -> Result<()> {
            use $file as by_root;
            as_user(context, by_root::$test)
        }
    )*};
}

as_user!(crate::tests::ioctl => random_messages);
as_user!(crate::tests::limits => region_lengths extreme_words);
as_user!(crate::tests::evd_file::hostile => vanishing_memory frees index_beside_writer kills);
as_user!(crate::tests::uring::hostile => same_answers malformed_entries bad_addresses malformed_streams);
as_user!(crate::tests::uring::hostile => unmapped_in_flight bad_buffers overflow);
