// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Shared code of the tests with a hostile peer: memory for it to aim at, transfers of a good
//! client, and the phases of an attack.

use crate::context::Context;
use crate::end::{every_privilege, End, Pair};
use crate::expect::{done, same};
use crate::harness::skip;
use crate::machine::{has_kasan, meminfo, no_objects_left, SLAB};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Buffer, DtoOperation, Lmr, Privileges, Segment};

/// Bytes of a region.
const REGION: usize = 4096;
/// Limits the growth of kernel memory during an attack, in kilobytes: caches fill.
const DRIFT: i64 = 8 << 10;

/// Memory regions of the victim.
pub struct Targets {
    /// Grants every privilege; the peer gets its address and rkey.
    pub open: Lmr,
    /// Deny remote writes; the second denies remote reads too.
    closed: [Lmr; 2],
}

impl Targets {
    pub fn new(end: &End) -> Result<Self> {
        Ok(Self {
            open: region(end, every_privilege(&end.ia)?)?,
            closed: [
                region(end, Privileges::LOCAL_READ | Privileges::REMOTE_READ)?,
                region(end, Privileges::LOCAL_READ | Privileges::LOCAL_WRITE)?,
            ],
        })
    }

    /// Names the open region as a peer addresses it.
    pub fn remote(&self) -> Segment {
        self.open.remote_segment(0, REGION)
    }

    /// Checks that no peer has written to a closed region.
    pub fn intact(&self) -> Result<()> {
        for region in &self.closed {
            let bytes = region.buffer().to_vec(0, REGION);
            ensure!(bytes.iter().all(|byte| *byte == 0x55), "a peer has written to {region:?}");
        }
        Ok(())
    }
}

fn region(end: &End, privileges: Privileges) -> Result<Lmr> {
    let buffer = Buffer::new(REGION)?;
    buffer.fill(0, REGION, 0x55);
    Ok(end.ia.register(&end.pz, buffer, privileges)?)
}

/// Transfers data of the good client in both directions, by message and by RDMA write.
pub fn good_transfer(context: &Context, pair: &Pair) -> Result<()> {
    let length = context.rng().usize(1..16_000);
    let half = 32 << 10;
    for (from, to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
        let sent = from.scramble(context);
        to.receive(0, half, 1)?;
        from.send(half, length, 2)?;
        done(&context.next(&to.recv)?, DtoOperation::Receive, length as u64, 1)?;
        done(&context.next(&from.request)?, DtoOperation::Send, length as u64, 2)?;
        let good = to.lmr.buffer().to_vec(0, length) == sent[half..half + length];
        ensure!(good, "a message of {length} bytes arrived changed");
        from.write(half, length, to.lmr.remote_segment(half, length), 3)?;
        done(&context.next(&from.request)?, DtoOperation::RdmaWrite, length as u64, 3)?;
        let good = to.lmr.buffer().to_vec(half, length) == sent[half..half + length];
        ensure!(good, "an RDMA write of {length} bytes arrived changed");
    }
    Ok(())
}

/// Runs three phases of an attack, each with a seed and a duration in seconds. Fails if objects
/// remain or if kernel memory grows.
pub fn attack(context: &Context, phase: impl Fn(&Context, u64, u64) -> Result<()>) -> Result<()> {
    if context.server.is_siw() {
        return skip("siw's own listener and connections do not survive a hostile peer");
    }
    let effort = context.settings.effort;
    // Long enough for some connections.
    let least = if has_kasan() { 10.0 } else { 4.0 };
    let seconds = (effort * 40.0).clamp(least, 600.0) as u64;
    // A short run always uses the same seed.
    let seed = if effort < 1.0 { 1 } else { context.rng().u64(..1 << 32) };
    let mut memory = Vec::new();
    for number in 0..3 {
        phase(context, seed + 100 * number, seconds)
            .with_context(|| format!("seed {}, {seconds} seconds", seed + 100 * number))?;
        no_objects_left(context.settings.scale)?;
        memory.push(meminfo(SLAB)?);
    }
    println!("kernel memory after each phase: {memory:?} kB");
    let grown = memory[2] - memory[0];
    // KASAN keeps freed objects for a while.
    ensure!(grown < DRIFT || has_kasan(), "kernel memory has grown by {grown} kB");
    same("phases", memory.len(), 3)
}
