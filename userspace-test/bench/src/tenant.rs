// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cost of a ping-pong while another user has reached its limits and keeps asking for more.
//!
//! The tenant is an ordinary user with the module's default limits. It opens adapters, registers
//! memory, and creates service points, endpoints and EVDs, each until it is refused. Then it tries
//! all of them again every 10 ms. All the time
//! some of its endpoints connect to nobody, some commands of io_uring wait, and each 10 ms it
//! connects, disconnects and resets another endpoint. Others can still connect.

use crate::benchmark::Sink;
use crate::ping;
use crate::sample::Sample;
use anyhow::{ensure, Context, Result};
use libkdapl::uring::Ring;
use libkdapl::{
    Buffer, Ep, EpAttr, EpConfig, EpCreator, Evd, EvdFlags, Ia, Lmr, Privileges, Psp, PspOptions,
    Pz, Result as DatResult, Type,
};
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// User id of the tenant.
const USER: u32 = 1_234;
const PAUSE: Duration = Duration::from_millis(10);
/// Endpoints of the tenant that connect to nobody.
const CONNECTING: u32 = 256;
/// Commands of the tenant that wait, each on an EVD of its own.
const COMMANDS: u32 = 256;
/// Bytes of a memory region of the tenant.
const REGION: usize = 64 << 10;
/// Port at which nobody listens.
const NO_SERVICE: u64 = 9;
/// Time limit of a connect that is rejected.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum ratio by which a tenant may slow down another user's ping-pong.
const BESIDE: f64 = 1.1;

/// The tenant's process, killed on drop.
struct Tenant(Child);

impl Tenant {
    /// Starts the tenant and waits until it has reached its limits.
    fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command
            .arg("tenant")
            .uid(USER)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the tenant")?;
        let output = child.stdout.take().context("no pipe")?;
        let tenant = Self(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line.starts_with("full"), "the tenant ended early");
        eprintln!("kdapl-bench: tenant: {}", line.trim());
        Ok(tenant)
    }

    fn is_active(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }
}

impl Drop for Tenant {
    /// Returns once the kernel has destroyed all that the tenant had: io_uring and the module do
    /// that after the end of the process.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let start = Instant::now();
        while holds_resources() && start.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Returns whether the module still counts resources of the tenant.
fn holds_resources() -> bool {
    let users = std::fs::read_to_string("/sys/kernel/debug/kdapl/users");
    users.is_ok_and(|users| users.contains(&format!("user={USER} ")))
}

/// Creates objects until one is refused.
fn fill<T>(made: &mut Vec<T>, make: impl Fn() -> DatResult<T>) -> Result<()> {
    loop {
        match make() {
            Ok(one) => made.push(one),
            Err(error) if error.kind() == Some(Type::INSUFFICIENT_RESOURCES) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The objects that the tenant fills its limits with: open adapters, service points, pinned memory,
/// memory of the driver, and memory of the module.
#[derive(Default)]
struct Hoard {
    adapters: Vec<Ia>,
    points: Vec<Psp>,
    regions: Vec<Lmr>,
    eps: Vec<Ep>,
    evds: Vec<Evd>,
}

/// The queues of the tenant.
struct Queues {
    device: String,
    ia: Ia,
    pz: Pz,
    dtos: Evd,
    connect: Evd,
    requests: Evd,
}

impl Queues {
    fn new(device: &str) -> Result<Self> {
        let ia = Ia::open(device, 64)?;
        Ok(Self {
            device: device.to_string(),
            pz: ia.create_pz()?,
            dtos: ia.create_evd(EvdFlags::DTO, 64)?,
            connect: ia.create_evd(EvdFlags::CONNECTION, 64)?,
            requests: ia.create_evd(EvdFlags::CR, 64)?,
            ia,
        })
    }

    fn ep(&self) -> DatResult<Ep> {
        let attr = EpAttr { max_recv_dtos: 1, max_request_dtos: 1, ..Default::default() };
        self.ia.create_ep_with(&EpConfig {
            pz: Some(&self.pz),
            recv: Some(&self.dtos),
            request: Some(&self.dtos),
            connect: Some(&self.connect),
            attr: Some(attr),
            ..Default::default()
        })
    }

    /// Creates objects until no kind can be created any more.
    fn fill(&self, hoard: &mut Hoard) -> Result<()> {
        let options =
            PspOptions { conn_qual: None, endpoints: EpCreator::Consumer, backlog: Some(4096) };
        fill(&mut hoard.adapters, || Ia::open(&self.device, 4))?;
        fill(&mut hoard.regions, || {
            self.ia.register(&self.pz, Buffer::new(REGION)?, Privileges::ALL)
        })?;
        fill(&mut hoard.points, || self.ia.create_psp_with(&self.requests, &options))?;
        fill(&mut hoard.eps, || self.ep())?;
        fill(&mut hoard.evds, || self.ia.create_evd(EvdFlags::SOFTWARE, 1))
    }
}

/// Returns an address of the same network that no host has.
fn nobody(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(own) => {
            let [a, b, c, _] = own.octets();
            [a, b, c, 77].into()
        }
        IpAddr::V6(own) => {
            let mut segments = own.segments();
            segments[7] = 0x77;
            segments.into()
        }
    }
}

/// Connects an endpoint to a port at which nobody listens, and resets it after the reject.
fn reconnect(ep: &Ep, connect: &Evd, own: IpAddr) -> Result<()> {
    ep.connect(own, NO_SERVICE, None, &[])?;
    connect.wait(Some(PATIENCE), 1)?;
    ep.reset()?;
    Ok(())
}

/// Allows as many open files as the system does: each adapter is one.
fn allow_open_files() -> Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most).context("the limit of open files")
}

/// Runs as the tenant.
pub fn tenant() -> Result<()> {
    allow_open_files()?;
    let devices = libkdapl::devices()?;
    let device = devices.iter().find(|device| device.port_active).context("no RDMA device")?;
    let own = device.address.context("no address")?;
    let queues = Queues::new(&device.name)?;
    let evd = |_| queues.ia.create_evd(EvdFlags::SOFTWARE, 1);
    let waited = (0..COMMANDS).map(evd).collect::<DatResult<Vec<_>>>()?;
    let mut ring = Ring::new(COMMANDS)?;
    for (evd, tag) in waited.iter().zip(0..) {
        ring.wait_evd(evd, None, 1, 1, tag)?;
    }
    ring.submit()?;
    let connecting = (0..CONNECTING).map(|_| queues.ep()).collect::<DatResult<Vec<_>>>()?;
    for ep in &connecting {
        ep.connect(nobody(own), NO_SERVICE, None, &[])?;
    }
    let reconnecting = queues.ep()?;
    let mut hoard = Hoard::default();
    queues.fill(&mut hoard)?;
    println!(
        "full: {} adapters, {} regions, {} service points, {} endpoints, {} queues",
        hoard.adapters.len(),
        hoard.regions.len(),
        hoard.points.len(),
        hoard.eps.len(),
        hoard.evds.len()
    );
    loop {
        reconnect(&reconnecting, &queues.connect, own)?;
        std::thread::sleep(PAUSE);
        queues.fill(&mut hoard)?;
    }
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    ping::our_time()?;
    let alone = ping::our_time()?;
    let mut tenant = Tenant::start()?;
    let beside = ping::our_time()?;
    ensure!(tenant.is_active()?, "the tenant ended early");
    drop(tenant);
    let what = "ping-pong beside a user at its limits, beside none: half a round trip";
    sink(Sample::new("tenant", what, "us", (beside, alone), BESIDE))
}
