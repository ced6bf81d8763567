// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What a process may make the kernel hold.

use super::tests;
use crate::context::Context;
use crate::expect::{refused, same};
use crate::harness::skip;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{EvdFlags, Ia, Type};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

tests! {
    cgroup_limits, 20, "The rdma cgroup limits adapters and objects, and gets all of them back";
}

/// A cgroup of this process alone, gone with it.
struct Cgroup {
    mount: PathBuf,
    own: PathBuf,
}

impl Cgroup {
    fn enter(limits: &str) -> Result<Self> {
        let mount = PathBuf::from(format!("/tmp/cgroup-{}", std::process::id()));
        fs::create_dir(&mount)?;
        let mounted = Command::new("mount")
            .args(["-t", "cgroup2", "none"])
            .arg(&mount)
            .status()
            .is_ok_and(|status| status.success());
        if !mounted || !list(&mount, "cgroup.controllers").split_whitespace().any(|c| c == "rdma") {
            let _ = Command::new("umount").arg(&mount).status();
            fs::remove_dir(&mount)?;
            return skip("this kernel has no rdma cgroup controller");
        }
        let own = mount.join("kdapl-selftest");
        let this = Self { mount, own };
        fs::write(this.mount.join("cgroup.subtree_control"), "+rdma").context("+rdma")?;
        fs::create_dir(&this.own)?;
        fs::write(this.own.join("rdma.max"), limits).context(limits.to_string())?;
        fs::write(this.own.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(this)
    }

    fn current(&self) -> String {
        list(&self.own, "rdma.current").trim().to_string()
    }
}

fn list(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_default()
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.mount.join("cgroup.procs"), std::process::id().to_string());
        let _ = fs::remove_dir(&self.own);
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = fs::remove_dir(&self.mount);
    }
}

fn cgroup_limits(context: &Context) -> Result<()> {
    let device = &context.client.device;
    let cgroup = Cgroup::enter(&format!("{device} hca_handle=1 hca_object=3"))?;
    let ia = Ia::open(device, 1)?;
    refused(Ia::open(device, 1), Type::INSUFFICIENT_RESOURCES)?;
    let pz = ia.create_pz()?;
    let evds = [ia.create_evd(EvdFlags::DTO, 1)?, ia.create_evd(EvdFlags::DTO, 1)?];
    refused(ia.create_pz(), Type::INSUFFICIENT_RESOURCES)?;
    refused(ia.create_evd(EvdFlags::DTO, 1), Type::INSUFFICIENT_RESOURCES)?;
    // No queue of the device's, no charge.
    ia.create_evd(EvdFlags::SOFTWARE, 1)?;
    pz.free()?;
    ia.create_pz()?;
    drop((pz, evds, ia));
    let left = cgroup.current();
    ensure!(!left.is_empty() || cgroup.own.exists(), "the cgroup is gone");
    same("left", left, format!("{device} hca_handle=0 hca_object=0"))
}
