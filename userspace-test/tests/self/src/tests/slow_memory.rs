// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of a process whose pages take as long as the process likes (`userfaultfd`).

use super::device_removal::catastrophic;
use super::rmr::scene::{part, BOTH};
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::harness::skip;
use crate::machine::DeviceGuard;
use anyhow::{ensure, Context as _, Result};
use libkdapl::CompletionFlags;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd};

tests! {
    bind_delays_no_removal, 120, "A bind that waits for a page delays the removal of a device for no other adapter";
}

/// `struct uffdio_api` of the kernel's `linux/userfaultfd.h`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

const UFFD_API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const MODE_MISSING: u64 = 1;
const PAGE: usize = 4096;

/// A page that no thread can access before the drop.
pub struct Withheld {
    faults: File,
}

impl Withheld {
    /// Replaces a page of this process.
    pub fn new(address: u64) -> Result<Self> {
        // SAFETY: The call takes flags only.
        let fd =
            unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK) };
        if fd < 0 {
            return skip(format!("this kernel has no userfaultfd: {}", Error::last_os_error()));
        }
        // SAFETY: The descriptor is new, and owned by nobody else.
        let faults = unsafe { File::from_raw_fd(fd as i32) };
        let mut api = Api { api: UFFD_API, features: 0, ioctls: 0 };
        // SAFETY: The message has the layout of the call.
        let made = unsafe { libc::ioctl(faults.as_raw_fd(), UFFDIO_API, &raw mut api) };
        ensure!(made == 0, "UFFDIO_API: {}", Error::last_os_error());
        // SAFETY: Replaces a page of a buffer of this test.
        let anew = unsafe {
            libc::mmap(
                address as *mut _,
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        ensure!(anew as u64 == address, "mmap: {}", Error::last_os_error());
        let length = PAGE as u64;
        let mut register = Register { start: address, length, mode: MODE_MISSING, ioctls: 0 };
        // SAFETY: As above.
        let made = unsafe { libc::ioctl(faults.as_raw_fd(), UFFDIO_REGISTER, &raw mut register) };
        ensure!(made == 0, "UFFDIO_REGISTER: {}", Error::last_os_error());
        Ok(Self { faults })
    }

    /// Returns whether a thread waits for the page.
    pub fn is_awaited(&self) -> bool {
        let mut poll =
            libc::pollfd { fd: self.faults.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: There is one entry.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }
}

fn bind_delays_no_removal(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let pair = Pair::new(context, Shape::default())?;
    let client = &pair.client;
    let rmr = client.ia.create_rmr(&client.pz)?;
    // Its removal follows that of the adapter whose bind waits.
    let other = End::new(&context.open()?, Shape::default())?;
    let page = Withheld::new(client.lmr.buffer().address(0))?;
    let host = &context.client;
    std::thread::scope(|scope| {
        let bind = scope.spawn(|| {
            rmr.bind(&client.ep, &part(&client.lmr, 0, 64, BOTH), 1, CompletionFlags::default())
        });
        context.until("the bind waits for the page", || Ok(page.is_awaited()))?;
        let removal = scope.spawn(|| guard.delete_of(host));
        let notified = catastrophic(context, &other.ia).context("the other adapter");
        let waits = !bind.is_finished();
        // Every thread that waits for the page goes on.
        drop(page);
        let refused = bind.join().ok().context("the bind has panicked")?.is_err();
        removal.join().ok().context("the removal has panicked")??;
        notified?;
        ensure!(waits, "the bind has not waited for the page");
        ensure!(refused, "the bind succeeded without a device");
        Ok(())
    })?;
    guard.add()
}
