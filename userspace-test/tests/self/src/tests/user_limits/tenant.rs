// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The tenant: an ordinary user in another process, who takes as much as it gets.

use crate::context::Context;
use crate::end::{End, Shape};
use crate::fork::{end_of, fork};
use crate::machine::{become_user_with, CAP_SYS_RAWIO};
use crate::peer::Peer;
use anyhow::{bail, ensure, Context as _, Result};
use clap::ValueEnum;
use libkdapl::{
    Buffer, Ep, EpAttr, EpConfig, EpCreator, Evd, EvdFlags, Ia, Privileges, PspOptions, Pz, Type,
};
use std::time::Duration;

/// Id of an ordinary user.
pub const ORDINARY_USER: u32 = 1_234;

/// Makes the calling thread an ordinary user. CAP_SYS_RAWIO lets it open a siw device.
pub fn become_tenant() -> Result<()> {
    become_user_with(ORDINARY_USER, CAP_SYS_RAWIO)
}

/// The part of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Role {
    /// Listens, and leaves requests unanswered.
    Listener,
    /// Opens adapters until one is refused.
    Adapters,
    /// The same in a user namespace that it creates.
    AdaptersElsewhere,
    /// Creates objects until one is refused.
    Objects,
    /// Creates service points until one is refused.
    ServicePoints,
    /// Creates endpoints until one is refused.
    QueuePairs,
    /// Creates long completion queues until one is refused.
    DriverMemory,
    /// Registers memory in children, which end, until one is refused.
    Pinned,
    /// Creates long event queues until one is refused.
    EventQueues,
    /// Lengthens event queues until that is refused.
    Resizes,
    /// Creates endpoints for many transfers, without queues of the device, until one is refused.
    Slots,
    /// Posts receives to an endpoint without a connection until one is refused.
    Receives,
    /// Connects endpoints to nobody until a connect is refused.
    Connects,
    /// Creates service points at free ports until one is refused.
    Ports,
}

/// Starts a tenant, and waits until it is ready. Returns the number of its objects.
pub(super) fn start(context: &Context, role: Role, port: u64) -> Result<(Peer, u64)> {
    let mut peer = Peer::play(context, &format!("Tenant {port} {}", role as i64))?;
    let told = peer.says()?;
    let count = told.strip_prefix("ready ").with_context(|| format!("the tenant says {told}"))?;
    let count = count.parse()?;
    Ok((peer, count))
}

/// Runs as the tenant.
pub fn tenant(context: &Context, port: u64, role: i64) -> Result<()> {
    let named = |other: &&Role| **other as i64 == role;
    let role = *Role::value_variants().iter().find(named).context("the role is unknown")?;
    let host = if role == Role::Connects { &context.client } else { &context.server };
    host.settle()?;
    become_tenant()?;
    if role == Role::AdaptersElsewhere {
        // SAFETY: the call reads no memory.
        let moved = unsafe { libc::unshare(libc::CLONE_NEWUSER) };
        ensure!(moved == 0, "unshare: {}", std::io::Error::last_os_error());
    }
    let open = || Ia::open(&host.device, 8);
    if matches!(role, Role::Adapters | Role::AdaptersElsewhere) {
        return hoard(|_| open());
    }
    let ia = open()?;
    match role {
        Role::EventQueues | Role::Resizes | Role::Slots | Role::Receives => hoard_memory(&ia, role),
        Role::Pinned => register_in_children(&ia),
        Role::Connects => {
            let parts = EpParts::new(&ia)?;
            hoard(|_| connecting(context, &ia, &parts))
        }
        _ => hoard_objects(&ia, role, port),
    }
}

/// Creates objects of which a user may have some number until one is refused.
fn hoard_objects(ia: &Ia, role: Role, port: u64) -> Result<()> {
    let cr = ia.create_evd(EvdFlags::CR, 4000)?;
    let listen = |conn_qual| {
        let (endpoints, backlog) = (EpCreator::Provider, Some(4000));
        ia.create_psp_with(&cr, &PspOptions { conn_qual, endpoints, backlog })
    };
    match role {
        Role::Listener => {
            let _psp = listen(Some(port))?;
            stay(0)
        }
        Role::Objects => hoard(|_| ia.create_evd(EvdFlags::SOFTWARE, 1)),
        Role::ServicePoints => hoard(|number| listen(Some((1 << 45) + port + number))),
        Role::Ports => hoard(|_| listen(None)),
        Role::DriverMemory => hoard(|_| ia.create_evd(EvdFlags::DTO, 1)),
        Role::QueuePairs => {
            let parts = EpParts::new(ia)?;
            hoard(|_| ia.create_ep_with(&parts.config()))
        }
        _ => bail!("{role:?} has another function"),
    }
}

/// Uses memory of the module until more is refused.
fn hoard_memory(ia: &Ia, role: Role) -> Result<()> {
    let limits = ia.query()?.raw;
    let qlen = i32::try_from(limits.max_evd_qlen)?;
    match role {
        Role::EventQueues => hoard(|_| ia.create_evd(EvdFlags::SOFTWARE, qlen)),
        Role::Resizes => hoard(|_| {
            let evd = ia.create_evd(EvdFlags::SOFTWARE, 1)?;
            evd.resize(qlen).map(|_| evd)
        }),
        Role::Slots => {
            let attr = EpAttr {
                max_recv_dtos: limits.max_dto_per_ep,
                max_request_dtos: limits.max_dto_per_ep,
                ..Default::default()
            };
            hoard(|_| ia.create_ep_with(&EpConfig { attr: Some(attr), ..Default::default() }))
        }
        Role::Receives => {
            let end = End::new(ia, Shape::default())?;
            hoard(|_| waiting_receives(&end, limits.max_iov_segments_per_dto.min(13)))
        }
        _ => bail!("{role:?} has another function"),
    }
}

/// Creates an endpoint, and posts many receives of this many segments.
fn waiting_receives(end: &End, segments: u32) -> Result<Ep, libkdapl::Error> {
    // Soft-RoCE's queues have a power of two of entries, and one more than requested.
    const RECEIVES: u32 = 4095;
    let attr = EpAttr { max_recv_dtos: RECEIVES, max_recv_iov: segments, ..Default::default() };
    let ep = end.ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(attr))?;
    let segments: Vec<_> = (0..segments as usize).map(|at| end.lmr.segment(at, 1)).collect();
    for cookie in 0..RECEIVES.into() {
        ep.post_recv(&segments, cookie, Default::default())?;
    }
    Ok(ep)
}

/// Creates an endpoint, and connects it to a host that does not exist, without a time-out.
fn connecting(context: &Context, ia: &Ia, parts: &EpParts) -> Result<Ep, libkdapl::Error> {
    let ep = ia.create_ep_with(&parts.config())?;
    ep.connect(context.client.nobody(), 7176, None, &[])?;
    Ok(ep)
}

/// Has children register a megabyte each, through the file that they inherit, until the user is
/// refused it.
fn register_in_children(ia: &Ia) -> Result<()> {
    const MEGABYTE: usize = 1 << 20;
    /// More than a user may have.
    const MANY: u64 = 64;
    let pz = ia.create_pz()?;
    for count in 0..MANY {
        let child = fork(|| {
            let register = |memory| ia.register(&pz, memory, Privileges::LOCAL_READ);
            // The parent's file keeps it.
            std::mem::forget(Buffer::new(MEGABYTE).and_then(register)?);
            Ok(())
        })?;
        if end_of(child)? != 0 {
            return stay(count);
        }
    }
    bail!("no registration was refused")
}

/// Creates objects until the user is refused one, and keeps them.
fn hoard<T: std::fmt::Debug>(make: impl Fn(u64) -> Result<T, libkdapl::Error>) -> Result<()> {
    let mut made = Vec::new();
    loop {
        match make(made.len() as u64) {
            Ok(one) => made.push(one),
            refused => {
                crate::expect::refused(refused, Type::INSUFFICIENT_RESOURCES)?;
                return stay(made.len() as u64);
            }
        }
    }
}

/// Prints the number of objects, and waits to be killed.
fn stay(count: u64) -> Result<()> {
    println!("ready {count}");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// The objects that a small endpoint needs.
pub(super) struct EpParts {
    pub(super) pz: Pz,
    dtos: Evd,
    pub(super) connect: Evd,
}

impl EpParts {
    pub(super) fn new(ia: &Ia) -> Result<Self> {
        let (dtos, connect) =
            (ia.create_evd(EvdFlags::DTO, 64)?, ia.create_evd(EvdFlags::CONNECTION, 64)?);
        Ok(Self { pz: ia.create_pz()?, dtos, connect })
    }

    pub(super) fn config(&self) -> EpConfig<'_> {
        let attr = EpAttr { max_recv_dtos: 1, max_request_dtos: 1, ..Default::default() };
        EpConfig {
            pz: Some(&self.pz),
            recv: Some(&self.dtos),
            request: Some(&self.dtos),
            connect: Some(&self.connect),
            attr: Some(attr),
            ..Default::default()
        }
    }
}
