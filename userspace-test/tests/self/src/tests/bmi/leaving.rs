// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Peers that connect and leave again and again. The call that frees an Endpoint sleeps, and delays
//! no other peer.

use super::super::tests;
use super::tool::Server;
use super::{address, Side};
use crate::context::Context;
use crate::machine::count_of;
use crate::threads::sleeps;
use anyhow::{ensure, Context as _, Result};
use libkdapl_bmi::Options;
use nix::sys::ptrace;
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use std::fs;

tests! {
    #[Transport]
    held_frees, 240, "A BMI server serves on while the thread that frees Endpoints is held up, and keeps 64 of them at most";
}

/// Name of the thread that frees Endpoints.
const NAME: &str = "kdapl-bmi-end";

/// Endpoints that wait for the thread at most.
const ENDINGS: u64 = 64;

/// Returns the thread of a process that frees Endpoints, if it exists.
fn ender(process: i32) -> Result<Option<i32>> {
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let folder = entry?.path();
        if fs::read_to_string(folder.join("comm"))?.trim() == NAME {
            let name = folder.file_name().context("a name")?.to_string_lossy().parse()?;
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// A thread of another process that is held up until the drop.
struct HeldUp(Pid);

impl HeldUp {
    fn new(thread: i32) -> Result<Self> {
        let thread = Pid::from_raw(thread);
        ptrace::seize(thread, ptrace::Options::empty())?;
        let held = Self(thread);
        ptrace::interrupt(thread)?;
        // A thread that is no leader of its process is waited for by this flag.
        let status = waitpid(thread, Some(WaitPidFlag::__WALL))?;
        ensure!(matches!(status, WaitStatus::PtraceEvent(..)), "the thread reports {status:?}");
        Ok(held)
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = ptrace::detach(self.0, None);
    }
}

/// Lets a client connect, and leave after a message.
fn come_and_leave(context: &Context, server: &Server, address: &str) -> Result<()> {
    let client = Side::open(context, &context.client, &Options::default())?;
    let peer = client.bmi.lookup(address)?;
    server.echo(&client, &peer, 100)
}

fn held_frees(context: &Context) -> Result<()> {
    let address = address(context);
    let server = Server::start(context, &address)?;
    let process = server.process();
    let client = Side::open(context, &context.client, &Options::default())?;
    let peer = client.bmi.lookup(&address)?;
    server.echo(&client, &peer, 100)?;
    let connected = count_of("ep")?;
    come_and_leave(context, &server, &address)?;
    context.until("a thread frees the Endpoint", || {
        Ok(ender(process)?.is_some() && count_of("ep")? == connected)
    })?;
    server.echo(&client, &peer, 100)?;
    let thread = ender(process)?.context("the thread has ended")?;
    context.until("the thread sleeps", || sleeps(process, thread))?;
    let held = HeldUp::new(thread)?;
    for _ in 0..ENDINGS + 6 {
        come_and_leave(context, &server, &address)?;
        server.echo(&client, &peer, 100)?;
    }
    let waiting = connected + ENDINGS;
    context.until("64 Endpoints wait", || Ok(count_of("ep")? == waiting))?;
    server.echo(&client, &peer, 100)?;
    ensure!(count_of("ep")? == waiting, "another thread has freed an Endpoint");
    drop(held);
    context.until("all Endpoints are freed", || Ok(count_of("ep")? == connected))?;
    server.echo(&client, &peer, 100)
}
