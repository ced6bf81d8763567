// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a driver is trusted with: a device passes for one of other drivers (`kdapl_disguise`).

use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{denied_by_peer, done, refused, same};
use crate::harness::skip;
use crate::machine::{become_user, become_user_with, CAP_SYS_RAWIO};
use crate::threads::Joined;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Buffer, DtoOperation, Error, Ia, Privileges, Segment, Type};

tests! {
    registering, 60, "Memory of a process is registered by drivers that take it from a module, and no other is asked";
    logged_once, 30, "The kernel logs once for a device why it registers no memory of processes";
    restricted, 60, "A user opens no adapter whose driver answers a peer without checking rights, but with CAP_SYS_RAWIO";
    all_memory, 60, "The key of a protection domain opens the kernel's memory to a peer over siw only";
}

/// `enum rdma_driver_id`: those whose `reg_user_mr` does without user data.
const TAKE_MEMORY: [(i32, &str); 10] = [
    (1, "mlx5"),
    (2, "mlx4"),
    (4, "cxgb4"),
    (6, "bnxt_re"),
    (7, "ocrdma"),
    (10, "vmw_pvrdma"),
    (11, "qedr"),
    (14, "rxe"),
    (19, "erdma"),
    (21, "ionic"),
];

/// Those that would crash, or register other memory, or that nobody has read.
const REFUSE_MEMORY: [(i32, &str); 9] = [
    (0, "unknown"),
    (3, "cxgb3"),
    (5, "mthca"),
    (8, "nes"),
    (9, "irdma"),
    (12, "hns"),
    (16, "qib"),
    (20, "mana"),
    (22, "one that does not exist yet"),
];

/// Those whose responder lets a peer at memory that nobody opened to it, or that nobody has read.
const UNSAFE: [(i32, &str); 4] =
    [(0, "unknown"), (15, "hfi1"), (18, "siw"), (22, "one that does not exist yet")];

/// An ordinary user.
const NOBODY: u32 = 65_534;

/// The client's device as one of this driver, -1 for its own, until the drop.
fn disguised(context: &Context, driver: i32) -> Result<Loaded> {
    let parameters = format!("device={} driver_id={driver}", context.client.device);
    Loaded::new("kdapl_disguise", &parameters)
}

/// Registers a page, and gives it back.
fn register(ia: &Ia) -> Result<(), Error> {
    let pz = ia.create_pz()?;
    ia.register(&pz, Buffer::new(4096)?, Privileges::ALL).map(drop)
}

fn registering(context: &Context) -> Result<()> {
    for (driver, name) in TAKE_MEMORY {
        let disguise = disguised(context, driver)?;
        register(&context.open()?).with_context(|| name.to_string())?;
        same(name, disguise.parameter("null_udata")?, 1)?;
        disguise.unload()?;
    }
    for (driver, name) in REFUSE_MEMORY {
        let disguise = disguised(context, driver)?;
        let refusal = refused(register(&context.open()?), Type::MODEL_NOT_SUPPORTED);
        refusal.with_context(|| name.to_string())?;
        same(name, disguise.parameter("null_udata")?, 0)?;
        disguise.unload()?;
    }
    Ok(())
}

/// How many lines of the kernel's log tell why this device registers no memory.
fn log_lines(context: &Context) -> Result<usize> {
    let output = std::process::Command::new("dmesg").output()?;
    ensure!(output.status.success(), "dmesg: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let start = format!("kdapl: {}: no memory of processes", context.client.device);
    Ok(text.lines().filter(|line| line.contains(&start)).count())
}

fn logged_once(context: &Context) -> Result<()> {
    let disguise = disguised(context, 9)?;
    let ia = context.open()?;
    for _ in 0..5 {
        refused(register(&ia), Type::MODEL_NOT_SUPPORTED)?;
    }
    drop(ia);
    disguise.unload()?;
    same("lines in the kernel's log", log_lines(context)?, 1)
}

/// What comes of it in a thread that `turn` makes another user's.
fn open_as(
    context: &Context,
    turn: impl FnOnce() -> Result<()> + Send,
) -> Result<Result<(), Error>> {
    let host = &context.client;
    let thread = || {
        host.settle()?;
        turn()?;
        Ok(Ia::open(&host.device, 4).map(drop))
    };
    std::thread::scope(|scope| scope.spawn(thread).join().or_panicked()?)
}

/// Whether the list of devices says that only the privileged may open this one.
fn is_listed_as_restricted(context: &Context) -> Result<bool> {
    let listed = context.client.inside(libkdapl::devices)??;
    let found = listed.into_iter().find(|found| found.name == context.client.device);
    Ok(found.context("the device is not listed")?.restricted)
}

fn restricted(context: &Context) -> Result<()> {
    for (driver, name) in UNSAFE {
        let disguise = disguised(context, driver)?;
        let outcome = open_as(context, || become_user(NOBODY))?;
        refused(outcome, Type::PRIVILEGES_VIOLATION).with_context(|| name.to_string())?;
        ensure!(is_listed_as_restricted(context)?, "{name} is not listed as restricted");
        open_as(context, || become_user_with(NOBODY, CAP_SYS_RAWIO))??;
        context.open()?;
        disguise.unload()?;
    }
    for (driver, name) in TAKE_MEMORY.into_iter().chain([(5, "mthca"), (9, "irdma"), (12, "hns")]) {
        let disguise = disguised(context, driver)?;
        open_as(context, || become_user(NOBODY))?.with_context(|| name.to_string())?;
        ensure!(!is_listed_as_restricted(context)?, "{name} is listed as restricted");
        disguise.unload()?;
    }
    // As it is.
    let outcome = open_as(context, || become_user(NOBODY))?;
    if context.client.is_siw() {
        return refused(outcome, Type::PRIVILEGES_VIOLATION);
    }
    Ok(outcome?)
}

/// With the device as one of siw: whether it is listed as restricted, and what comes of it if an
/// ordinary user opens it.
pub fn opened_as_siw(context: &Context) -> Result<(bool, Result<(), Error>)> {
    let disguise = disguised(context, 18)?;
    let outcome = (is_listed_as_restricted(context)?, open_as(context, || become_user(NOBODY))?);
    disguise.unload()?;
    Ok(outcome)
}

fn all_memory(context: &Context) -> Result<()> {
    const SECRET: &[u8] = b"the kernel keeps this to itself";
    if context.hosts().len() > 1 {
        return skip("the key is that of one host's device");
    }
    let disguise = disguised(context, -1)?;
    // The server's protection domain is the last that is made.
    let pair = Pair::new(context, Shape::default())?;
    let key = u32::try_from(disguise.parameter("dma_key")?)?;
    if key == 0 {
        return skip("the device has no region over all memory");
    }
    let address = disguise.parameter("secret")?;
    let remote = Segment { address, length: SECRET.len() as u32, context: key };
    let before = pair.client.scramble(context);
    pair.client.read(0, SECRET.len(), remote, 1)?;
    let event = context.next(&pair.client.request)?;
    let read = pair.client.lmr.buffer().to_vec(0, SECRET.len());
    if context.client.is_siw() {
        // Why `restricted` is as it is. Where this fails siw has learnt to check.
        done(&event, DtoOperation::RdmaRead, SECRET.len() as u64, 1)?;
        same("what the peer read", &read[..], SECRET)?;
    } else {
        denied_by_peer(context, &event, DtoOperation::RdmaRead)?;
        same("what was there", &read[..], &before[..SECRET.len()])?;
    }
    drop(pair);
    disguise.unload()
}
