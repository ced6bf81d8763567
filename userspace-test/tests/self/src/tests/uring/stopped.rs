// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Commands of a process that is stopped, or killed, while events arrive for them.

use super::super::tests;
use super::ends::{end_of, fork};
use super::plain::InFlight;
use crate::context::Context;
use crate::expect::same;
use crate::machine::objects;
use crate::software::{software, take};
use anyhow::{ensure, Context as _, Result};
use io_uring::{squeue::Flags, IoUring};
use libkdapl::uring::Ring;
use std::fs;
use std::time::Duration;

tests! {
    killed_amid_events, 60, "A process whose stream always finds events ends when it is killed, and leaves most of them";
    ring_closes, 60, "The close of a ring whose woken command belongs to a stopped process keeps no processor busy";
}

/// Batches that a stream takes at once.
const BATCHES: usize = 16;

/// Ends a child when the test fails.
struct Stopped(i32);

impl Stopped {
    /// Waits until the child has stopped itself.
    fn new(child: i32) -> Result<Self> {
        let this = Self(child);
        let mut status = 0;
        // SAFETY: there is room for the status.
        let stopped = unsafe { libc::waitpid(child, &mut status, libc::WUNTRACED) };
        ensure!(stopped == child && libc::WIFSTOPPED(status), "the child has ended: {status:#x}");
        Ok(this)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: it signals a child of this process that was not waited for.
        unsafe { libc::kill(self.0, signal) };
    }

    fn kill(self) -> Result<()> {
        self.signal(libc::SIGKILL);
        let status = end_of(self.0)?;
        std::mem::forget(self);
        ensure!(libc::WIFSIGNALED(status), "the child has ended by itself: {status:#x}");
        Ok(())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = end_of(self.0);
    }
}

fn stop() {
    // SAFETY: it stops this process, until another one continues or kills it.
    unsafe { libc::raise(libc::SIGSTOP) };
}

fn killed_amid_events(context: &Context) -> Result<()> {
    const EVENTS: usize = 1000;
    let evd = software(context, EVENTS as i32)?;
    let child = fork(|| {
        let mut ring = Ring::new(8)?;
        ring.provide_buffers(1 << 10, 1)?;
        ring.stream(&evd, 1, 1)?;
        ring.submit()?;
        stop();
        Ok(())
    })?;
    let child = Stopped::new(child)?;
    (0..EVENTS as u64).try_for_each(|number| evd.post_se(number))?;
    child.kill()?;
    let left = evd.query()?.queued as usize;
    ensure!(left + BATCHES >= EVENTS, "the dying process took {} events", EVENTS - left);
    (EVENTS - left..EVENTS).try_for_each(|number| same("event", take(&evd)?, number as u64))
}

/// Returns the time that workers of the kernel have used, in hundredths of a second.
fn worker_time() -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir("/proc")? {
        // A process may end meanwhile.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
        let Some((name, fields)) = stat.rsplit_once(") ") else { continue };
        if !name.contains("(kworker/") {
            continue;
        }
        let times = fields.split(' ').skip(11).take(2);
        sum += times.map(str::parse::<u64>).sum::<Result<u64, _>>().context("times")?;
    }
    Ok(sum)
}

fn ring_closes(context: &Context) -> Result<()> {
    let before = objects()?;
    let evd = software(context, 4)?;
    let ring = IoUring::new(8)?;
    let child = fork(|| {
        // SAFETY: the parent's copy stays as it is. The child uses its own, to close it.
        let mut own = unsafe { std::ptr::read(&ring) };
        let wait = InFlight::start(&mut own, &evd, Flags::empty(), 1)?;
        // Closes the child's descriptor of the ring, and its mappings.
        drop(own);
        stop();
        // The process goes on: its command has ended without the event.
        same("taken", wait.message.read().taken, 0)
    })?;
    let child = Stopped::new(child)?;
    evd.post_se(5)?;
    drop(ring);
    let start = worker_time()?;
    std::thread::sleep(Duration::from_secs(1));
    let used = worker_time()? - start;
    ensure!(used < 50, "workers of the kernel used {used} hundredths of a second in one second");
    child.signal(libc::SIGCONT);
    let status = end_of(child.0)?;
    std::mem::forget(child);
    same("the child's end", status, 0)?;
    context.until("the wait has ended", || {
        let waits = evd.wait(Some(Duration::ZERO), 2).err().and_then(|error| error.kind());
        Ok(waits != Some(libkdapl::Type::INVALID_STATE))
    })?;
    same("the event is left", take(&evd)?, 5)?;
    drop(evd);
    context.until("the objects are as before", || Ok(objects()? == before))
}
