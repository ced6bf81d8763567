// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Makes each call in one thread while another closes the adapter, or the descriptor of its file.

use super::faults::rows;
use super::tests;
use crate::context::Context;
use crate::machine::no_objects_left;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::DEVICE_PATH;
use libkdapl::sys::kdapl_ia_close;
use libkdapl::{Error, Type};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

tests! {
    adapters, 300, "Each call ends and is refused afterwards while another thread closes the adapter";
    descriptors, 300, "Each call ends and is refused afterwards while another thread closes the file's descriptor";
}

/// Times from the first call to the close.
const DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_micros(30), Duration::from_micros(300)];

/// Calls until the close at most: each may create an object.
const MOST: u32 = 50;

/// Calls that work without an adapter.
const WITHOUT_ADAPTER: [&str; 4] = ["DEVICE_GET", "PORT_GET", "IA_STAT", "IA_OPEN"];

fn adapters(context: &Context) -> Result<()> {
    Race { context, how: How::Adapter }.against_all()
}

fn descriptors(context: &Context) -> Result<()> {
    Race { context, how: How::Descriptor }.against_all()
}

/// Object that the test closes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Adapter,
    Descriptor,
}

impl How {
    fn close(self, file: RawFd) -> Result<()> {
        match self {
            Self::Adapter => close_adapter(file),
            Self::Descriptor => close_descriptor(file),
        }
    }
}

/// A test that runs calls beside a close.
pub struct Race<'a> {
    context: &'a Context,
    how: How,
}

impl Race<'_> {
    fn against_all(&self) -> Result<()> {
        rows::all().try_for_each(|row| (row.close_beside)(self, row.name))?;
        no_objects_left(self.context.settings.scale)
    }

    /// Sets the stage, and makes the call beside a close, once for each delay of a sample.
    pub fn against<S, T>(
        &self,
        name: &str,
        stage: impl Fn(&Context) -> Result<S>,
        call: impl Fn(&mut S) -> Result<T, Error>,
    ) -> Result<()> {
        for delay in self.context.sample(&DELAYS) {
            self.attempt(*delay, &stage, &call, !WITHOUT_ADAPTER.contains(&name))
                .with_context(|| format!("{name}, close after {delay:?}"))?;
        }
        Ok(())
    }

    fn attempt<S, T>(
        &self,
        delay: Duration,
        stage: impl Fn(&Context) -> Result<S>,
        call: impl Fn(&mut S) -> Result<T, Error>,
        needs_adapter: bool,
    ) -> Result<()> {
        let before = device_files()?;
        let mut staged = stage(self.context).context("setting the stage")?;
        let files: Vec<_> = device_files()?.difference(&before).copied().collect();
        ensure!(!files.is_empty(), "no file of the device is open");
        let how = self.how;
        let (start, closed) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let closer = scope.spawn(|| {
                start.wait();
                spin(delay);
                let outcome = files.iter().try_for_each(|file| how.close(*file));
                closed.store(true, Ordering::Release);
                outcome
            });
            start.wait();
            self.call_until(&closed, || drop(call(&mut staged)));
            closer.join().expect("the thread does not panic")
        })?;
        let late = call(&mut staged).map(drop);
        self.check(late, needs_adapter)
    }

    /// Repeats a call until the close, which ends a wait for an event. The close of a descriptor
    /// does not: the call keeps its file open.
    fn call_until(&self, closed: &AtomicBool, mut call: impl FnMut()) {
        let most = if self.how == How::Adapter { MOST } else { 1 };
        for _ in 0..most {
            call();
            if closed.load(Ordering::Acquire) {
                break;
            }
        }
    }

    /// Checks the result of a call after the close.
    fn check(&self, late: Result<(), Error>, needs_adapter: bool) -> Result<()> {
        let refused = match (self.how, &late) {
            (How::Adapter, _) if !needs_adapter => true,
            (How::Adapter, Err(error)) => error.kind() == Some(Type::INVALID_HANDLE),
            (How::Descriptor, Err(error)) => error.errno() == Some(libc::ENOTTY),
            (_, Ok(())) => false,
        };
        ensure!(refused, "after the close the call returned {late:?}");
        Ok(())
    }
}

/// Returns the descriptors of this process for files of the device.
fn device_files() -> Result<BTreeSet<RawFd>> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let path = entry?.path();
        // The descriptor of the folder itself is gone when it is read.
        let is_device = fs::read_link(&path).is_ok_and(|target| target == Path::new(DEVICE_PATH));
        if let (true, Some(name)) = (is_device, path.file_name()) {
            files.insert(name.to_string_lossy().parse()?);
        }
    }
    Ok(files)
}

/// Waits without a sleep, which takes longer than the delays.
fn spin(delay: Duration) {
    let end = Instant::now() + delay;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Closes the adapter of a file, if it has one.
fn close_adapter(file: RawFd) -> Result<()> {
    let mut message = kdapl_ia_close::default();
    message.hdr.size = size_of::<kdapl_ia_close>() as u32;
    let request = libkdapl::raw::call::IA_CLOSE.request();
    // SAFETY: the message is valid for reads and writes, and has its own size.
    let outcome = unsafe { libc::ioctl(file, request.into(), std::ptr::from_mut(&mut message)) };
    ensure!(outcome == 0, "IA_CLOSE: {}", io::Error::last_os_error());
    Ok(())
}

/// Has the descriptor refer to another file. Its owner goes on to use it.
fn close_descriptor(file: RawFd) -> Result<()> {
    let nothing = File::open("/dev/null")?;
    // SAFETY: both descriptors are open.
    let outcome = unsafe { libc::dup2(nothing.as_raw_fd(), file) };
    ensure!(outcome == file, "dup2(): {}", io::Error::last_os_error());
    Ok(())
}
