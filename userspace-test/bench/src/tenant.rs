// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cost of a ping-pong while another user has reached its limits and keeps asking for more.
//!
//! The tenant is an ordinary user with the module's default limits. It creates EVDs, endpoints and
//! service points until each of them is refused, and then tries again every 10 ms.

use crate::benchmark::Sink;
use crate::ping;
use crate::sample::Sample;
use anyhow::{ensure, Context, Result};
use libkdapl::{EpAttr, EpConfig, EpCreator, EvdFlags, Ia, PspOptions, Result as DatResult, Type};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// User id of the tenant.
const USER: u32 = 1_234;
const PAUSE: Duration = Duration::from_millis(10);
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
}

impl Drop for Tenant {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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

/// Runs as the tenant.
pub fn tenant() -> Result<()> {
    let devices = libkdapl::devices()?;
    let device = devices.iter().find(|device| device.port_active).context("no RDMA device")?;
    let ia = Ia::open(&device.name, 64)?;
    let pz = ia.create_pz()?;
    let (dtos, connect, requests) = (
        ia.create_evd(EvdFlags::DTO, 64)?,
        ia.create_evd(EvdFlags::CONNECTION, 64)?,
        ia.create_evd(EvdFlags::CR, 64)?,
    );
    let attr = EpAttr { max_recv_dtos: 1, max_request_dtos: 1, ..Default::default() };
    let config = EpConfig {
        pz: Some(&pz),
        recv: Some(&dtos),
        request: Some(&dtos),
        connect: Some(&connect),
        attr: Some(attr),
        ..Default::default()
    };
    let options =
        PspOptions { conn_qual: None, endpoints: EpCreator::Consumer, backlog: Some(4096) };
    let (mut points, mut eps, mut evds) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_full = false;
    loop {
        fill(&mut points, || ia.create_psp_with(&requests, &options))?;
        fill(&mut eps, || ia.create_ep_with(&config))?;
        fill(&mut evds, || ia.create_evd(EvdFlags::SOFTWARE, 1))?;
        if !is_full {
            is_full = true;
            println!(
                "full: {} service points, {} endpoints, {} queues",
                points.len(),
                eps.len(),
                evds.len()
            );
        }
        std::thread::sleep(PAUSE);
    }
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    ping::our_time()?;
    let alone = ping::our_time()?;
    let tenant = Tenant::start()?;
    let beside = ping::our_time()?;
    drop(tenant);
    let what = "ping-pong beside a user at its limits, beside none: half a round trip";
    sink(Sample::new("tenant", what, "us", (beside, alone), BESIDE))
}
