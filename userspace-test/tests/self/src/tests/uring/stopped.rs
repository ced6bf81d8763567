// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Commands of a process that is stopped, or killed, while events arrive for them.

use super::super::tests;
use super::commands::{self, HeapMessage, InFlight};
use crate::context::Context;
use crate::expect::same;
use crate::fork::Child;
use crate::machine::objects;
use crate::software::{software, take};
use anyhow::{ensure, Context as _, Result};
use io_uring::{opcode, squeue::Flags, IoUring};
use libkdapl::sys::kdapl_event;
use libkdapl::Evd;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

tests! {
    killed_amid_events, 60, "A process whose stream always finds events ends when it is killed, and leaves most of them";
    ring_closes, 60, "The close of a ring whose woken command belongs to a stopped process keeps no processor busy";
}

/// Batches that a stream takes at once.
const BATCHES: u64 = 16;

fn stop() {
    // SAFETY: it stops this process, until another one continues or kills it.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Lets this thread run before all ordinary ones of one processor, until the drop. Children that
/// are created before share the processor.
struct First;

impl First {
    fn schedule(policy: i32, sched_priority: i32) -> Result<()> {
        let parameters = libc::sched_param { sched_priority };
        // SAFETY: the parameters are valid.
        let done = unsafe { libc::sched_setscheduler(0, policy, &parameters) };
        ensure!(done == 0, "sched_setscheduler: {}", std::io::Error::last_os_error());
        Ok(())
    }

    fn new() -> Result<Self> {
        Self::schedule(libc::SCHED_FIFO, 1)?;
        Ok(Self)
    }
}

impl Drop for First {
    fn drop(&mut self) {
        let _ = Self::schedule(libc::SCHED_OTHER, 0);
    }
}

/// Binds this thread, and children that it creates from now on, to the first processor.
fn bind() -> Result<()> {
    // SAFETY: zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set has this number.
    unsafe { libc::CPU_SET(0, &mut set) };
    // SAFETY: the set is valid.
    let done = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    ensure!(done == 0, "sched_setaffinity: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Streams the events of an EVD into as many buffers, and sleeps.
fn stream_and_sleep(evd: &Evd, events: u16, report: &mut UnixStream) -> Result<()> {
    let mut ring = IoUring::builder().setup_cqsize(4096).build(8)?;
    let memory = vec![kdapl_event::default(); events.into()];
    let (buffers, size) = (memory.as_ptr() as *mut u8, size_of::<kdapl_event>() as i32);
    let provide = opcode::ProvideBuffers::new(buffers, size, events, 0, 0);
    same("provide", commands::run(&mut ring, provide.build())?, 0)?;
    let mut message = HeapMessage::new(commands::stream_message(evd));
    let device = evd.device().as_raw_fd();
    commands::push(&mut ring, &commands::stream_entry(device, message.address(), 0, 1))?;
    report.write_all(&[1])?;
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn killed_amid_events(context: &Context) -> Result<()> {
    const EVENTS: u16 = 1000;
    bind()?;
    let evd = software(context, EVENTS.into())?;
    let (mut ready, mut report) = UnixStream::pair()?;
    let mut child = Child::start(|| stream_and_sleep(&evd, EVENTS, &mut report))?;
    ready.read_exact(&mut [0])?;
    // The child runs when this thread sleeps. It is killed before it takes the first event.
    let first = First::new()?;
    (0..EVENTS.into()).try_for_each(|number| evd.post_se(number))?;
    child.signal(libc::SIGKILL)?;
    let status = child.end()?;
    ensure!(libc::WIFSIGNALED(status), "the child has ended by itself: {status:#x}");
    drop(first);
    let (events, left) = (u64::from(EVENTS), u64::from(evd.query()?.queued));
    ensure!(left + BATCHES >= events, "the dying process took {} events", events - left);
    (events - left..events).try_for_each(|number| same("event", take(&evd)?, number))
}

/// Returns the time that each worker of the kernel has used, in hundredths of a second, by the
/// worker's number.
fn worker_times() -> Result<HashMap<OsString, u64>> {
    let mut workers = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        // A process may end meanwhile.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((name, fields)) = stat.rsplit_once(") ") else { continue };
        if !name.contains("(kworker/") {
            continue;
        }
        let times = fields.split(' ').skip(11).take(2);
        let time = times.map(str::parse::<u64>).sum::<Result<u64, _>>().context("times")?;
        workers.insert(entry.file_name(), time);
    }
    Ok(workers)
}

fn ring_closes(context: &Context) -> Result<()> {
    let before = objects()?;
    let evd = software(context, 4)?;
    let ring = IoUring::new(8)?;
    let mut child = Child::start(|| {
        // SAFETY: the parent's copy stays as it is. The child uses its own, to close it.
        let mut own = unsafe { std::ptr::read(&ring) };
        let wait = InFlight::start(&mut own, &evd, Flags::empty(), 1)?;
        // Closes the child's descriptor of the ring, and its mappings.
        drop(own);
        stop();
        // The process goes on: its command has ended without the event.
        same("taken", wait.message.read().taken, 0)
    })?;
    ensure!(child.stops()?, "the child has ended: {:#x}", child.end()?);
    evd.post_se(5)?;
    drop(ring);
    let start = worker_times()?;
    std::thread::sleep(Duration::from_secs(1));
    // A worker may end meanwhile, and another one begin.
    let since =
        |(worker, time): (&OsString, &u64)| time.saturating_sub(*start.get(worker).unwrap_or(&0));
    let used: u64 = worker_times()?.iter().map(since).sum();
    ensure!(used < 50, "workers of the kernel used {used} hundredths of a second in one second");
    child.signal(libc::SIGCONT)?;
    same("the child's end", child.end()?, 0)?;
    context.until("the wait has ended", || {
        let waits = evd.wait(Some(Duration::ZERO), 2).err().and_then(|error| error.kind());
        Ok(waits != Some(libkdapl::Type::INVALID_STATE))
    })?;
    same("the event is left", take(&evd)?, 5)?;
    drop(evd);
    context.until("the objects are as before", || Ok(objects()? == before))
}
