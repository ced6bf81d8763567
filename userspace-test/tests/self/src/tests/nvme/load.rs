// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Threads that write to a disk and read from it, while a test disturbs them.

use crate::context::Context;
use crate::nvme::Disk;
use anyhow::{ensure, Context as _, Result};
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Number of threads.
const THREADS: usize = 8;

/// Number of blocks that a thread writes in turns.
const BLOCKS: usize = 64;

/// Bytes of a block. The first threads' blocks fit into a capsule.
fn block_size(thread: usize) -> usize {
    [512, 4096, 8192, 65536][thread % 4]
}

/// Place of a thread's block.
fn place(thread: usize, number: usize) -> usize {
    thread * (4 << 20) + number % BLOCKS * block_size(thread)
}

fn content(thread: usize, number: usize) -> Vec<u8> {
    vec![(number * THREADS + thread) as u8; block_size(thread)]
}

/// Load on a disk.
pub(super) struct Load {
    stop: AtomicBool,
    /// Blocks that each thread has written.
    written: [AtomicUsize; THREADS],
}

impl Load {
    /// Writes and reads until the end. Returns the first error.
    fn run(&self, disk: &Disk, thread: usize) -> io::Result<()> {
        let mut number = 0;
        while !self.stop.load(SeqCst) {
            let bytes = content(thread, number);
            disk.try_write(place(thread, number), &bytes)?;
            if disk.try_read(place(thread, number), bytes.len())? != bytes {
                return Err(io::Error::new(ErrorKind::InvalidData, "a block has changed"));
            }
            number += 1;
            self.written[thread].store(number, SeqCst);
        }
        Ok(())
    }

    /// Waits until each thread has written some more blocks.
    pub(super) fn progress(&self, context: &Context) -> Result<()> {
        let numbers = || self.written.each_ref().map(|written| written.load(SeqCst));
        let (before, start) = (numbers(), Instant::now());
        while numbers().iter().zip(before).any(|(now, before)| *now < before + 3) {
            ensure!(start.elapsed() < 6 * context.patience(), "the load stands still");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Compares the blocks with the target's own disk.
    fn check(&self, behind: &Disk) -> Result<()> {
        for (thread, written) in self.written.iter().enumerate() {
            let written = written.load(SeqCst);
            for number in written.saturating_sub(BLOCKS)..written {
                let bytes = behind.read(place(thread, number), block_size(thread))?;
                let is_same = bytes == content(thread, number);
                ensure!(is_same, "block {number} of {written} of thread {thread} has changed");
            }
        }
        Ok(())
    }
}

/// Disturbs a load. Returns the results of its threads, which must end within the patience.
pub(super) fn disturbed(
    context: &Context,
    disk: &Disk,
    disturb: impl FnOnce(&Load) -> Result<()>,
) -> Result<(Load, Vec<io::Result<()>>)> {
    let load = Load { stop: AtomicBool::new(false), written: Default::default() };
    let outcomes = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let load = &load;
                    move || load.run(disk, thread)
                })
            })
            .collect();
        let outcome = load.progress(context).and_then(|()| disturb(&load));
        load.stop.store(true, SeqCst);
        let start = Instant::now();
        while !threads.iter().all(|thread| thread.is_finished()) {
            ensure!(start.elapsed() < 6 * context.patience(), "the load hangs");
            thread::sleep(Duration::from_millis(5));
        }
        let outcomes: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread does not panic"))
            .collect();
        outcome.with_context(|| format!("the threads: {outcomes:?}"))?;
        Ok::<_, anyhow::Error>(outcomes)
    })?;
    Ok((load, outcomes))
}

/// Disturbs a load, which must not notice it.
pub(super) fn undisturbed(
    context: &Context,
    disk: &Disk,
    behind: &Disk,
    disturb: impl FnOnce(&Load) -> Result<()>,
) -> Result<()> {
    let (load, outcomes) = disturbed(context, disk, disturb)?;
    outcomes.into_iter().collect::<io::Result<()>>()?;
    load.check(behind)
}

/// Disturbs a load, which must end with an error in each thread.
pub(super) fn broken(
    context: &Context,
    disk: &Disk,
    disturb: impl FnOnce(&Load) -> Result<()>,
) -> Result<()> {
    let (_, outcomes) = disturbed(context, disk, |load| {
        disturb(load)?;
        // Without the end of the load: the errors must end it.
        let start = Instant::now();
        let mut before = usize::MAX;
        loop {
            let now = load.written.iter().map(|written| written.load(SeqCst)).sum();
            if now == before {
                return Ok(());
            }
            ensure!(start.elapsed() < 6 * context.patience(), "the load goes on");
            before = now;
            thread::sleep(context.scaled(Duration::from_millis(500)));
        }
    })?;
    for outcome in outcomes {
        let error = outcome.err().context("a thread has no error")?;
        ensure!(error.kind() != ErrorKind::InvalidData, "{error}");
    }
    Ok(())
}
