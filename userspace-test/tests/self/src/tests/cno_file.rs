// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! File of a notification object (CNO), for `poll()` and `epoll`.

use super::cno::evd;
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, empty, refused_as, same};
use crate::records::{in_time, open_at_limit, poll, Epoll};
use crate::software::take;
use crate::threads::Worker;
use anyhow::Result;
use libkdapl::{Close, DtoOperation, Subtype, Type};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

tests! {
    readable_while_triggered, 20, "A CNO's file is readable as long as a wait would return at once, and not longer";
    trigger_wakes_poll, 60, "A poll of a CNO's file is woken by a completion, and by the consumer's trigger";
    epoll_of_many, 30, "epoll on the files of many CNOs reports the CNO that has triggered";
    hang_up_after_free, 20, "A CNO's file outlives the CNO and its IA, and then reports a hang-up";
    ia_close_ends_poll, 20, "A close of the IA ends a poll of its CNO's file";
    other_file_operations, 20, "A CNO's file supports no write and no ioctl, and is closed by exec";
    open_file_limit, 20, "A process at its limit of open files gets no file for a CNO";
}

/// Starts a thread that sleeps in `poll()`.
fn sleeper(context: &Context, file: &OwnedFd) -> Result<Worker<Result<i16>>> {
    let (file, patience) = (file.try_clone()?, context.patience());
    let worker = Worker::start(move || in_time(&file, libc::POLLIN, patience))?;
    worker.asleep_in(context, libc::SYS_poll)?;
    Ok(worker)
}

/// Polls a file for input without waiting.
pub fn input_now(file: &impl AsFd) -> Result<i16> {
    poll(file, libc::POLLIN, Duration::ZERO)
}

fn readable_while_triggered(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (file, cno) = ia.create_cno_fd()?;
    let (one, two) = (evd(&ia, &cno)?, evd(&ia, &cno)?);
    let wait = || Ok::<_, anyhow::Error>(cno.wait(Some(Duration::ZERO))?);
    same("before any event", input_now(&file)?, 0)?;
    (0..3).try_for_each(|number| one.post_se(number))?;
    same("with events", input_now(&file)?, libc::POLLIN)?;
    same("a second poll", input_now(&file)?, libc::POLLIN)?;
    same("EVD", wait()?, Some(one.handle()))?;
    // The EVD was returned, but not emptied.
    same("one of three taken", take(&one)?, 0)?;
    same("with two left", input_now(&file)?, libc::POLLIN)?;
    same("EVD", wait()?, Some(one.handle()))?;
    same("events", (take(&one)?, take(&one)?), (1, 2))?;
    same("emptied", input_now(&file)?, 0)?;
    cno.trigger()?;
    same("triggered by the consumer", input_now(&file)?, libc::POLLIN)?;
    same("EVD", wait()?, None)?;
    same("after a wait", input_now(&file)?, 0)?;
    // An EVD that is unlinked or freed takes its trigger along.
    one.post_se(4)?;
    one.modify_cno(None)?;
    two.post_se(5)?;
    two.free()?;
    same("without EVDs", input_now(&file)?, 0)?;
    one.modify_cno(Some(&cno))?;
    same("with an EVD that has an event", input_now(&file)?, libc::POLLIN)
}

fn trigger_wakes_poll(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let recv = &pair.server.recv;
    let (file, cno) = pair.server.ia.create_cno_fd()?;
    recv.modify_cno(Some(&cno))?;
    for round in 0..context.count(100).max(3) {
        pair.server.receive(0, 64, round)?;
        let worker = sleeper(context, &file)?;
        pair.client.send(0, 64, round)?;
        same("poll", worker.join()??, libc::POLLIN)?;
        same("EVD", cno.wait(Some(Duration::ZERO))?, Some(recv.handle()))?;
        done(&recv.dequeue()?.0, DtoOperation::Receive, 64, round)?;
        empty(recv)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, round)?;
    }
    let worker = sleeper(context, &file)?;
    cno.trigger()?;
    same("poll", worker.join()??, libc::POLLIN)
}

fn epoll_of_many(context: &Context) -> Result<()> {
    const CNOS: usize = 20;
    let ia = context.open()?;
    let epoll = Epoll::new()?;
    let mut cnos = Vec::new();
    for number in 0..CNOS {
        let (file, cno) = ia.create_cno_fd()?;
        let evd = evd(&ia, &cno)?;
        epoll.add(&file, libc::EPOLLIN, number as u64)?;
        cnos.push((file, cno, evd));
    }
    same("before any event", epoll.next(Duration::ZERO)?, None)?;
    for round in 0..context.count(1000).max(20) {
        let number = context.rng().usize(0..CNOS);
        let (_, cno, evd) = &cnos[number];
        evd.post_se(round)?;
        same("CNO", epoll.next(context.patience())?, Some((libc::EPOLLIN, number as u64)))?;
        same("EVD", cno.wait(Some(Duration::ZERO))?, Some(evd.handle()))?;
        same("event", take(evd)?, round)?;
    }
    same("at the end", epoll.next(Duration::ZERO)?, None)
}

/// Returns the number of references to the module that keep it loaded.
pub fn users() -> Result<u64> {
    Ok(std::fs::read_to_string("/sys/module/kdapl/refcnt")?.trim().parse()?)
}

fn hang_up_after_free(context: &Context) -> Result<()> {
    let before = users()?;
    let ia = context.open()?;
    let (first, cno) = ia.create_cno_fd()?;
    cno.free()?;
    same("of a freed CNO", input_now(&first)? & libc::POLLHUP, libc::POLLHUP)?;
    refused_as(cno.file(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_CNO)?;
    drop(cno);
    let (second, cno) = ia.create_cno_fd()?;
    evd(&ia, &cno)?.post_se(1)?;
    ia.close(Close::Abrupt)?;
    same("of a closed IA", input_now(&second)? & libc::POLLHUP, libc::POLLHUP)?;
    drop((ia, cno));
    same("of a closed device file", input_now(&second)? & libc::POLLHUP, libc::POLLHUP)?;
    drop(first);
    // The file keeps the module loaded.
    same("users of the module", users()?, before + 1)?;
    drop(second);
    same("users of the module", users()?, before)
}

fn ia_close_ends_poll(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (file, _cno) = ia.create_cno_fd()?;
    let worker = sleeper(context, &file)?;
    ia.close(Close::Abrupt)?;
    same("hung up", worker.join()?? & libc::POLLHUP, libc::POLLHUP)
}

fn other_file_operations(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (file, cno) = ia.create_cno_fd()?;
    cno.trigger()?;
    // SAFETY: the call reads flags only.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFD) };
    same("flags", flags, libc::FD_CLOEXEC)?;
    let number = libkdapl::raw::call::CNO_TRIGGER.request();
    // SAFETY: no file operation of it reads memory.
    let asked = unsafe { libc::ioctl(file.as_raw_fd(), number as _, std::ptr::null::<u8>()) };
    same("ioctl", (asked, errno()), (-1, Some(libc::ENOTTY)))?;
    let mut other = std::fs::File::from(file.as_fd().try_clone_to_owned()?);
    let written = other.write(&[0; 8]).map_err(|error| error.raw_os_error());
    same("write", written, Err(Some(libc::EBADF)))?;
    same("after all calls", input_now(&file)?, libc::POLLIN)
}

fn errno() -> Option<i32> {
    std::io::Error::last_os_error().raw_os_error()
}

fn open_file_limit(context: &Context) -> Result<()> {
    let cno = context.open()?.create_cno(None)?;
    let file = open_at_limit(|| cno.file())?;
    same("a file", input_now(&file)?, 0)
}
