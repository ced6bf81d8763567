// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Kinds of memory that a process can register: files, huge pages, memory that it shares with
//! another process, and as much as a region may have.

use super::limits::map_often;
use super::rmr::scene::{bound, BOTH};
use super::tests;
use crate::context::Context;
use crate::end::{every_privilege, Pair, Shape};
use crate::expect::{done, refused_as, same};
use crate::fork::{end_of, fork};
use crate::harness::skip;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Buffer, CompletionFlags, DtoOperation, Lmr, Privileges, RmrBinding, Segment, Subtype, Type,
};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{null_mut, NonNull};

tests! {
    #[Transport]
    private_file, 30, "RDMA to a private mapping of a file does not change the file";
    #[Transport]
    tracked_file, 30, "A shared mapping of a file whose file system tracks changes is refused for writing";
    #[Transport]
    huge_pages, 30, "A region of huge pages is transferred, and a part of it that spans two is bound";
    #[Transport]
    two_processes, 60, "Two processes register the same memory, each at its address, and send what peers have written";
    #[Long, Transport]
    largest, 120, "A region of the largest length is registered, and its first and last bytes are written";
}

const HUGE: usize = 2 << 20;

/// Creates a file in memory of so many bytes.
fn memory_file(length: usize) -> Result<OwnedFd> {
    // SAFETY: creates a descriptor, which the result owns.
    let fd = unsafe { libc::memfd_create(c"memory".as_ptr(), libc::MFD_CLOEXEC) };
    ensure!(fd >= 0, "no memory file");
    // SAFETY: as above.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the call takes numbers only.
    let sized = unsafe { libc::ftruncate(fd.as_raw_fd(), length as i64) };
    ensure!(sized == 0, "no room for the memory file");
    Ok(fd)
}

/// Maps memory, of a file if there is one, until the process ends.
fn map(file: Option<&OwnedFd>, length: usize, flags: libc::c_int) -> Result<Buffer> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let fd = file.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: a new mapping.
    let start = unsafe { libc::mmap(null_mut(), length, rights, flags, fd, 0) };
    ensure!(start != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    let start = NonNull::new(start.cast()).context("mapped at 0")?;
    // SAFETY: the mapping is never removed.
    Ok(unsafe { Buffer::borrowed(start, length) })
}

/// Registers memory of the pair's server.
fn register(pair: &Pair, memory: Buffer) -> Result<Lmr> {
    let ia = &pair.server.ia;
    Ok(ia.register(&pair.server.pz, memory, every_privilege(ia)?)?)
}

/// Lets the client write random bytes to a segment. Returns them.
fn written(context: &Context, pair: &Pair, remote: Segment) -> Result<Vec<u8>> {
    let length = remote.length as usize;
    let mut out = pair.client.scramble(context);
    out.truncate(length);
    pair.client.write(0, length, remote, 1)?;
    done(&context.next(&pair.client.request)?, DtoOperation::RdmaWrite, length as u64, 1)?;
    Ok(out)
}

/// Waits until a part of a buffer has these bytes. Over iWARP a write completes before it arrives.
fn arrives(context: &Context, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<()> {
    let is_there = || Ok(buffer.to_vec(offset, bytes.len()) == bytes);
    context.until("the bytes have arrived", is_there)
}

fn private_file(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let file = memory_file(8192)?;
    let shared = map(Some(&file), 8192, libc::MAP_SHARED)?;
    shared.fill(0, 8192, 0x55);
    let lmr = register(&pair, map(Some(&file), 8192, libc::MAP_PRIVATE)?)?;
    let out = written(context, &pair, lmr.remote_segment(0, 8192))?;
    arrives(context, lmr.buffer(), 0, &out)?;
    same("bytes of the file", shared.to_vec(0, 8192), vec![0x55; 8192])
}

/// `f_type` of the file system of the root of user-mode Linux.
const HOSTFS: i64 = 0x00c0_ffee;

/// The kernel pins no such pages for long (`writable_file_mapping_allowed()`): the device would
/// write to them unnoticed.
fn tracked_file(context: &Context) -> Result<()> {
    // SAFETY: zeros are a value of this structure, which the call fills.
    let is_tracked = unsafe {
        let mut system = std::mem::zeroed::<libc::statfs>();
        libc::statfs(c"/root".as_ptr(), &mut system) == 0 && system.f_type == HOSTFS
    };
    if !is_tracked {
        return skip("this guest has no file system that tracks changes");
    }
    let path = "/root/tracked";
    fs::write(path, [0x55; 8192])?;
    let file = fs::File::options().read(true).write(true).open(path)?;
    let file = OwnedFd::from(file);
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    let memory = || map(Some(&file), 8192, libc::MAP_SHARED);
    let written = ia.register(&pz, memory()?, every_privilege(&ia)?);
    refused_as(written.map(drop), Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED)?;
    let read = Privileges::LOCAL_READ | Privileges::REMOTE_READ;
    ia.register(&pz, memory()?, read)?;
    Ok(fs::remove_file(path)?)
}

/// Returns memory of two huge pages; `None` if the kernel has made none.
fn huge() -> Result<Option<Buffer>> {
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let whole = map(None, 3 * HUGE, anonymous)?;
    let start = whole.address(0).next_multiple_of(HUGE as u64);
    let start = NonNull::new(start as *mut u8).context("mapped at 0")?;
    // SAFETY: this part of the mapping, which is never removed, begins at a huge page. The advice
    // changes no byte of it.
    let (advised, buffer) = unsafe {
        let advised = libc::madvise(start.as_ptr().cast(), 2 * HUGE, libc::MADV_HUGEPAGE);
        (advised, Buffer::borrowed(start, 2 * HUGE))
    };
    buffer.fill(0, 2 * HUGE, 0x55);
    Ok((advised == 0 && has_huge_pages(buffer.address(0))?).then_some(buffer))
}

/// Returns whether the mapping at an address has huge pages.
fn has_huge_pages(address: u64) -> Result<bool> {
    let maps = fs::read_to_string("/proc/self/smaps")?;
    let mut is_there = false;
    for line in maps.lines() {
        // The first line of a mapping begins with its addresses, the others with a name.
        let range = line.split_whitespace().next().and_then(|word| word.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).ok();
        if let Some((Some(start), Some(end))) = range.map(|(a, b)| (number(a), number(b))) {
            is_there = (start..end).contains(&address);
        } else if is_there && line.starts_with("AnonHugePages:") {
            return Ok(!line.ends_with(" 0 kB"));
        }
    }
    Ok(false)
}

fn huge_pages(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let Some(memory) = huge()? else { return skip("this kernel has no huge pages") };
    let lmr = register(&pair, memory)?;
    let length = 64 << 10;
    for offset in [0, HUGE - length, HUGE - 777, 2 * HUGE - length] {
        let out = written(context, &pair, lmr.remote_segment(offset, length))?;
        arrives(context, lmr.buffer(), offset, &out).with_context(|| format!("at {offset}"))?;
    }
    let (server, flags) = (&pair.server, CompletionFlags::default());
    let rmr = server.ia.create_rmr(&server.pz)?;
    let segment = lmr.segment(HUGE - 5000, 10_000);
    let part = RmrBinding { lmr: &lmr, segment, privileges: BOTH };
    let remote = rmr.bind(&server.ep, &part, 7, flags)?;
    bound(context, server, &rmr, 7)?;
    let out = written(context, &pair, remote)?;
    arrives(context, lmr.buffer(), HUGE - 5000, &out)
}

/// Sends the first bytes of a region of the pair's server, which must be these.
fn sends(context: &Context, pair: &Pair, lmr: &Lmr, bytes: &[u8]) -> Result<()> {
    pair.client.receive(0, bytes.len(), 2)?;
    let flags = CompletionFlags::default();
    pair.server.ep.post_send(&[lmr.segment(0, bytes.len())], 3, flags)?;
    let length = bytes.len() as u64;
    done(&context.next(&pair.client.recv)?, DtoOperation::Receive, length, 2)?;
    same("message", pair.client.lmr.buffer().to_vec(0, bytes.len()), bytes.to_vec())
}

/// The child has connections and a mapping of its own.
fn two_processes(context: &Context) -> Result<()> {
    let file = memory_file(16 << 10)?;
    let length = 16 << 10;
    let pair = Pair::new(context, Shape::default())?;
    let lmr = register(&pair, map(Some(&file), length, libc::MAP_SHARED)?)?;
    let out = written(context, &pair, lmr.remote_segment(0, length))?;
    arrives(context, lmr.buffer(), 0, &out)?;
    let child = fork(|| {
        let pair = Pair::new(context, Shape::default())?;
        let lmr = register(&pair, map(Some(&file), length, libc::MAP_SHARED)?)?;
        sends(context, &pair, &lmr, &out)?;
        // The parent finds this in its own region.
        let turned: Vec<u8> = out.iter().rev().copied().collect();
        pair.client.lmr.buffer().write(0, &turned);
        pair.client.write(0, length, lmr.remote_segment(0, length), 4)?;
        let event = context.next(&pair.client.request)?;
        done(&event, DtoOperation::RdmaWrite, length as u64, 4)?;
        arrives(context, lmr.buffer(), 0, &turned)
    })?;
    same("status of the child", end_of(child)?, 0)?;
    let turned: Vec<u8> = out.iter().rev().copied().collect();
    sends(context, &pair, &lmr, &turned)
}

/// Returns whether this kernel is user-mode Linux.
///
/// There each page of a process is a mapping of the machine below, unless its neighbour in the
/// process is its neighbour in memory. Beyond `vm.max_map_count`, 65,530 by default, the process
/// faults for ever at a page that cannot be mapped (`um_tlb_sync()`).
fn is_user_mode_linux() -> Result<bool> {
    Ok(fs::read_to_string("/proc/cpuinfo")?.contains("User Mode Linux"))
}

/// All pages are those of a short file, so that the machine needs little memory.
fn largest(context: &Context) -> Result<()> {
    if context.server.is_siw() {
        return skip("siw supports half a terabyte, which would take this machine too long");
    }
    if is_user_mode_linux()? {
        return skip("user-mode Linux cannot map so many pages into one process");
    }
    let pair = Pair::new(context, Shape::default())?;
    let length = pair.server.ia.query()?.raw.max_lmr_size as usize / 4096 * 4096;
    let start = NonNull::new(map_often(length / 4096)? as *mut u8).context("mapped at 0")?;
    // SAFETY: the mapping is never removed.
    let lmr = register(&pair, unsafe { Buffer::borrowed(start, length) })?;
    for offset in [0, length - 4096] {
        let out = written(context, &pair, lmr.remote_segment(offset, 4096))?;
        arrives(context, lmr.buffer(), offset, &out).with_context(|| format!("at {offset}"))?;
    }
    Ok(())
}
