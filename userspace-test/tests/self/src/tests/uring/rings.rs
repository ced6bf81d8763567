// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Commands in rings of every kind: long entries, registered files, links, polled completions.

use super::super::tests;
use super::commands::{self, entry, push, result, run, wait_message, HeapMessage};
use super::hostile::of;
use crate::context::Context;
use crate::expect::{empty, refused_as, same};
use crate::raw::BAD_ADDRESS;
use crate::software::{software, take};
use anyhow::{ensure, Context as _, Result};
use io_uring::{cqueue, squeue, squeue::Flags, IoUring};
use libkdapl::raw::call::{self, EVD_DEQUEUE, EVD_POST_SE, EVD_WAIT};
use libkdapl::sys::{kdapl_evd_post_se, kdapl_event};
use libkdapl::{Subtype, Type};

tests! {
    iopoll_ring, 20, "A ring that polls devices for completions is refused";
    other_rings, 60, "Rings with long entries, with long completions, with a kernel thread, and plain ones execute commands alike";
    fixed_file, 20, "Commands find the device by its index in the ring's table of files";
    linked, 20, "Commands that are linked run one after the other, and a failed one ends the chain";
}

fn iopoll_ring(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = IoUring::builder().setup_iopoll().build(8)?;
    let mut event = HeapMessage::new(kdapl_event::default());
    let mut message = HeapMessage::new(wait_message(&evd, event.address()));
    for op in [EVD_WAIT.request(), EVD_DEQUEUE.request(), call::EVD_FREE.request()] {
        let entry = entry(of(&evd), op, [message.address(), 0], 0);
        same("result", run(&mut ring, entry)?, -libc::EOPNOTSUPP)?;
    }
    Ok(())
}

/// Executes a wait that has to wait, one that has not, and a request that sleeps, on a ring.
fn exercise<S: squeue::EntryMarker + From<squeue::Entry>, C: cqueue::EntryMarker>(
    context: &Context,
    mut ring: IoUring<S, C>,
    read: fn(&C) -> (u64, i32),
) -> Result<()> {
    let evd = software(context, 4)?;
    let mut event = HeapMessage::new(kdapl_event::default());
    let mut message = HeapMessage::new(wait_message(&evd, event.address()));
    let mut handle = HeapMessage::new(libkdapl::sys::kdapl_handle {
        hdr: commands::hdr::<libkdapl::sys::kdapl_handle>(),
        handle: 0,
    });
    let (fd, at) = (of(&evd), message.address());
    let submit = |ring: &mut IoUring<S, C>, entry: squeue::Entry| -> Result<()> {
        // SAFETY: the memory outlives the command.
        unsafe { ring.submission().push(&S::from(entry)) }.context("the queue is full")?;
        ring.submit()?;
        Ok(())
    };
    submit(&mut ring, entry(fd, EVD_WAIT.request(), [at, 0], 1))?;
    context.until("the entry was issued", || Ok(ring.submission().is_empty()))?;
    let waits = evd.wait(Some(std::time::Duration::ZERO), 1);
    refused_as(waits, Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_WAITER)?;
    evd.post_se(9)?;
    submit(&mut ring, entry(fd, call::PZ_CREATE.request(), [handle.address(), 0], 2))?;
    let mut results = Vec::new();
    while results.len() < 2 {
        if let Some(completion) = ring.completion().next() {
            results.push(read(&completion));
            continue;
        }
        ring.submit_and_wait(1)?;
    }
    results.sort_unstable();
    same("results", results, vec![(1, 0), (2, 0)])?;
    same("DAT codes", (message.read().hdr.ret, handle.read().hdr.ret), (0, 0))?;
    same("event", (message.read().taken, event.read().cookie), (1, 9))?;
    ensure!(handle.read().handle != 0, "no handle");
    empty(&evd)
}

fn other_rings(context: &Context) -> Result<()> {
    let short = |entry: &cqueue::Entry| (entry.user_data(), entry.result());
    let long = |entry: &cqueue::Entry32| (entry.user_data(), entry.result());
    let step = |what| move |error: anyhow::Error| error.context(what);
    exercise(context, IoUring::new(8)?, short).map_err(step("a plain ring"))?;
    let ring = IoUring::<squeue::Entry128, cqueue::Entry>::builder().build(8)?;
    exercise(context, ring, short).map_err(step("long submission entries"))?;
    let ring = IoUring::<squeue::Entry, cqueue::Entry32>::builder().build(8)?;
    exercise(context, ring, long).map_err(step("long completions"))?;
    let ring: IoUring = IoUring::builder().setup_sqpoll(100).build(8)?;
    exercise(context, ring, short).map_err(step("a thread of the kernel's"))?;
    let ring: IoUring = IoUring::builder().setup_coop_taskrun().setup_taskrun_flag().build(8)?;
    exercise(context, ring, short).map_err(step("cooperative completions"))?;
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
    let ring: IoUring = builder.build(8)?;
    exercise(context, ring, short).map_err(step("deferred completions"))
}

fn fixed_file(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = IoUring::new(8)?;
    ring.submitter().register_files(&[of(&evd)])?;
    let mut event = HeapMessage::new(kdapl_event::default());
    let mut message = HeapMessage::new(wait_message(&evd, event.address()));
    let entry = entry(0, EVD_WAIT.request(), [message.address(), 0], 4).flags(Flags::FIXED_FILE);
    push(&mut ring, &entry)?;
    // The command keeps its file.
    ring.submitter().unregister_files()?;
    evd.post_se(3)?;
    same("result", result(&mut ring, 4)?, 0)?;
    same("event", event.read().cookie, 3)
}

fn linked(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    let mut ring = IoUring::new(8)?;
    let post = |pointer| {
        HeapMessage::new(kdapl_evd_post_se {
            hdr: commands::hdr::<kdapl_evd_post_se>(),
            handle: evd.handle().0,
            pointer,
        })
    };
    let op = EVD_POST_SE.request();
    let (mut one, mut two, mut three) = (post(1), post(2), post(3));
    let chain = |second: u64, first: &mut HeapMessage<_>, third: &mut HeapMessage<_>| {
        [
            entry(of(&evd), op, [first.address(), 0], 1).flags(Flags::IO_LINK),
            entry(of(&evd), op, [second, 0], 2).flags(Flags::IO_LINK),
            entry(of(&evd), op, [third.address(), 0], 3),
        ]
    };
    for (second, results, events) in [
        (two.address(), [0, 0, 0], vec![1, 2, 3]),
        (BAD_ADDRESS, [0, -libc::EFAULT, -libc::ECANCELED], vec![1]),
    ] {
        for entry in &chain(second, &mut one, &mut three) {
            // SAFETY: the memory outlives the commands.
            unsafe { ring.submission().push(entry) }.context("the queue is full")?;
        }
        ring.submit()?;
        for (user_data, expected) in (1..).zip(results) {
            same("result", result(&mut ring, user_data)?, expected)?;
        }
        for expected in events {
            same("event", take(&evd)?, expected)?;
        }
        empty(&evd)?;
    }
    Ok(())
}
