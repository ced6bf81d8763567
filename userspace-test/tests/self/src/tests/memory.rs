// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Registers valid and invalid memory regions.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, refused, refused_as, same};
use crate::raw;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{Buffer, DtoOperation, Extensions, Ia, Privileges, Pz, Subtype, Type};
use std::fs;
use std::sync::Arc;

tests! {
    register_query_free, 10, "A region is registered, queried and freed once; a second free is refused";
    every_privilege, 10, "A region registers with every valid set of privileges, and with no unknown privilege";
    #[Transport]
    unaligned_regions, 20, "A region begins and ends anywhere in a page";
    zero_length, 10, "A region of zero bytes is a LENGTH_ERROR, whatever its address";
    wrapping_region, 10, "A region that wraps around the address space, or is huge, is refused";
    not_mapped, 10, "A region that is unmapped, even in part, or not writable, is refused";
    bad_types, 10, "Unknown kinds of memory and of addresses, and a bad PZ, are refused";
    unmapped_while_registered, 30, "Memory may be unmapped while it is registered: RDMA does no harm, and the region is freed";
    mapped_again_while_registered, 30, "RDMA to a region whose address was mapped again does not change the new memory";
    same_memory_registered_twice, 20, "The same memory registers many times, each time with its own contexts";
    contexts_are_not_reused, 30, "The contexts of a freed region are not reused at once";
    free_unlocks_memory, 30, "Freed regions unlock all their memory";
    locked_memory_limit, 30, "A user's limit of locked memory is obeyed";
    file_backed, 20, "A region of shared memory has the same content as other mappings";
}

fn zone(context: &Context) -> Result<(Ia, Pz)> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    Ok((ia, pz))
}

fn right(pz: &Pz, address: u64, length: u64) -> kdapl_lmr_create {
    kdapl_lmr_create {
        pz: pz.handle().0,
        address,
        length,
        privileges: KDAPL_MEM_ALL,
        ..Default::default()
    }
}

fn create(ia: &Ia, mut message: kdapl_lmr_create) -> Result<kdapl_lmr_create, libkdapl::Error> {
    raw::call(ia.device(), call::LMR_CREATE, &mut message).map(|()| message)
}

fn free(ia: &Ia, handle: u64) -> Result<()> {
    let mut message = kdapl_handle { handle, ..Default::default() };
    Ok(raw::call(ia.device(), call::LMR_FREE, &mut message)?)
}

fn register_query_free(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let buffer = Arc::new(Buffer::new(10_000)?);
    let lmr = ia.register(&pz, buffer.clone(), Privileges::ALL)?;
    let query = lmr.query()?;
    same("address", query.address, buffer.address(0))?;
    same("length", query.length, 10_000)?;
    same("PZ", query.pz, pz.handle().0)?;
    same("privileges", query.privileges, KDAPL_MEM_ALL)?;
    same("local context", query.lmr_context, lmr.segment(0, 1).context)?;
    same("remote context", query.rmr_context, lmr.remote_segment(0, 1).context)?;
    ensure!(query.registered_address <= query.address, "{query:?}");
    let end = query.registered_address + query.registered_size;
    ensure!(end >= query.address + query.length, "{query:?}");
    lmr.free()?;
    refused_as(lmr.free(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_LMR)?;
    refused_as(lmr.query(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_LMR)
}

fn every_privilege(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let buffer = Arc::new(Buffer::new(4096)?);
    for bits in [0x01, 0x10, 0x11, 0x03, 0x13, 0x33, 0x31] {
        let lmr = ia.register(&pz, buffer.clone(), Privileges(bits))?;
        same("privileges", lmr.query()?.privileges, bits)?;
    }
    // On most transports remote write access needs local write access.
    if let Ok(lmr) = ia.register(&pz, buffer.clone(), Privileges::REMOTE_WRITE) {
        lmr.free()?;
    }
    // The last one is the privilege for atomic operations.
    for bits in [0x40, 0x41, 0x73] {
        let lmr = ia.register(&pz, buffer.clone(), Privileges(bits));
        if ia.query()?.extensions.contains(Extensions::FETCH_AND_ADD) {
            same("privileges", lmr?.query()?.privileges, bits)?;
        } else {
            refused(lmr, Type::MODEL_NOT_SUPPORTED)?;
        }
    }
    for bits in [0x04, 0x80, 0x44, 0x8000_0000, u32::MAX] {
        refused(ia.register(&pz, buffer.clone(), Privileges(bits)), Type::INVALID_PARAMETER)?;
    }
    Ok(())
}

fn unaligned_regions(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let buffer = Buffer::new(40_000)?;
    let (ia, pz) = (&pair.server.ia, &pair.server.pz);
    for (start, length) in [(1, 1), (4095, 2), (100, 4096), (4090, 8200), (8191, 1), (0, 40_000)] {
        let message = create(ia, right(pz, buffer.address(start), length as u64))?;
        let remote = libkdapl::Segment {
            address: buffer.address(start),
            length: length as u32,
            context: message.rmr_context,
        };
        let out = pair.client.scramble(context);
        buffer.fill(0, 40_000, 0);
        pair.client.write(5, length, remote, 1)?;
        let event = context.next(&pair.client.request)?;
        crate::expect::done(&event, libkdapl::DtoOperation::RdmaWrite, length as u64, 1)?;
        let mut expected = vec![0; 40_000];
        expected[start..start + length].copy_from_slice(&out[5..5 + length]);
        ensure!(buffer.to_vec(0, 40_000) == expected, "{length} bytes at {start} differ");
        free(ia, message.handle)?;
    }
    Ok(())
}

fn zero_length(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let buffer = Buffer::new(4096)?;
    for address in [buffer.address(0), 0, u64::MAX] {
        refused(create(&ia, right(&pz, address, 0)), Type::LENGTH_ERROR)?;
    }
    Ok(())
}

fn wrapping_region(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let buffer = Buffer::new(4096)?;
    let start = buffer.address(0);
    let cases = [
        (start, u64::MAX),
        (start, u64::MAX - start),
        (start, u64::MAX - start + 1),
        (start, u64::MAX - start + 2),
        (start, 1 << 63),
        (start, 1 << 47),
        (u64::MAX, 1),
        (u64::MAX - 4095, 4096),
        (u64::MAX - 4095, 8192),
        (1 << 63, 1 << 63),
    ];
    for (address, length) in cases {
        refused(create(&ia, right(&pz, address, length)), Type::LENGTH_ERROR)
            .with_context(|| format!("{length:#x} bytes at {address:#x}"))?;
    }
    // An address of the kernel.
    let made = create(&ia, right(&pz, 0xffff_8880_0000_0000, 4096));
    refused_as(made, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED)
}

/// Changes the protection of a page of `buffer`.
fn protect(buffer: &Buffer, offset: usize, protection: libc::c_int) -> Result<()> {
    // SAFETY: the page is ours, and no thread accesses it while it is protected.
    let outcome = unsafe { libc::mprotect(buffer.address(offset) as *mut _, 4096, protection) };
    ensure!(outcome == 0, "mprotect: {}", std::io::Error::last_os_error());
    Ok(())
}

fn not_mapped(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let bad_address = |address, length| {
        let made = create(&ia, right(&pz, address, length));
        refused_as(made, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED)
    };
    bad_address(0, 4096)?;
    bad_address(raw::BAD_ADDRESS, 64)?;
    let buffer = Buffer::new(3 * 4096)?;
    protect(&buffer, 4096, libc::PROT_NONE)?;
    bad_address(buffer.address(0), 3 * 4096)?;
    bad_address(buffer.address(4096), 4096)?;
    protect(&buffer, 4096, libc::PROT_READ)?;
    bad_address(buffer.address(0), 3 * 4096)?;
    // The same memory may be registered for reading.
    let mut message = right(&pz, buffer.address(4096), 4096);
    message.privileges = KDAPL_MEM_LOCAL_READ | KDAPL_MEM_REMOTE_READ;
    let made = create(&ia, message)?;
    free(&ia, made.handle)
}

fn bad_types(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let buffer = Buffer::new(4096)?;
    let right = right(&pz, buffer.address(0), 4096);
    let kind = Type::MODEL_NOT_SUPPORTED;
    for mem_type in [1, 2, 0x10, u32::MAX] {
        refused(create(&ia, kdapl_lmr_create { mem_type, ..right }), kind)?;
    }
    for va_type in [2, 3, u32::MAX] {
        refused(create(&ia, kdapl_lmr_create { va_type, ..right }), kind)?;
    }
    for bad in [0, ia.handle().0, u64::MAX] {
        let outcome = create(&ia, kdapl_lmr_create { pz: bad, ..right });
        refused_as(outcome, Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_PZ)?;
    }
    Ok(())
}

/// Writes by RDMA to a region whose memory was unmapped. The region keeps its pages.
fn write_into_gone(context: &Context, pair: &Pair, remote: libkdapl::Segment) -> Result<()> {
    pair.client.write(0, 4096, remote, 1)?;
    done(&context.next(&pair.client.request)?, DtoOperation::RdmaWrite, 4096, 1)
}

fn unmapped_while_registered(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (ia, pz) = (&pair.server.ia, &pair.server.pz);
    for _ in 0..context.count(10) {
        let buffer = Buffer::new(4096)?;
        let address = buffer.address(0);
        let made = create(ia, right(pz, address, 4096))?;
        drop(buffer);
        let remote = libkdapl::Segment { address, length: 4096, context: made.rmr_context };
        write_into_gone(context, &pair, remote)?;
        free(ia, made.handle)?;
    }
    Ok(())
}

fn mapped_again_while_registered(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (ia, pz) = (&pair.server.ia, &pair.server.pz);
    let buffer = Buffer::new(4096)?;
    let address = buffer.address(0);
    let made = create(ia, right(pz, address, 4096))?;
    // SAFETY: replaces a page of ours by a new one.
    let anew = unsafe {
        libc::mmap(
            address as *mut _,
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    ensure!(anew as u64 == address, "mmap: {}", std::io::Error::last_os_error());
    buffer.fill(0, 4096, 0x11);
    pair.client.lmr.buffer().fill(0, 4096, 0x22);
    let remote = libkdapl::Segment { address, length: 4096, context: made.rmr_context };
    write_into_gone(context, &pair, remote)?;
    ensure!(buffer.to_vec(0, 4096).iter().all(|byte| *byte == 0x11), "the new page was written");
    free(ia, made.handle)
}

fn same_memory_registered_twice(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let buffer = Arc::new(Buffer::new(8192)?);
    let regions: Result<Vec<_>, _> =
        (0..50).map(|_| ia.register(&pz, buffer.clone(), Privileges::ALL)).collect();
    let mut contexts: Vec<_> = regions?.iter().map(|lmr| lmr.segment(0, 1).context).collect();
    contexts.sort_unstable();
    contexts.dedup();
    same("different contexts", contexts.len(), 50)
}

fn contexts_are_not_reused(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let buffer = Arc::new(Buffer::new(4096)?);
    let mut last = None;
    for _ in 0..context.count(200) {
        let lmr = ia.register(&pz, buffer.clone(), Privileges::ALL)?;
        let context = lmr.remote_segment(0, 1).context;
        ensure!(last != Some(context), "context {context:#x} was reused at once");
        last = Some(context);
        lmr.free()?;
    }
    Ok(())
}

/// Returns a line of /proc/self/status in kB.
fn status(name: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.unwrap_or("0").parse()?)
}

fn free_unlocks_memory(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let before = (status("VmPin:")?, status("VmLck:")?);
    for _ in 0..context.count(30) {
        let lmr = ia.register(&pz, Buffer::new(4 << 20)?, Privileges::ALL)?;
        lmr.free()?;
    }
    same("pinned and locked kB", (status("VmPin:")?, status("VmLck:")?), before)
}

fn locked_memory_limit(context: &Context) -> Result<()> {
    let (ia, pz) = zone(context)?;
    let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
    // Root may exceed its limit, so the process becomes an ordinary user.
    // SAFETY: changes this process only, which runs only this test.
    let user = unsafe {
        libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) == 0
            && libc::setgid(65534) == 0
            && libc::setuid(65534) == 0
    };
    ensure!(user, "cannot become another user: {}", std::io::Error::last_os_error());
    let small = ia.register(&pz, Buffer::new(64 << 10)?, Privileges::ALL)?;
    let big = ia.register(&pz, Buffer::new(8 << 20)?, Privileges::ALL);
    refused(big, Type::INSUFFICIENT_RESOURCES)?;
    // Many small regions count as much as a large one.
    let mut regions = Vec::new();
    let refusal = loop {
        ensure!(regions.len() < 64, "4 MiB were locked under a limit of 1 MiB");
        match ia.register(&pz, Buffer::new(64 << 10)?, Privileges::ALL) {
            Ok(region) => regions.push(region),
            Err(error) => break error,
        }
    };
    refused::<()>(Err(refusal), Type::INSUFFICIENT_RESOURCES)?;
    small.free()?;
    ia.register(&pz, Buffer::new(64 << 10)?, Privileges::ALL)?;
    Ok(())
}

fn file_backed(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    // SAFETY: creates a descriptor and two mappings of it.
    let (fd, one, two) = unsafe {
        let fd = libc::memfd_create(c"shared".as_ptr(), libc::MFD_CLOEXEC);
        libc::ftruncate(fd, 8192);
        let map = || {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), 8192, rights, libc::MAP_SHARED, fd, 0)
        };
        (fd, map(), map())
    };
    ensure!(
        fd >= 0 && one != libc::MAP_FAILED && two != libc::MAP_FAILED,
        "cannot map shared memory"
    );
    let made = create(&pair.server.ia, right(&pair.server.pz, one as u64, 8192))?;
    let out = pair.client.scramble(context);
    let remote = libkdapl::Segment { address: one as u64, length: 8192, context: made.rmr_context };
    pair.client.write(0, 8192, remote, 1)?;
    let event = context.next(&pair.client.request)?;
    crate::expect::done(&event, libkdapl::DtoOperation::RdmaWrite, 8192, 1)?;
    // SAFETY: the mapping is 8192 bytes long, and no thread writes it any more.
    let seen = unsafe { std::slice::from_raw_parts(two.cast::<u8>(), 8192) };
    ensure!(seen == &out[..8192], "the other mapping has other content");
    free(&pair.server.ia, made.handle)
}
