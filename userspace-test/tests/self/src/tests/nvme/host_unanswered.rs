// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Commands of our host that a controller receives and never answers.

use super::fake::{serve, Command, Reaction, CONTENT, READ, RECEIVES, WRITE};
use crate::context::Context;
use crate::expect::same;
use crate::machine::KernelLog;
use crate::nvme::{Disk, Pair, PortSettings, Target, NQN};
use crate::tests::tests;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{DtoStatus, Segment};
use std::fs;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

tests! { #![Nvme]
    read, 120, "A read that is never answered times out, and is repeated over a new connection; the controller cannot write its memory any more";
    write, 120, "A write that is never answered times out, and is repeated over a new connection";
}

/// Time within which a command of the disk must be answered.
const IO_TIMEOUT: Duration = Duration::from_secs(2);

/// Blocks whose first read or write is not answered.
const UNANSWERED: usize = 1 << 20;
/// Block whose first read lets the controller write the memory of that read.
const ATTACK: usize = 2 << 20;

const LENGTH: usize = 4096;

/// Byte that the controller writes to memory of a read that it does not answer.
const HOSTILE: u8 = 0xbd;

/// Time between two writes of the controller to the memory of a read.
const PAUSE: Duration = Duration::from_millis(1);

/// Returns whether a command reads or writes at an offset of the disk.
fn is_at(command: &Command, opcode: u8, offset: usize) -> bool {
    command.opcode() == opcode && command.number(40) as usize == offset / 512
}

/// Sets the time within which commands of a disk must be answered.
fn set_timeout(path: &Path, time: Duration) -> Result<()> {
    let disk = path.file_name().context("the disk has no name")?.to_string_lossy().into_owned();
    let file = format!("/sys/block/{disk}/queue/io_timeout");
    fs::write(&file, time.as_millis().to_string()).with_context(|| file)
}

/// Connects our host to the controller at a port, and calls a test with its disk. The controller
/// must be live in the end, and the kernel's log have so many time-outs.
fn with_disk(
    context: &Context,
    target: &Target,
    port: u64,
    test: impl FnOnce(&Disk, Duration) -> Result<()>,
) -> Result<()> {
    let log = KernelLog::from_now()?;
    let options = "nr_io_queues=1,reconnect_delay=1,ctrl_loss_tmo=120";
    let options = format!("traddr={},trsvcid={port},nqn={NQN},{options}", target.address);
    let controller = target.connect_by(&options)?;
    let path = controller.disk_path(context.patience())?;
    let time = context.scaled(IO_TIMEOUT);
    set_timeout(&path, time)?;
    test(&Disk::open(&path)?, time)?;
    controller.wait_for("live", 6 * context.patience())?;
    let text = log.rest()?;
    let timeouts = text.matches("a command of queue 1 has timed out").count();
    ensure!(timeouts == 1, "{timeouts} commands have timed out:\n{text}");
    Ok(())
}

/// Memory of the read that is not answered, and what became of the controller's writes to it.
#[derive(Default)]
struct Victim {
    memory: Mutex<Option<Segment>>,
    /// Number of writes before the end of its connection.
    written: AtomicUsize,
    /// Status of the write over the next connection.
    later: Mutex<Option<DtoStatus>>,
}

fn read(context: &Context) -> Result<()> {
    let target = Target::of(context, Pair::of_our_host()[0], PortSettings::default())?;
    let victim = Victim::default();
    let hostile = [HOSTILE; LENGTH];
    let hook = |context: &Context, queue: &super::fake::Queue, command: &Command| {
        let known = *victim.memory.lock().expect("no panic");
        if is_at(command, READ, UNANSWERED) && known.is_none() {
            let memory = command.memory();
            *victim.memory.lock().expect("no panic") = Some(memory);
            // Until the host ends the connection.
            while queue.try_fill(context, command, &hostile, memory)? == DtoStatus::Success {
                victim.written.fetch_add(1, SeqCst);
                thread::sleep(PAUSE);
            }
            return Ok(Reaction::Done);
        }
        let is_new = victim.later.lock().expect("no panic").is_none();
        if let (true, true, Some(memory)) = (is_at(command, READ, ATTACK), is_new, known) {
            let status = queue.try_fill(context, command, &hostile, memory)?;
            *victim.later.lock().expect("no panic") = Some(status);
            return Ok(Reaction::Done);
        }
        Ok(Reaction::Usual)
    };
    serve(context, RECEIVES, &hook, |port| {
        with_disk(context, &target, port, |disk, time| attacked(disk, time, &victim))
    })
}

/// Reads a block that is not answered at first, and one during which its memory is attacked.
fn attacked(disk: &Disk, time: Duration, victim: &Victim) -> Result<()> {
    let mut memory = vec![0; LENGTH + 4096];
    let start = memory.as_ptr().align_offset(4096);
    let memory = &mut memory[start..start + LENGTH];
    let begin = Instant::now();
    disk.file.read_exact_at(memory, UNANSWERED as u64).context("the read")?;
    let elapsed = begin.elapsed();
    ensure!(elapsed >= time, "the read took {elapsed:?} only");
    same("byte of the read", black_box(&*memory)[0], CONTENT)?;
    same("byte of the next read", disk.read(ATTACK, LENGTH)?[0], CONTENT)?;
    let is_changed = black_box(&*memory).iter().any(|byte| *byte != CONTENT);
    ensure!(!is_changed, "the memory of the read has changed after its end");
    // It may write them while the command is outstanding.
    let written = victim.written.load(SeqCst);
    ensure!(written > 0, "the controller could not write the memory of the outstanding read");
    let later = *victim.later.lock().expect("no panic");
    same("status of the write after the end", later, Some(DtoStatus::RemoteAccess))
}

fn write(context: &Context) -> Result<()> {
    let target = Target::of(context, Pair::of_our_host()[0], PortSettings::default())?;
    let arrived = AtomicUsize::new(0);
    let hook = |_: &Context, _: &super::fake::Queue, command: &Command| {
        let is_first = is_at(command, WRITE, UNANSWERED) && arrived.fetch_add(1, SeqCst) == 0;
        Ok(if is_first { Reaction::Done } else { Reaction::Usual })
    };
    serve(context, RECEIVES, &hook, |port| {
        with_disk(context, &target, port, |disk, time| {
            let begin = Instant::now();
            disk.write(UNANSWERED, &[1; LENGTH])?;
            let elapsed = begin.elapsed();
            ensure!(elapsed >= time, "the write took {elapsed:?} only");
            same("times that the write arrived", arrived.load(SeqCst), 2)
        })
    })
}
