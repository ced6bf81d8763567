// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Sends messages with a guard after them, which the kernel must not write.

use crate::context::Context;
use crate::raw::{request, send, Bytes};
use anyhow::{ensure, Result};
use libkdapl::raw::Device;

/// Bytes after a message. The kernel must not write them.
const GUARD: [u8; 64] = [0xa5; 64];

/// Sends `bytes` with a guard after them. Returns the outcome and the answer.
pub fn guarded(device: &Device, number: u32, bytes: &Bytes) -> Result<(Result<u32, i32>, Vec<u8>)> {
    let size = bytes.as_ref().len();
    let mut longer = Bytes::zeroed(size + GUARD.len());
    longer.as_mut()[..size].copy_from_slice(bytes.as_ref());
    longer.as_mut()[size..].copy_from_slice(&GUARD);
    let outcome = send(device, request(number, size), &mut longer);
    ensure!(longer.as_ref()[size..] == GUARD, "bytes after the message were written");
    Ok((outcome, longer.as_ref()[..size].to_vec()))
}

/// Sends a message that is zero except for its size, on a new file. See [`guarded`].
pub fn guarded_zeros(
    context: &Context,
    number: u32,
    size: usize,
) -> Result<(Result<u32, i32>, Vec<u8>)> {
    let ia = context.open()?;
    let mut bytes = Bytes::zeroed(size);
    bytes.set_u32(0, size as u32);
    guarded(ia.device(), number, &bytes)
}
