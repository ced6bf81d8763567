// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Consumers in the kernel in another network namespace than the first.

use super::kernel::{device, run, Loaded};
use super::tests;
use crate::context::Context;
use crate::hosts::inside;
use crate::machine::command;
use crate::repeat::unheard;
use crate::threads::Worker;
use anyhow::{ensure, Result};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

tests! {
    #[Transport]
    other_namespace, 120, "In the kernel, an adapter of another network namespace talks to one of the first, and keeps the namespace until it is closed";
}

const NAMESPACE: &str = "kdapl-n";
/// Device and network device in the first namespace, and in the other.
const SIDES: [(&str, &str, &str); 2] =
    [("kdapl_n0", "kdaplN0", "10.9.7.1"), ("kdapl_n1", "kdaplN1", "10.9.7.2")];

/// The other namespace and a device on each side, until dropped.
struct Scene;

impl Scene {
    fn new(driver: &str) -> Result<Self> {
        let this = Self;
        Self::clear();
        command(&format!("ip netns add {NAMESPACE}"))?;
        command(&format!("ip link add {} type veth peer name {}", SIDES[0].1, SIDES[1].1))?;
        command(&format!("ip link set {} netns {NAMESPACE}", SIDES[1].1))?;
        for (namespace, (device, netdev, address)) in [None, Some(NAMESPACE)].into_iter().zip(SIDES)
        {
            inside(namespace, || -> Result<()> {
                command("ip link set lo up")?;
                command(&format!("ip addr add {address}/24 dev {netdev}"))?;
                command(&format!("ip link set {netdev} up"))?;
                command(&format!("rdma link add {device} type {driver} netdev {netdev}"))
            })??;
        }
        Ok(this)
    }

    /// Removes what is left of it. Most of it may not exist.
    fn clear() {
        for (device, netdev, _) in SIDES {
            let _ = command(&format!("rdma link del {device}"));
            let _ = command(&format!("ip link del {netdev}"));
        }
        let _ = command(&format!("ip netns del {NAMESPACE}"));
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        Self::clear();
    }
}

/// Checks whether the device in the other namespace exists.
fn exists() -> bool {
    Path::new("/sys/class/infiniband").join(SIDES[1].0).exists()
}

fn other_namespace(context: &Context) -> Result<()> {
    // The test makes both namespaces itself.
    let _ = device(context)?;
    let driver = if context.client.is_iwarp() { "siw" } else { "rxe" };
    let _scene = Scene::new(driver)?;
    let namespace = File::open(format!("/run/netns/{NAMESPACE}"))?;
    let patience = context.patience().as_secs().max(10);
    let parameters = format!(
        "device={} peer_device={} net={} patience={patience} iwarp={}",
        SIDES[0].0,
        SIDES[1].0,
        namespace.as_raw_fd(),
        u8::from(context.client.is_iwarp())
    );
    let loaded = Loaded::new("kdapl_ktest", &parameters)?;
    let running = Worker::start(|| run("other_namespace"))?;
    context.until("the kernel test is ready", || {
        Ok(running.finished() || loaded.parameter("stage")? == 1)
    })?;
    // Without the adapter, the namespace would end now, and its device with it.
    drop(namespace);
    command(&format!("ip netns del {NAMESPACE}"))?;
    // The kernel ends a namespace that nothing refers to some time after its last reference.
    std::thread::sleep(Duration::from_secs(1));
    ensure!(exists(), "the namespace has ended while the adapter is open");
    loaded.set("stage", 2)?;
    running.join()??;
    loaded.unload()?;
    if let Err(error) = context.until("the namespace ends", || Ok(!exists())) {
        unheard!("{error:#}");
    }
    Ok(())
}
