// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Limits the share of one device that a user may use.

use super::tests;
use super::user_limits::{become_tenant, held, Parameter, ORDINARY_USER};
use crate::context::Context;
use crate::expect::{refused, same};
use crate::harness::skip;
use crate::hosts::Host;
use crate::peer::Peer;
use anyhow::{Context as _, Result};
use libkdapl::{Buffer, EpAttr, EpConfig, Evd, EvdFlags, Ia, Privileges, Pz, Type};
use std::any::Any;
use std::time::Duration;

tests! {
    #[Long]
    counted_for_each_device, 120, "A user that has used up its share of one device still has its share of another";
}

const DEVICE: &str = "kdapl_u";
const NETDEV: &str = "kdaplU";
const ADDRESS: &str = "10.9.3.1/24";

/// Creates a second device of the server's host, and removes it when dropped.
struct SecondDevice<'a>(&'a Host);

impl<'a> SecondDevice<'a> {
    fn new(host: &'a Host) -> Result<Self> {
        let driver = match host.driver() {
            Some(driver) if !host.is_iwarp() => driver,
            _ => {
                return skip(format!(
                    "{} has no driver that can create a second device for a user",
                    host.device
                ))
            }
        };
        let this = Self(host);
        this.clear();
        for line in [
            format!("ip link add {NETDEV} type dummy"),
            format!("ip addr add {ADDRESS} dev {NETDEV}"),
            format!("ip link set {NETDEV} up"),
            format!("rdma link add {DEVICE} type {driver} netdev {NETDEV}"),
        ] {
            host.command(&line)?;
        }
        Ok(this)
    }

    fn clear(&self) {
        // They may not exist.
        let _ = self.0.command(&format!("rdma link del {DEVICE}"));
        let _ = self.0.command(&format!("ip link del {NETDEV}"));
    }
}

impl Drop for SecondDevice<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

fn counted_for_each_device(context: &Context) -> Result<()> {
    let _second = SecondDevice::new(&context.server)?;
    // One object of each kind: a share is never less.
    let _parameter = Parameter::set("user_device_share", 0)?;
    let mut tenant = Peer::play(context, "Shares 0 0")?;
    same("answer of the tenant", tenant.says()?.as_str(), "ready")?;
    // The total limits count both devices.
    for item in ["queue_pairs", "completion_queues", "protection_domains", "memory_regions"] {
        same(item, held(ORDINARY_USER, item)?, 2)?;
    }
    tenant.kill()?;
    context
        .until("the user holds no objects", || Ok(held(ORDINARY_USER, "protection_domains")? == 0))
}

/// Runs as the tenant: uses its share of each device.
pub fn tenant(context: &Context) -> Result<()> {
    context.server.settle()?;
    become_tenant()?;
    let _kept = [&context.server.device, DEVICE]
        .map(|device| share_of(device).with_context(|| device.to_string()))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    println!("ready");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Creates one object of each kind, and checks that a second one is refused.
fn share_of(device: &str) -> Result<Vec<Box<dyn Any>>> {
    let ia = Ia::open(device, 8)?;
    let pz = ia.create_pz().context("a PZ")?;
    let dtos = ia.create_evd(EvdFlags::DTO, 64).context("a completion queue")?;
    let connect = ia.create_evd(EvdFlags::CONNECTION, 64)?;
    let memory =
        ia.register(&pz, Buffer::new(4096)?, Privileges::LOCAL_READ).context("a region")?;
    let ep = ia.create_ep_with(&config(&pz, &dtos, &connect)).context("an endpoint")?;
    refused(ia.create_pz(), Type::INSUFFICIENT_RESOURCES)?;
    refused(ia.create_evd(EvdFlags::DTO, 64), Type::INSUFFICIENT_RESOURCES)?;
    refused(
        ia.register(&pz, Buffer::new(4096)?, Privileges::LOCAL_READ),
        Type::INSUFFICIENT_RESOURCES,
    )?;
    refused(ia.create_ep_with(&config(&pz, &dtos, &connect)), Type::INSUFFICIENT_RESOURCES)?;
    Ok(vec![Box::new((ep, memory, connect, dtos)), Box::new((pz, ia))])
}

fn config<'a>(pz: &'a Pz, dtos: &'a Evd, connect: &'a Evd) -> EpConfig<'a> {
    let attr = EpAttr { max_recv_dtos: 1, max_request_dtos: 1, ..Default::default() };
    EpConfig {
        pz: Some(pz),
        recv: Some(dtos),
        request: Some(dtos),
        connect: Some(connect),
        attr: Some(attr),
        ..Default::default()
    }
}
