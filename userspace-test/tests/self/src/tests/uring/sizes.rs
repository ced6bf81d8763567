// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Lengths and padding of the messages that are commands only.

use super::super::tests;
use super::commands::{
    cancel_message, entry, push, reap, run, stream_entry, stream_message, with_words, InFlight,
};
use crate::context::Context;
use crate::expect::same;
use crate::raw::{number, request, Bytes};
use crate::software::software;
use anyhow::{Context as _, Result};
use io_uring::{squeue::Flags, IoUring};
use libkdapl::raw::call;
use libkdapl::sys::{kdapl_uring_cancel, kdapl_uring_stream};
use libkdapl::{EvdFlags, Ia};
use std::os::fd::AsRawFd;

tests! {
    cancels, 30, "A cancel of another length is extended or cut as the message of an ioctl, and its padding is zero";
    streams, 20, "A stream whose message is longer is accepted if the rest is zero";
}

/// Change to a message.
type ChangeMessage = fn(&mut Bytes);

/// Cancels the wait with the user data 9 by a message of this length. Returns both results, and the
/// message.
fn cancel_by(ia: &Ia, length: usize, change: ChangeMessage) -> Result<(i32, Option<i32>, Bytes)> {
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    let mut ring = IoUring::new(8)?;
    let _wait = InFlight::start(&mut ring, &evd, Flags::empty(), 9)?;
    let mut bytes = Bytes::of(&cancel_message(9));
    bytes.resize(bytes.as_ref().len().max(length));
    bytes.set_u32(0, length as u32);
    change(&mut bytes);
    let op = request(number(call::URING_CANCEL), length);
    let address = bytes.as_mut().as_mut_ptr() as u64;
    push(&mut ring, &entry(evd.device().as_raw_fd(), op, [address, 0], 1))?;
    let (mut cancel, mut wait) = (None, None);
    while cancel.is_none() {
        let completion = reap(&mut ring)?;
        *(if completion.user_data() == 9 { &mut wait } else { &mut cancel }) =
            Some(completion.result());
    }
    Ok((cancel.context("no result")?, wait, bytes))
}

fn cancels(context: &Context) -> Result<()> {
    const WHOLE: usize = size_of::<kdapl_uring_cancel>();
    const FOUND: usize = std::mem::offset_of!(kdapl_uring_cancel, found);
    let ia = context.open()?;
    let no_change: ChangeMessage = |_| {};
    let cancelled = (0, Some(-libc::ECANCELED));
    for length in [WHOLE, WHOLE + 8, 4096] {
        let (cancel, wait, bytes) = cancel_by(&ia, length, no_change)?;
        same("results", (cancel, wait), cancelled)?;
        same("found", bytes.as_ref()[FOUND], 1)?;
    }
    for (length, change, errno) in [
        (WHOLE, (|bytes| bytes.set_u32(FOUND + 4, 1)) as ChangeMessage, libc::EINVAL),
        // Shorter than the first version of the message.
        (FOUND, no_change, libc::EINVAL),
        (WHOLE + 8, |bytes| bytes.set_u32(WHOLE, 1), libc::E2BIG),
        (WHOLE, |bytes| bytes.set_u32(4, 1), libc::EINVAL),
        (WHOLE, |bytes| bytes.set_u32(0, 8), libc::EINVAL),
    ] {
        let (cancel, wait, _) = cancel_by(&ia, length, change)?;
        same("results", (cancel, wait), (-errno, None))?;
    }
    Ok(())
}

fn streams(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let whole = size_of::<kdapl_uring_stream>();
    for (length, change, result) in [
        (whole + 16, (|_| {}) as ChangeMessage, 0),
        (whole + 8, |bytes| bytes.set_u32(bytes.as_ref().len() - 4, 1), -libc::E2BIG),
    ] {
        let mut ring = IoUring::new(8)?;
        let mut message = stream_message(&evd);
        message.timeout_ns = 0;
        let mut bytes = Bytes::of(&message);
        bytes.resize(length);
        bytes.set_u32(0, length as u32);
        change(&mut bytes);
        let stream =
            stream_entry(evd.device().as_raw_fd(), bytes.as_mut().as_mut_ptr() as u64, 0, 3);
        let op = request(number(call::URING_STREAM), length);
        let stream = with_words(stream, &[(2, op)]);
        same("stream", run(&mut ring, stream)?, result)?;
    }
    Ok(evd.free()?)
}
