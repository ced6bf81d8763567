// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Restrictions by driver: module `kdapl_disguise` makes a device pass for one of another driver.

use super::connect::reject;
use super::iwarp;
use super::kernel::Loaded;
use super::rmr::scene::{bound, BOTH};
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{denied_by_peer, done, refused, refused_as, same};
use crate::harness::skip;
use crate::machine::{become_user, become_user_with, CAP_SYS_RAWIO, NOBODY};
use crate::threads::Joined;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Buffer, Close, CompletionFlags, Dto, DtoOperation, EpConfig, EpState, Error, Ia, Privileges,
    RmrBinding, Segment, Submitted, Subtype, Type,
};

tests! {
    #[Long]
    process_memory_only_if_supported, 60,
        "Only drivers that support it for kernel modules are asked to register process memory";
    refusal_is_logged_once, 30, "The kernel logs once for a device why it cannot register memory of processes";
    #[Long]
    restricted_device_needs_rawio, 60,
        "A user needs CAP_SYS_RAWIO to open a device whose driver ignores a peer's access rights";
    silent_peers_need_rawio, 60,
        "A user needs CAP_SYS_RAWIO to open an iWARP device whose driver a silent peer can stop";
    #[Transport]
    remote_use_of_local_key, 60,
        "Only siw lets a peer access the kernel's memory by the key of a protection domain";
    no_receives_beside_srq, 30, "The queue pair of an endpoint with an SRQ has no receives of its own, which mlx4 would refuse";
    #[Transport]
    signals_survive_calls, 60,
        "No process itself makes a call for which siw or erdma may discard its signals";
    busy_queue_pair, 60,
        "A post that the driver refuses while it changes the state of the queue pair is repeated";
    no_rmrs_by_device_address, 30, "There are no RMRs with a driver that takes their address for that of the device";
    zero_based, 60, "There are zero-based LMRs with those drivers only that register memory at any address";
}

/// Drivers (`enum rdma_driver_id`) whose `reg_user_mr` needs no user data.
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

/// Drivers whose `reg_user_mr` would crash or register other memory, and drivers that were not
/// reviewed.
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

/// A driver that a silent peer can stop over iWARP.
const IRDMA: (i32, &str) = (9, "irdma");

/// Drivers whose responder gives a peer access to memory that was not registered for it, and
/// drivers that were not reviewed.
const UNSAFE: [(i32, &str); 4] =
    [(0, "unknown"), (15, "hfi1"), (18, "siw"), (22, "one that does not exist yet")];

/// Makes the client's device pass for one of this driver, or of its own for -1, until dropped.
pub fn disguised(context: &Context, driver: i32) -> Result<Loaded> {
    let parameters = format!("device={} driver_id={driver}", context.client.device);
    Loaded::new("kdapl_disguise", &parameters)
}

/// Registers a page, and frees it.
fn register(ia: &Ia) -> Result<(), Error> {
    let pz = ia.create_pz()?;
    ia.register(&pz, Buffer::new(4096)?, Privileges::ALL).map(drop)
}

fn process_memory_only_if_supported(context: &Context) -> Result<()> {
    for (driver, name) in TAKE_MEMORY {
        let disguise = disguised(context, driver)?;
        register(&context.open()?).with_context(|| name.to_string())?;
        same(name, disguise.parameter("null_udata")?, 1)?;
        disguise.unload()?;
    }
    for (driver, name) in REFUSE_MEMORY {
        let disguise = disguised(context, driver)?;
        let ia = context.open()?;
        let refusal = refused(register(&ia), Type::MODEL_NOT_SUPPORTED);
        refusal.with_context(|| name.to_string())?;
        let limits = ia.query()?.raw;
        let promised = [limits.max_lmrs, limits.max_rmrs, limits.zb_supported];
        same(name, promised, [0; 3])?;
        drop(ia);
        same(name, disguise.parameter("null_udata")?, 0)?;
        disguise.unload()?;
    }
    Ok(())
}

/// Counts the lines of the kernel log with the reason why this device registers no memory.
fn log_lines(context: &Context) -> Result<usize> {
    let output = std::process::Command::new("dmesg").output()?;
    ensure!(output.status.success(), "dmesg: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let start = format!("kdapl: {}: no memory of processes", context.client.device);
    Ok(text.lines().filter(|line| line.contains(&start)).count())
}

fn refusal_is_logged_once(context: &Context) -> Result<()> {
    let disguise = disguised(context, 9)?;
    let ia = context.open()?;
    for _ in 0..5 {
        refused(register(&ia), Type::MODEL_NOT_SUPPORTED)?;
    }
    drop(ia);
    disguise.unload()?;
    same("lines in the kernel's log", log_lines(context)?, 1)
}

/// Opens the client's device in a new thread, after `turn` has changed the thread's user.
fn open_as(
    context: &Context,
    turn: impl FnOnce() -> Result<()> + Send,
) -> Result<Result<(), Error>> {
    open_device_as(context, &context.client.device, turn)
}

/// As [`open_as`], for another device of the client's host.
fn open_device_as(
    context: &Context,
    device: &str,
    turn: impl FnOnce() -> Result<()> + Send,
) -> Result<Result<(), Error>> {
    let host = &context.client;
    let thread = || {
        host.settle()?;
        turn()?;
        Ok(Ia::open(device, 4).map(drop))
    };
    std::thread::scope(|scope| scope.spawn(thread).join().or_panicked()?)
}

/// Checks whether the list of devices marks this one as restricted to privileged users.
fn is_listed_as_restricted(context: &Context) -> Result<bool> {
    let listed = context.client.inside(libkdapl::devices)??;
    let found = listed.into_iter().find(|found| found.name == context.client.device);
    Ok(found.context("the device is not listed")?.restricted)
}

fn restricted_device_needs_rawio(context: &Context) -> Result<()> {
    for (driver, name) in UNSAFE {
        let disguise = disguised(context, driver)?;
        let outcome = open_as(context, || become_user(NOBODY))?;
        refused(outcome, Type::PRIVILEGES_VIOLATION).with_context(|| name.to_string())?;
        ensure!(is_listed_as_restricted(context)?, "{name} is not listed as restricted");
        open_as(context, || become_user_with(NOBODY, CAP_SYS_RAWIO))??;
        context.open()?;
        disguise.unload()?;
    }
    for (driver, name) in TAKE_MEMORY.into_iter().chain([(5, "mthca"), (12, "hns"), IRDMA]) {
        if context.client.is_iwarp() && driver == IRDMA.0 {
            continue;
        }
        let disguise = disguised(context, driver)?;
        open_as(context, || become_user(NOBODY))?.with_context(|| name.to_string())?;
        ensure!(!is_listed_as_restricted(context)?, "{name} is listed as restricted");
        disguise.unload()?;
    }
    // The device without disguise.
    let outcome = open_as(context, || become_user(NOBODY))?;
    if context.client.is_siw() {
        return refused(outcome, Type::PRIVILEGES_VIOLATION);
    }
    Ok(outcome?)
}

fn silent_peers_need_rawio(context: &Context) -> Result<()> {
    let _device = iwarp::Device::of_client(context)?;
    let parameters = format!("device={} driver_id={}", iwarp::DEVICE, IRDMA.0);
    let disguise = Loaded::new("kdapl_disguise", &parameters)?;
    let outcome = open_device_as(context, iwarp::DEVICE, || become_user(NOBODY))?;
    refused(outcome, Type::PRIVILEGES_VIOLATION)?;
    open_device_as(context, iwarp::DEVICE, || become_user_with(NOBODY, CAP_SYS_RAWIO))??;
    disguise.unload()
}

/// Disguises the device as one of siw. Returns whether it is listed as restricted, and the result
/// of an ordinary user's open.
pub fn opened_as_siw(context: &Context) -> Result<(bool, Result<(), Error>)> {
    let disguise = disguised(context, 18)?;
    let outcome = (is_listed_as_restricted(context)?, open_as(context, || become_user(NOBODY))?);
    disguise.unload()?;
    Ok(outcome)
}

fn remote_use_of_local_key(context: &Context) -> Result<()> {
    const SECRET: &[u8] = b"the kernel keeps this to itself";
    if context.hosts().len() > 1 {
        return skip("the key belongs to one host's device");
    }
    let disguise = disguised(context, -1)?;
    // The server's protection domain is the last one created.
    let pair = Pair::new(context, Shape::default())?;
    let key = u32::try_from(disguise.parameter("dma_key")?)?;
    if key == 0 {
        return skip("the device has no memory region for all memory");
    }
    let address = disguise.parameter("secret")?;
    let remote = Segment { address, length: SECRET.len() as u32, context: key };
    let before = pair.client.scramble(context);
    pair.client.read(0, SECRET.len(), remote, 1)?;
    let event = context.next(&pair.client.request)?;
    let read = pair.client.lmr.buffer().to_vec(0, SECRET.len());
    if context.client.is_siw() {
        // This is the reason for `restricted`. If it fails, siw checks access rights now.
        done(&event, DtoOperation::RdmaRead, SECRET.len() as u64, 1)?;
        same("memory that the peer read", &read[..], SECRET)?;
    } else {
        denied_by_peer(context, &event, DtoOperation::RdmaRead)?;
        same("memory after the refused read", &read[..], &before[..SECRET.len()])?;
    }
    drop(pair);
    disguise.unload()
}

fn no_receives_beside_srq(context: &Context) -> Result<()> {
    let disguise = disguised(context, -1)?;
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    let srq = ia.create_srq(&pz, 8, 1)?;
    ia.create_ep_with(&EpConfig { pz: Some(&pz), srq: Some(&srq), ..EpConfig::default() })?;
    drop((srq, pz, ia));
    disguise.unload()
}

/// `RDMA_DRIVER_OCRDMA`, which binds no RMRs.
pub const OCRDMA: i32 = 7;

fn no_rmrs_by_device_address(context: &Context) -> Result<()> {
    let disguise = disguised(context, OCRDMA)?;
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    refused(ia.create_rmr(&pz), Type::MODEL_NOT_SUPPORTED)?;
    same("most RMRs", ia.query()?.raw.max_rmrs, 0)?;
    drop((pz, ia));
    disguise.unload()?;
    let ia = context.open()?;
    let limits = ia.query()?.raw;
    same("most RMRs", limits.max_rmrs, limits.max_lmrs)?;
    ia.create_rmr(&ia.create_pz()?)?;
    Ok(())
}

/// Drivers that register memory, and whether they do so at any address.
const REGISTER_ELSEWHERE: [(i32, &str, bool); 3] =
    [(1, "mlx5", true), (2, "mlx4", false), (10, "vmw_pvrdma", false)];

fn zero_based(context: &Context) -> Result<()> {
    for (driver, name, expected) in REGISTER_ELSEWHERE {
        let disguise = disguised(context, driver)?;
        let ia = context.open()?;
        let pz = ia.create_pz()?;
        same(name, ia.query()?.raw.zb_supported != 0, expected)?;
        let made = ia.register_zero_based(&pz, Buffer::new(8192)?, Privileges::ALL);
        if expected {
            made.map(drop).context(name)?;
        } else {
            refused(made.map(drop), Type::MODEL_NOT_SUPPORTED).context(name)?;
        }
        drop((pz, ia));
        disguise.unload()?;
    }
    Ok(())
}

/// Connects and ends connections in every way: each step may disconnect, reject, accept or destroy.
fn end_connections(context: &Context) -> Result<()> {
    for how in [Close::Graceful, Close::Abrupt] {
        let pair = Pair::new(context, Shape::default())?;
        pair.client.ep.disconnect(how)?;
        pair.server.ep.disconnect(how)?;
        for ep in [&pair.client.ep, &pair.server.ep] {
            context.until("a disconnect", || Ok(ep.status()?.state == EpState::Disconnected))?;
        }
        pair.client.ep.reset()?;
        pair.server.ep.free()?;
    }
    drop(Pair::new(context, Shape::default())?);
    let refused = Pair::unconnected(context, Shape::default())?;
    refused.request(context, context.patience(), false)?;
    let mut request = refused.listener.request(context)?;
    reject(context, &mut request, b"no", &refused.listener.evd, &refused.client.connect)?;
    let pending = Pair::unconnected(context, Shape::default())?;
    pending.request(context, context.patience(), false)?;
    let _request = pending.listener.request(context)?;
    Ok(pending.client.ep.disconnect(Close::Abrupt)?)
}

/// erdma, whose connections siw resembles. The driver of another device is asked for nothing but
/// its queue pairs.
fn signals_survive_calls(context: &Context) -> Result<()> {
    let disguise = disguised(context, 19)?;
    end_connections(context)?;
    same("calls of processes", disguise.parameter("by_processes")?, 0)?;
    disguise.unload()?;
    // A driver that discards no signals is called directly.
    let disguise = disguised(context, 14)?;
    end_connections(context)?;
    ensure!(disguise.parameter("by_processes")? != 0, "nothing was counted");
    disguise.unload()
}

/// Makes the driver refuse posts during `post`, which must make them again.
fn amid_change(disguise: &Loaded, refused: u64, post: impl FnOnce() -> Result<()>) -> Result<()> {
    disguise.set("busy_posts", refused)?;
    post()?;
    same("refusals that are left", disguise.parameter("busy_posts")?, 0)
}

fn busy_queue_pair(context: &Context) -> Result<()> {
    let disguise = disguised(context, -1)?;
    let pair = Pair::new(context, Shape::default())?;
    let (client, server) = (&pair.client, &pair.server);
    for refused in [1, 7] {
        amid_change(&disguise, refused, || client.receive(0, 8, 1))?;
        server.send(0, 8, 2)?;
        server.receive(0, 8, 3)?;
        done(&context.next(&client.recv)?, DtoOperation::Receive, 8, 1)?;
        amid_change(&disguise, refused, || client.send(0, 8, 4))?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 8, 3)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 8, 4)?;
        done(&context.next(&server.request)?, DtoOperation::Send, 8, 2)?;
    }
    (5..8).try_for_each(|cookie| server.receive(0, 8, cookie))?;
    let segment = [client.lmr.segment(0, 8)];
    let send =
        |cookie| Dto::new(DtoOperation::Send, &segment, None, cookie, CompletionFlags::default());
    amid_change(&disguise, 3, || {
        let Submitted { posted, event } = client.ep.submit(&[send(5), send(6), send(7)], None);
        event?;
        same("posted DTOs", posted, 3)
    })?;
    for cookie in 5..8 {
        done(&context.next(&server.recv)?, DtoOperation::Receive, 8, cookie)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 8, cookie)?;
    }
    let rmr = client.ia.create_rmr(&client.pz)?;
    let part = RmrBinding { lmr: &client.lmr, segment: segment[0], privileges: BOTH };
    amid_change(&disguise, 1, || {
        rmr.bind(&client.ep, &part, 9, CompletionFlags::default())?;
        bound(context, client, &rmr, 9)
    })?;
    // A queue pair that stays busy.
    disguise.set("busy_posts", 1 << 20)?;
    let refusal = client.ep.post_recv(&segment, 8, CompletionFlags::default());
    disguise.set("busy_posts", 0)?;
    refused_as(refusal, Type::INVALID_STATE, Subtype::INVALID_STATE_EP_NOTREADY)?;
    disguise.unload()
}
