// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! NVMe over Fabrics for tests: a subsystem of the kernel's target with a disk in memory, and
//! controllers of a host. Either end is the kernel's own transport, `nvmet-rdma` or `nvme-rdma`, or
//! ours, `kdapl_nvmet.ko` or `kdapl_nvme.ko`.

mod controller;
mod disk;

pub use controller::Controller;
pub use disk::Disk;

use crate::context::Context;
use crate::harness::skip;
use crate::machine::command;
use crate::tests::kernel::Loaded;
use anyhow::{Context as _, Result};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Qualified name of the subsystem.
pub const NQN: &str = "nqn.2026-11.test:kdapl";

const CONFIG: &str = "/sys/kernel/config/nvmet";
const DISK: &str = "/sys/kernel/config/nullb/kdapltest";

/// Size of the disk in megabytes.
pub const MEGABYTES: usize = 64;

/// Settings of a port.
#[derive(Clone, Copy, Default)]
pub struct PortSettings {
    /// Bytes of in-capsule data.
    pub inline: Option<u32>,
    /// Largest depth of a queue.
    pub depth: Option<u32>,
    /// Time in which the disk carries a command out.
    pub delay: Option<Duration>,
    /// Parameters of the module.
    pub parameters: &'static str,
    /// Address to listen at, other than that of the test's host.
    pub address: Option<IpAddr>,
}

/// Transports of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// Our target, and the stock host.
    StockHost,
    /// The stock target, and our host.
    StockTarget,
    /// Ours on both ends.
    Ours,
}

impl Pair {
    /// Returns the pairs with our host. A kernel with lockdep has no pair with the stock target:
    /// `nvmet-rdma` waits in a handler of `rdma_cm` for the lock under which a port waits for that
    /// handler. lockdep reports that, and checks nothing from then on.
    pub fn of_our_host() -> &'static [Self] {
        let has_lockdep = Path::new("/proc/lockdep").exists();
        if has_lockdep {
            &[Self::Ours]
        } else {
            &[Self::StockTarget, Self::Ours]
        }
    }

    /// Returns the name of the host's transport.
    pub fn host(self) -> &'static str {
        match self {
            Self::StockHost => "rdma",
            Self::StockTarget | Self::Ours => "kdapl",
        }
    }
}

/// Subsystem with a disk, a port, and the modules of both transports. The drop removes all of it.
pub struct Target {
    pub address: IpAddr,
    pub port: u16,
    pub settings: PortSettings,
    pair: Pair,
    transport: Option<Loaded>,
    host: Option<Loaded>,
}

fn set(file: impl AsRef<Path>, value: &str) -> Result<()> {
    let file = file.as_ref();
    fs::write(file, value).with_context(|| format!("cannot write '{value}' to {}", file.display()))
}

/// Loads the modules, or skips the test.
fn load_modules() -> Result<()> {
    let has = |name: &str| {
        let tried = Command::new("modprobe").args(["-n", "-q", name]).status();
        tried.is_ok_and(|status| status.success())
    };
    if !has("nvme-rdma") || !has("nvmet") || !has("null_blk") {
        return skip("the guest has no NVMe over Fabrics (run --kernel stock --nvme)");
    }
    command("modprobe configfs")?;
    command("modprobe -a nvme-rdma nvmet")?;
    command("modprobe null_blk nr_devices=0")?;
    if !Path::new(CONFIG).exists() {
        command("mount -t configfs none /sys/kernel/config")?;
    }
    Ok(())
}

impl Target {
    /// Makes a subsystem with a disk, and serves it at the address of the test's host.
    pub fn new(context: &Context) -> Result<Self> {
        Self::with(context, PortSettings::default())
    }

    pub fn with(context: &Context, settings: PortSettings) -> Result<Self> {
        Self::of(context, Pair::StockHost, settings)
    }

    pub fn of(context: &Context, pair: Pair, settings: PortSettings) -> Result<Self> {
        if context.server.namespace().is_some() || context.server.is_iwarp() {
            return skip("nvme-rdma connects from the first network namespace, over InfiniBand");
        }
        if pair == Pair::StockTarget && !Pair::of_our_host().contains(&pair) {
            return skip("lockdep reports a lock order of nvmet-rdma, and ends its checks");
        }
        load_modules()?;
        let mut target = Self {
            address: settings.address.unwrap_or(context.server_address()),
            port: context.port() as u16,
            settings,
            pair,
            transport: None,
            host: None,
        };
        target.clear();
        target.load()?;
        target.load_host()?;
        target.make_disk()?;
        target.make_subsystem()?;
        target.listen()?;
        Ok(target)
    }

    /// Loads the target's transport.
    pub fn load(&mut self) -> Result<()> {
        if self.pair == Pair::StockTarget {
            return command("modprobe nvmet-rdma");
        }
        self.transport = Some(Loaded::new("kdapl_nvmet", self.settings.parameters)?);
        Ok(())
    }

    /// Unloads it.
    pub fn unload(&mut self) {
        if self.pair == Pair::StockTarget {
            let _ = command("rmmod nvmet-rdma");
        }
        self.transport = None;
    }

    /// Loads the host's transport, if it is ours.
    pub fn load_host(&mut self) -> Result<()> {
        if self.pair != Pair::StockHost {
            self.host = Some(Loaded::new("kdapl_nvme", "")?);
        }
        Ok(())
    }

    /// Unloads it. That ends its controllers.
    pub fn unload_host(&mut self) {
        self.host = None;
    }

    fn make_disk(&self) -> Result<()> {
        fs::create_dir(DISK)?;
        let disk = Path::new(DISK);
        if let Some(delay) = self.settings.delay {
            // Commands end by a timer.
            set(disk.join("irqmode"), "2")?;
            set(disk.join("completion_nsec"), &delay.as_nanos().to_string())?;
        }
        let size = MEGABYTES.to_string();
        for (name, value) in
            [("size", size.as_str()), ("memory_backed", "1"), ("discard", "1"), ("power", "1")]
        {
            set(disk.join(name), value)?;
        }
        Ok(())
    }

    /// Returns the target's own disk.
    pub fn disk(&self) -> Result<Disk> {
        Disk::open(Path::new("/dev/kdapltest"))
    }

    fn make_subsystem(&self) -> Result<()> {
        let subsystem = Path::new(CONFIG).join("subsystems").join(NQN);
        let namespace = subsystem.join("namespaces/1");
        fs::create_dir(&subsystem)?;
        set(subsystem.join("attr_allow_any_host"), "1")?;
        fs::create_dir(&namespace)?;
        set(namespace.join("device_path"), "/dev/kdapltest")?;
        set(namespace.join("enable"), "1")
    }

    /// Enables or disables the namespace.
    pub fn enable(&self, enable: bool) -> Result<()> {
        let namespace = Path::new(CONFIG).join("subsystems").join(NQN).join("namespaces/1");
        set(namespace.join("enable"), if enable { "1" } else { "0" })
    }

    /// Creates the port.
    pub fn listen(&self) -> Result<()> {
        self.listen_at(1, self.port)
    }

    /// Creates a port with a number of the target's, at a port of the address.
    pub fn listen_at(&self, number: u32, service: u16) -> Result<()> {
        let port = Path::new(CONFIG).join(format!("ports/{number}"));
        fs::create_dir(&port)?;
        let family = if self.address.is_ipv4() { "ipv4" } else { "ipv6" };
        set(port.join("addr_trtype"), "rdma")?;
        set(port.join("addr_adrfam"), family)?;
        set(port.join("addr_traddr"), &self.address.to_string())?;
        set(port.join("addr_trsvcid"), &service.to_string())?;
        if let Some(inline) = self.settings.inline {
            set(port.join("param_inline_data_size"), &inline.to_string())?;
        }
        if let Some(depth) = self.settings.depth {
            set(port.join("param_max_queue_size"), &depth.to_string())?;
        }
        let subsystem = Path::new(CONFIG).join("subsystems").join(NQN);
        symlink(subsystem, port.join("subsystems").join(NQN)).context("the port is not enabled")
    }

    /// Removes the port.
    pub fn stop_listening(&self) {
        Self::stop_listening_at(1);
    }

    pub fn stop_listening_at(number: u32) {
        let port = Path::new(CONFIG).join(format!("ports/{number}"));
        let _ = fs::remove_file(port.join("subsystems").join(NQN));
        let _ = fs::remove_dir(port);
    }

    /// Removes all, also of a test that was killed.
    fn clear(&self) {
        [1, 2].map(Self::stop_listening_at);
        let subsystem = Path::new(CONFIG).join("subsystems").join(NQN);
        let namespace = subsystem.join("namespaces/1");
        let _ = fs::write(namespace.join("enable"), "0");
        let _ = fs::remove_dir(namespace);
        let _ = fs::remove_dir(subsystem);
        let _ = fs::write(Path::new(DISK).join("power"), "0");
        let _ = fs::remove_dir(DISK);
    }

    /// Returns whether the disk carries out a write.
    pub fn writes(&self) -> Result<bool> {
        let inflight = fs::read_to_string("/sys/block/kdapltest/inflight")?;
        let writes = inflight.split_whitespace().nth(1).context("no number of writes")?;
        Ok(writes != "0")
    }

    /// Connects the host, with these options besides the address.
    pub fn connect(&self, options: &str) -> Result<Controller> {
        self.connect_to(NQN, options)
    }

    pub fn connect_to(&self, nqn: &str, options: &str) -> Result<Controller> {
        let Self { address, port, .. } = self;
        self.connect_by(&format!("traddr={address},trsvcid={port},nqn={nqn}{options}"))
    }

    /// Connects the host with these options only.
    pub fn connect_by(&self, options: &str) -> Result<Controller> {
        self.connect_as(&format!("transport={},{options}", self.pair.host()))
    }

    /// Connects a host of any transport.
    pub fn connect_as(&self, options: &str) -> Result<Controller> {
        let mut fabrics = OpenOptions::new().read(true).write(true).open("/dev/nvme-fabrics")?;
        fabrics.write_all(options.as_bytes()).with_context(|| format!("connecting: {options}"))?;
        let mut answer = String::new();
        fabrics.read_to_string(&mut answer)?;
        let instance = answer.split(',').find_map(|part| part.strip_prefix("instance="));
        let instance = instance.with_context(|| format!("no instance in '{answer}'"))?;
        Ok(Controller(PathBuf::from(format!("/sys/class/nvme/nvme{}", instance.trim()))))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.clear();
        self.unload();
        self.unload_host();
    }
}
