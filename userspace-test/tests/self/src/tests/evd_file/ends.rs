// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ends: the EVD is freed, its IA closed, its device removed; and files in other processes.

use super::sleeps::{pointers, reader};
use super::with_file;
use crate::cgroup::Cgroup;
use crate::context::Context;
use crate::expect::{refused_as, same};
use crate::machine::{become_user, no_objects_left, DeviceGuard};
use crate::records::{in_time, now, read_events, EVENT};
use crate::tests::cno_file::users;
use crate::tests::tests;
use crate::threads::Worker;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, EvdFlags, Subtype, Type};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;

tests! {
    free, 20, "A free of an EVD ends a sleeping read, write and poll of its file, and discards its events";
    close, 20, "A close of the IA ends a sleeping read, write and poll of its EVD's file";
    #[Long]
    small_after_close, 120, "A file whose adapter was closed keeps little memory, however many EVDs the adapter had";
    module, 20, "A file keeps the module loaded, and neither the IA nor its objects";
    other_process, 60, "Another process, of another user, reads and writes by an EVD's file, to its end";
    removal, 120, "After the device was removed, a read returns the queued events, then the end of the file";
}

fn small_after_close(context: &Context) -> Result<()> {
    const EVDS: usize = 4_100;
    // The next power of two of entries, each with a handle and a pointer.
    const TABLE: u64 = (EVDS as u64).next_power_of_two() * 16;
    let cgroup = Cgroup::enter("memory", "memory.max", "max")?;
    // The kernel keeps some memory after the first one.
    drop(file_of_closed_ia(context, 100)?);
    let before = cgroup.kernel_memory()?;
    let file = file_of_closed_ia(context, EVDS)?;
    let kept = || Ok(cgroup.kernel_memory()?.saturating_sub(before));
    let is_small = || -> Result<bool> { Ok(kept()? < TABLE / 2) };
    context.until("the memory is free", is_small).with_context(|| {
        let kept: Result<u64> = kept();
        format!("the file keeps {kept:?} bytes, a table has {TABLE}")
    })?;
    is_over(&file)
}

/// Opens the file of the last of many EVDs, and closes their adapter.
fn file_of_closed_ia(context: &Context, evds: usize) -> Result<libkdapl::EvdFile> {
    let ia = context.open()?;
    let evds =
        (0..evds).map(|_| ia.create_evd(EvdFlags::SOFTWARE, 1)).collect::<Result<Vec<_>, _>>()?;
    let file = evds.last().context("an EVD")?.file()?;
    ia.close(Close::Abrupt)?;
    Ok(file)
}

/// Checks a file whose EVD is gone.
fn is_over(file: &libkdapl::EvdFile) -> Result<()> {
    same("poll", now(file)?, libc::POLLHUP)?;
    same("a read", read_events(file, 1), Ok(Vec::new()))?;
    let errno = file.write(&[1]).map_err(|error| error.errno());
    same("a write", errno.err(), Some(Some(libc::EPIPE)))
}

/// Lets threads sleep on files of an EVD until `end`, and checks that it ends them.
fn ends_sleepers(context: &Context, end: impl FnOnce(&libkdapl::Evd) -> Result<()>) -> Result<()> {
    let (evd, file) = with_file(context, 2)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    let reading = reader(context, &file)?;
    let (polled, patience) = (file.clone(), context.patience());
    let polling = Worker::start(move || in_time(&*polled, libc::POLLIN, patience))?;
    polling.asleep_in(context, libc::SYS_poll)?;
    end(&evd)?;
    same("the read", reading.join()??.len(), 0)?;
    same("the poll", polling.join()??, libc::POLLHUP)?;
    is_over(&file)
}

/// Lets a thread sleep in a write until `end`, and checks that it ends it.
fn ends_writer(context: &Context, end: impl FnOnce(&libkdapl::Evd) -> Result<()>) -> Result<()> {
    let (evd, file) = with_file(context, 2)?;
    file.write(&[1, 2])?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    let writes = file.clone();
    let writing = Worker::start(move || writes.write(&[3]).map_err(|error| error.errno()))?;
    writing.asleep_in(context, libc::SYS_write)?;
    end(&evd)?;
    same("the write", writing.join()?, Err(Some(libc::EPIPE)))?;
    is_over(&file)
}

fn free(context: &Context) -> Result<()> {
    ends_sleepers(context, |evd| Ok(evd.free()?))?;
    ends_writer(context, |evd| Ok(evd.free()?))?;
    let (evd, file) = with_file(context, 4)?;
    evd.free()?;
    refused_as(evd.file(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EVD_REQUEST)?;
    is_over(&file)
}

fn close(context: &Context) -> Result<()> {
    // An abrupt close, by the file of the device.
    let close = |evd: &libkdapl::Evd| -> Result<()> {
        let mut message = libkdapl::sys::kdapl_ia_close {
            flags: libkdapl::sys::KDAPL_CLOSE_ABRUPT,
            ..Default::default()
        };
        let call = libkdapl::raw::call::IA_CLOSE;
        Ok(crate::raw::call(evd.device(), call, &mut message)?)
    };
    ends_sleepers(context, close)?;
    ends_writer(context, close)
}

fn module(context: &Context) -> Result<()> {
    let before = users()?;
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4096)?;
    let (file, second): (OwnedFd, OwnedFd) = (evd.file()?.into(), evd.file()?.into());
    evd.post_se(1)?;
    ia.close(Close::Abrupt)?;
    drop((evd, ia));
    // Only the two files are left.
    no_objects_left(context.settings.scale)?;
    same("users of the module", users()?, before + 2)?;
    same("poll", now(&file)?, libc::POLLHUP)?;
    same("a read", read_events(&file, 1), Ok(Vec::new()))?;
    drop((file, second));
    same("users of the module", users()?, before)
}

fn other_process(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 16)?;
    let file = evd.file()?;
    // The thread that starts the process is an ordinary user without capabilities.
    let mut command = Command::new("dd");
    command.args(["bs=64", "status=none"]).stdin(Stdio::from(file.as_fd().try_clone_to_owned()?));
    command.stdout(Stdio::piped());
    let child = std::thread::spawn(move || -> Result<_> {
        become_user(65_534)?;
        Ok(command.spawn()?)
    });
    let mut child = child.join().ok().context("the thread has panicked")??;
    let mut output = child.stdout.take().context("no pipe")?;
    for number in 0..20 {
        evd.post_se(number)?;
        let mut event = [0; EVENT];
        output.read_exact(&mut event)?;
        same("event", crate::records::cookies(&event, EVENT), vec![number])?;
    }
    ensure!(child.try_wait()?.is_none(), "the process has ended");
    // A process that writes.
    let mut writer = Command::new("dd");
    writer.args(["bs=8", "status=none"]).stdin(Stdio::piped());
    writer.stdout(Stdio::from(file.as_fd().try_clone_to_owned()?));
    let mut writer = writer.spawn()?;
    let mut input = writer.stdin.take().context("no pipe")?;
    input.write_all(&77_u64.to_ne_bytes())?;
    drop(input);
    ensure!(writer.wait()?.success(), "the process that writes has failed");
    let mut event = [0; EVENT];
    output.read_exact(&mut event)?;
    same("event", crate::records::cookies(&event, EVENT), vec![77])?;
    // The process holds no device file: the close of this one ends the IA.
    drop(file);
    ia.close(Close::Abrupt)?;
    drop((evd, ia));
    same("after the end", output.read(&mut event)?, 0)?;
    ensure!(child.wait()?.success(), "the process that reads has failed");
    no_objects_left(context.settings.scale)
}

fn removal(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let ia = context.open()?;
    let software = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    let (evd, plain) = (ia.create_evd(EvdFlags::DTO, 4)?, software.file()?);
    let file = Arc::new(evd.file()?);
    let events = ia.async_evd().file()?;
    let reading = reader(context, &file)?;
    guard.delete_of(&context.client)?;
    same("the end of completions", reading.join()??.len(), 0)?;
    same("poll", now(&*file)?, libc::POLLHUP)?;
    // Software events go on, and so do asynchronous ones.
    plain.write(&[9])?;
    same("software event", pointers(&plain.read(1)?)?, vec![9])?;
    same("poll", now(&plain)?, libc::POLLOUT)?;
    same("asynchronous events", events.read(4)?.len(), 1)?;
    drop((ia, software, evd, plain, file, events));
    guard.add()
}
