// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Charging of kernel memory and objects to cgroups.

use super::device_removal::works_again;
use super::psp::Side;
use super::tests;
use crate::cgroup::Cgroup;
use crate::context::Context;
use crate::expect::{connection, refused, same};
use crate::machine::no_objects_left;
use crate::peer::{Peer, Step};
use anyhow::{ensure, Result};
use libkdapl::{ConnectionEvent, EpCreator, Evd, EvdFlags, Ia, Psp, PspOptions, Type};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

tests! {
    rdma_cgroup_limits, 20,
        "The rdma cgroup limits adapters and objects, and is uncharged for all of them";
    requests_are_charged_to_listener, 60,
        "Pending requests, and endpoints created for them, are charged to the listening process";
    listener_without_memory_rejects, 120,
        "A listening process that is short of memory rejects connection requests, and survives";
}

fn rdma_cgroup_limits(context: &Context) -> Result<()> {
    let device = &context.client.device;
    let limits = format!("{device} hca_handle=1 hca_object=3");
    let cgroup = Cgroup::enter("rdma", "rdma.max", &limits)?;
    let ia = Ia::open(device, 1)?;
    refused(Ia::open(device, 1), Type::INSUFFICIENT_RESOURCES)?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(EvdFlags::DTO, 1)?, ia.create_evd(EvdFlags::DTO, 1)?];
    refused(ia.create_pz(), Type::INSUFFICIENT_RESOURCES)?;
    refused(ia.create_evd(EvdFlags::DTO, 1), Type::INSUFFICIENT_RESOURCES)?;
    // An EVD for software events needs no CQ, so nothing is charged.
    ia.create_evd(EvdFlags::SOFTWARE, 1)?;
    pz.free()?;
    ia.create_pz()?;
    drop((pz, evds, ia));
    let left = cgroup.read("rdma.current");
    ensure!(cgroup.exists(), "the cgroup is gone");
    let own = left.lines().map(str::trim).find(|line| line.starts_with(device.as_str()));
    same("charge that is left", own, Some(&*format!("{device} hca_handle=0 hca_object=0")))
}

/// Creates a listener with room for `requests` requests.
fn listen(side: &Side, endpoints: EpCreator, requests: i32) -> Result<(Psp, Evd)> {
    let evd = side.ia.create_evd(EvdFlags::CR, requests)?;
    let options = PspOptions { endpoints, backlog: Some(requests as u32), ..Default::default() };
    Ok((side.ia.create_psp_with(&evd, &options)?, evd))
}

fn requests_are_charged_to_listener(context: &Context) -> Result<()> {
    let count = if context.is_brief() { 50 } else { 200 };
    /// Minimum of a request. It is more than its private data, which are kept.
    const MIN_REQUEST_BYTES: u64 = 128;
    /// Minimum of the endpoint that the provider creates: room for 256 DTOs of each direction.
    const MIN_EP_BYTES: u64 = 2 * 256 * 32;
    let cgroup = Cgroup::enter("memory", "memory.max", "max")?;
    for (endpoints, at_least) in [
        (EpCreator::Consumer, MIN_REQUEST_BYTES),
        (EpCreator::Provider, MIN_REQUEST_BYTES + MIN_EP_BYTES),
    ] {
        let (client, server) = (Side::client(context)?, Side::server(context)?);
        let (psp, requests) = listen(&server, endpoints, count)?;
        let eps = (0..count).map(|_| client.end.another_ep()).collect::<Result<Vec<_>>>()?;
        let before = cgroup.kernel_memory()?;
        for ep in &eps {
            client.connect(context, ep, psp.conn_qual(), &[])?;
        }
        context
            .until("all requests are pending", || Ok(requests.query()?.queued == count as u32))?;
        let paid = cgroup.kernel_memory()?.saturating_sub(before);
        println!("{endpoints:?}: {} bytes for each request", paid / count as u64);
        ensure!(paid >= count as u64 * at_least, "{paid} bytes for {count} requests");
    }
    Ok(())
}

/// Number of pending requests of the other process, in a file. Neither side needs memory to use it.
struct Pending(File);

impl Pending {
    fn path(port: u64) -> String {
        format!("/tmp/kdapl-pending-{port}")
    }

    /// Creates the file. Its page is charged to the caller.
    fn create(port: u64) -> Result<Self> {
        let options = File::options().read(true).write(true).create(true).truncate(true).to_owned();
        let this = Self(options.open(Self::path(port))?);
        this.set(0)?;
        Ok(this)
    }

    fn open(port: u64) -> Result<Self> {
        Ok(Self(File::options().write(true).open(Self::path(port))?))
    }

    fn set(&self, count: u32) -> Result<()> {
        Ok(self.0.write_all_at(&count.to_ne_bytes(), 0)?)
    }

    fn get(&self) -> Result<u32> {
        let mut bytes = [0; 4];
        self.0.read_exact_at(&mut bytes, 0)?;
        Ok(u32::from_ne_bytes(bytes))
    }
}

/// Runs in the other process: listens, does not answer, and counts the pending requests.
pub fn poor(context: &Context, port: u64) -> Result<()> {
    let pending = Pending::open(port)?;
    let side = Side::server(context)?;
    let evd = side.ia.create_evd(EvdFlags::CR, 1000)?;
    let (conn_qual, endpoints, backlog) = (Some(port), EpCreator::Provider, Some(1000));
    let _psp = side.ia.create_psp_with(&evd, &PspOptions { conn_qual, endpoints, backlog })?;
    println!("{:?}", Step::Opened);
    loop {
        pending.set(evd.query()?.queued)?;
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn listener_without_memory_rejects(context: &Context) -> Result<()> {
    /// Enough for a few requests. Each takes 16 KiB or more.
    const FREE_MEMORY: u64 = 512 << 10;
    // More than that memory is for.
    let calls = if context.is_brief() { 60 } else { 200 };
    /// Software iWARP gives up a request that is not answered for so long.
    const SIW_PATIENCE: Duration = Duration::from_secs(10);
    let cgroup = Cgroup::enter("memory", "memory.max", "max")?;
    let port = context.port();
    let pending = Pending::create(port)?;
    let mut peer = Peer::play(context, &format!("Poor {port} 0"))?;
    peer.reaches(Step::Opened)?;
    cgroup.leave()?;
    let client = Side::client(context)?;
    // One event for each request.
    client.end.connect.resize(calls)?;
    let eps = (0..calls).map(|_| client.end.another_ep()).collect::<Result<Vec<_>>>()?;
    cgroup.leave_room(FREE_MEMORY)?;
    let patience = Some(context.patience() * 3);
    let start = Instant::now();
    for ep in &eps {
        ep.connect(context.server_address(), port, patience, &[])?;
    }
    let rejected = || client.end.connect.query().map(|evd| evd.queued);
    context.until("a request is rejected", || Ok(rejected()? > 0))?;
    context.until("each request is rejected or pending", || {
        Ok(rejected()? + pending.get()? >= calls as u32)
    })?;
    ensure!(!peer.has_ended()?, "the other process died of the requests");
    // The end of the process rejects the pending requests.
    peer.kill()?;
    for _ in 0..calls {
        let event = context.next(&client.end.connect)?;
        // Either the listener has rejected the request, or siw has given it up.
        let rejected = connection(&event, ConnectionEvent::NonPeerRejected);
        match context.client.is_iwarp() && start.elapsed() > SIW_PATIENCE {
            true => rejected.or_else(|_| connection(&event, ConnectionEvent::Unreachable))?,
            false => rejected?,
        }
    }
    context.quiet(&client.end.connect)?;
    drop((eps, client));
    no_objects_left(context.settings.scale)?;
    works_again(context)
}
