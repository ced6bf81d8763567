// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests messages as bytes: sizes, padding, addresses.

mod guard;
mod padding;

use self::guard::{guarded, guarded_zeros};
use super::tests;
use crate::context::Context;
use crate::expect::same;
use crate::hosts::ASYNC_QLEN;
use crate::raw::{self, number, request, send, send_from_nowhere, send_sized, Bytes, HEADER};
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::{call, Device};
use libkdapl::sys::*;
use std::os::fd::AsRawFd;

tests! {
    unknown_requests, 20, "An unknown request is ENOTTY, whatever its size and direction";
    wrong_magic, 10, "A request of another driver is ENOTTY";
    size_differs_from_request, 20, "A size field that differs from the size in the request is EINVAL";
    too_short, 20, "A message shorter than its published size is EINVAL";
    longer_message_with_zeros, 60, "In every request a longer message that ends in zeros is handled like one of the kernel's size, and no more than that size is written";
    shorter_message, 120, "A shorter message, down to the first published size, is handled as if zeros followed, and no more than its size is written";
    header_flags, 20, "A flag that the call does not define is EINVAL, in every request";
    longer_message_with_data, 20, "A longer message that does not end in zeros is E2BIG and changes nothing";
    unknown_version, 10, "An unknown version of the interface is EINVAL";
    padding, 20, "Padding that is not zero is EINVAL, in every message with padding";
    bad_pointers, 20, "A message at a bad address is EFAULT, in every request";
    read_only_message, 20, "A message in read-only memory is EFAULT and leaves nothing behind";
    unterminated_names, 10, "A name without a terminating NUL is refused";
    other_file_operations, 10, "Read, write and mmap of the file are refused, and do no harm";
    random_messages, 60, "Random messages do no harm";
}

/// Returns the first published size of a message that has `size` bytes now.
fn first(number: u32, size: usize) -> usize {
    let of = |request: u32| request & 0xff;
    match number {
        number if number == of(call::IA_QUERY.request()) => KDAPL_IA_QUERY_SIZE_MIN as usize,
        number if number == of(call::EP_POST.request()) => KDAPL_EP_POST_SIZE_MIN as usize,
        _ => size,
    }
}

/// Lists every request with its number and size.
fn all() -> Vec<(&'static str, u32, usize)> {
    let number = |request: u32| request & 0xff;
    call::ALL.iter().map(|(name, request, size)| (*name, number(*request), *size)).collect()
}

fn unknown_requests(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let known: Vec<_> = all().iter().map(|(_, number, _)| *number).collect();
    let mut bytes = Bytes::zeroed(4096);
    for number in (0..256).filter(|number| !known.contains(number)) {
        for size in [0, 8, 16, 96, 4096] {
            bytes.set_u32(0, size as u32);
            let outcome = send(ia.device(), request(number, size), &mut bytes);
            same("unknown request", outcome, Err(libc::ENOTTY))
                .with_context(|| format!("number {number:#x}, size {size}"))?;
        }
    }
    // The right number, but for reading only, for writing only, or for neither.
    for direction in 0..3 {
        let number = request(number(call::IA_QUERY), size_of::<kdapl_ia_query>());
        let request = number & 0x3fff_ffff | (direction << 30);
        let outcome = send(ia.device(), request, &mut bytes);
        same("outcome", outcome, Err(libc::ENOTTY))
            .with_context(|| format!("direction {direction}"))?;
    }
    Ok(())
}

fn wrong_magic(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let mut bytes = Bytes::of(&kdapl_ia_query::default());
    for magic in [0xd9, 0xdb, 0, 0xff, b'b'.into()] {
        let request = call::IA_QUERY.request() & !0xff00 | (magic << 8);
        same("outcome", send(ia.device(), request, &mut bytes), Err(libc::ENOTTY))?;
    }
    // The C library sends TCGETS to any file that might be a terminal.
    same("outcome", send(ia.device(), libc::TCGETS as u32, &mut bytes), Err(libc::ENOTTY))
}

fn size_differs_from_request(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for (name, number, size) in all() {
        for claimed in [0, 1, 7, 8, size - 8, size - 1, size + 1, size + 8, 1 << 31, 0xffff_ffff] {
            if claimed == size {
                continue;
            }
            let mut bytes = Bytes::zeroed(size);
            bytes.set_u32(0, claimed as u32);
            let outcome = send(ia.device(), request(number, size), &mut bytes);
            same(name, outcome, Err(libc::EINVAL))
                .with_context(|| format!("size field {claimed}"))?;
        }
    }
    ia.query().map(drop).context("the IA is gone")
}

fn too_short(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for (name, number, size) in all() {
        let size = first(number, size);
        for short in [HEADER, size - 8, size - 4, size - 1] {
            let mut bytes = Bytes::zeroed(short);
            bytes.set_u32(0, short as u32);
            let outcome = send(ia.device(), request(number, short), &mut bytes);
            same(name, outcome, Err(libc::EINVAL)).with_context(|| format!("{short} bytes"))?;
        }
        // Less than a header.
        for short in [0, 1, 4, 7, 8, 15] {
            let mut bytes = Bytes::zeroed(16);
            bytes.set_u32(0, short as u32);
            let outcome = send(ia.device(), request(number, short), &mut bytes);
            same(name, outcome, Err(libc::EINVAL)).with_context(|| format!("{short} bytes"))?;
        }
    }
    Ok(())
}

fn longer_message_with_zeros(context: &Context) -> Result<()> {
    for (name, number, size) in all() {
        let (expected, _) = guarded_zeros(context, number, size)?;
        for more in [8, 13, 1000, 4096] {
            let (outcome, bytes) = guarded_zeros(context, number, size + more)
                .with_context(|| format!("{name}, {more} bytes more"))?;
            same(name, outcome, expected)?;
            ensure!(
                bytes[size..].iter().all(|byte| *byte == 0),
                "{name}: bytes after the kernel's size were written"
            );
            same("size field", &bytes[..4], &((size + more) as u32).to_ne_bytes()[..])?;
        }
    }
    Ok(())
}

/// Queries an IA with a message of `size` bytes, which may be less than the kernel's.
fn short_query(ia: &libkdapl::Ia, size: usize) -> Result<Vec<u8>> {
    let mut bytes = Bytes::zeroed(size);
    bytes.set_u32(0, size as u32);
    let (outcome, answer) = guarded(ia.device(), number(call::IA_QUERY), &bytes)?;
    same("outcome", outcome, Ok(0))?;
    Ok(answer)
}

fn shorter_message(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (least, size) = (KDAPL_IA_QUERY_SIZE_MIN as usize, size_of::<kdapl_ia_query>());
    let whole = short_query(&ia, size)?;
    let version = std::mem::offset_of!(kdapl_ia_query, abi_version);
    same("version", &whole[version..version + 4], &KDAPL_ABI_VERSION.to_ne_bytes()[..])?;
    for short in least..size {
        let answer = short_query(&ia, short).with_context(|| format!("{short} bytes"))?;
        same("answer", &answer[4..], &whole[4..short])?;
    }
    // Tests each message: it is refused below the first size, and bytes after its size are not
    // written.
    for (name, number, size) in all() {
        let least = first(number, size);
        let refused: Vec<_> = (HEADER..least).step_by(4).collect();
        for &short in context.sample(&refused) {
            let (outcome, _) = guarded_zeros(context, number, short)
                .with_context(|| format!("{name}, {short}"))?;
            same(name, outcome, Err(libc::EINVAL))?;
        }
        let (expected, _) = guarded_zeros(context, number, size)?;
        let accepted: Vec<_> = (least..size).collect();
        for &short in context.sample(&accepted) {
            let (outcome, _) = guarded_zeros(context, number, short)
                .with_context(|| format!("{name}, {short}"))?;
            same(name, outcome, expected)?;
        }
    }
    Ok(())
}

fn header_flags(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let absolute = [
        number(call::EVD_WAIT),
        number(call::CNO_WAIT),
        number(call::EP_SUBMIT),
        number(call::EP_CONNECT),
        number(call::EP_DUP_CONNECT),
        number(call::EP_COMMON_CONNECT),
    ];
    let gated = [&absolute[3..], &[number(call::CR_ACCEPT)]].concat();
    let promising = [number(call::EP_POST), number(call::EP_SUBMIT)];
    let (flags, reserved) =
        (std::mem::offset_of!(kdapl_hdr, flags), std::mem::offset_of!(kdapl_hdr, reserved));
    for (name, number, size) in all() {
        let mut known = if absolute.contains(&number) { KDAPL_FLAG_ABSOLUTE } else { 0 };
        if number == self::number(call::CNO_WAIT) {
            known |= KDAPL_FLAG_AGENT;
        }
        if gated.contains(&number) {
            known |= KDAPL_FLAG_READY_GATE;
        }
        if promising.contains(&number) {
            known |= KDAPL_FLAG_PROMISE;
        }
        let bits = (0..32).map(|bit| 1 << bit).filter(|bit| known & bit == 0);
        for (at, value) in bits.map(|bit| (flags, bit)).chain([(reserved, 1), (reserved, 1 << 31)])
        {
            let mut bytes = Bytes::zeroed(size);
            bytes.set_u32(0, size as u32);
            bytes.set_u32(at, value);
            let outcome = send(ia.device(), request(number, size), &mut bytes);
            same(name, outcome, Err(libc::EINVAL))
                .with_context(|| format!("{value:#x} at {at}"))?;
        }
    }
    ia.query().map(drop).context("the IA is gone")
}

fn longer_message_with_data(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for (name, number, size) in all() {
        for (more, at) in [(8, 0), (8, 7), (100, 99), (4000, 2000)] {
            let mut bytes = Bytes::zeroed(size + more);
            bytes.set_u32(0, (size + more) as u32);
            bytes.as_mut()[size + at] = 1;
            let outcome = send(ia.device(), request(number, size + more), &mut bytes);
            same(name, outcome, Err(libc::E2BIG)).with_context(|| format!("{at} of {more}"))?;
        }
    }
    same("PZs", crate::machine::count_of("pz")?, 0)?;
    ia.query().map(drop).context("the IA is gone")
}

fn open_message(context: &Context) -> kdapl_ia_open {
    let mut message = kdapl_ia_open {
        abi_version: KDAPL_ABI_VERSION,
        async_evd_qlen: ASYNC_QLEN,
        ..Default::default()
    };
    message.name[..context.client.device.len()].copy_from_slice(context.client.device.as_bytes());
    message
}

fn unknown_version(context: &Context) -> Result<()> {
    let device = Device::open()?;
    for version in [0, KDAPL_ABI_VERSION + 1, 1 << 16, u32::MAX] {
        let mut bytes = Bytes::of(&kdapl_ia_open { abi_version: version, ..open_message(context) });
        let outcome = send_sized(&device, call::IA_OPEN, &mut bytes);
        same("outcome", outcome, Err(libc::EINVAL)).with_context(|| format!("{version}"))?;
    }
    raw::call(&device, call::IA_OPEN, &mut open_message(context)).context("the current version")
}

fn padding(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for (name, number, size, at) in padding::fields() {
        for value in [1, 0x8000_0000] {
            let mut bytes = Bytes::zeroed(size);
            bytes.set_u32(0, size as u32);
            bytes.set_u32(at, value);
            let outcome = send(ia.device(), request(number, size), &mut bytes);
            same(name, outcome, Err(libc::EINVAL))
                .with_context(|| format!("padding {value:#x}"))?;
        }
    }
    ia.query().map(drop).context("the IA is gone")
}

fn bad_pointers(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for (name, number, size) in all() {
        for address in [0, raw::BAD_ADDRESS, 1 << 63, u64::MAX - 7, 0xffff_8880_0000_0000] {
            let outcome = send_from_nowhere(ia.device(), request(number, size), address);
            same(name, outcome, Err(libc::EFAULT)).with_context(|| format!("at {address:#x}"))?;
        }
    }
    // A message of which only the first half is mapped.
    let page = raw::Page::before_nothing()?;
    page.buffer.write(4096 - 8, &(size_of::<kdapl_ia_query>() as u32).to_ne_bytes());
    let edge = page.end() - 8;
    let outcome = send_from_nowhere(ia.device(), call::IA_QUERY.request(), edge);
    same("half a message", outcome, Err(libc::EFAULT))
}

fn read_only_message(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let buffer = libkdapl::Buffer::new(4096)?;
    let mut create =
        Bytes::of(&kdapl_evd_create { qlen: 4, flags: KDAPL_EVD_SOFTWARE, ..Default::default() });
    buffer.write(0, create.as_ref());
    // SAFETY: the page is ours.
    unsafe { libc::mprotect(buffer.address(0) as *mut _, 4096, libc::PROT_READ) };
    let before = crate::machine::count_of("evd")?;
    let request = call::EVD_CREATE.request();
    let outcome = send_from_nowhere(ia.device(), request, buffer.address(0));
    same("outcome", outcome, Err(libc::EFAULT))?;
    same("EVDs", crate::machine::count_of("evd")?, before)?;
    same(
        "the message in writable memory",
        send_sized(ia.device(), call::EVD_CREATE, &mut create),
        Ok(0),
    )
}

fn unterminated_names(context: &Context) -> Result<()> {
    let device = Device::open()?;
    let mut message = open_message(context);
    message.name = [b'r'; KDAPL_NAME_MAX as usize];
    let outcome = send_sized(&device, call::IA_OPEN, &mut Bytes::of(&message));
    let refused = match outcome {
        Err(errno) => errno == libc::EINVAL,
        Ok(code) => code >> 31 == 1,
    };
    ensure!(refused, "{outcome:?}");
    Ok(())
}

fn other_file_operations(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (fd, mut byte) = (ia.device().as_raw_fd(), 0_u8);
    let byte: *mut libc::c_void = std::ptr::from_mut(&mut byte).cast();
    // SAFETY: the byte may be read and written.
    let outcomes = unsafe {
        [
            libc::read(fd, byte, 1),
            libc::write(fd, byte, 1),
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_WRITE, libc::MAP_SHARED, fd, 0)
                as isize,
        ]
    };
    ensure!(outcomes.iter().all(|outcome| *outcome == -1), "{outcomes:?}");
    ia.query().map(drop).context("the IA is gone")
}

pub fn random_messages(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(libkdapl::EvdFlags::SOFTWARE, 4)?;
    let calls = all();
    for _ in 0..context.count(50_000) {
        let (name, number, size) = calls[context.rng().usize(0..calls.len())];
        if name == "dat_ia_close" || name == "dat_ia_open" {
            continue;
        }
        let mut bytes = Bytes::zeroed(size);
        let density = context.rng().u8(1..8);
        for byte in &mut bytes.as_mut()[HEADER..] {
            if context.rng().u8(0..8) < density {
                *byte = context.rng().u8(..);
            }
        }
        if context.rng().bool() && size >= HEADER + 8 {
            // A valid handle at the place of the first handle.
            bytes.as_mut()[HEADER..HEADER + 8].copy_from_slice(&evd.handle().0.to_ne_bytes());
        }
        if name == "dat_evd_wait" {
            // Limits the time-out.
            let at = std::mem::offset_of!(kdapl_evd_wait, timeout_ns);
            bytes.set_u64(at, context.rng().u64(0..100_000));
        }
        bytes.set_u32(0, size as u32);
        let outcome = send(ia.device(), request(number, size), &mut bytes);
        // E2BIG: an element of an array, or a record of a file, that is too long.
        let known = [libc::EINVAL, libc::E2BIG, libc::EFAULT, libc::EINTR, libc::ENOMEM];
        ensure!(!matches!(outcome, Err(errno) if !known.contains(&errno)), "{name}: {outcome:?}");
    }
    ia.query().map(drop).context("the IA is gone")
}
