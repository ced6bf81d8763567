// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! NVMe over Fabrics for tests: a subsystem of the kernel's target with a disk in memory, and
//! controllers of a host. Either end is the kernel's own transport, `nvmet-rdma` or `nvme-rdma`, or
//! ours, `kdapl_nvmet.ko` or `kdapl_nvme.ko`.

use crate::context::Context;
use crate::harness::skip;
use crate::machine::command;
use crate::tests::kernel::Loaded;
use anyhow::{bail, ensure, Context as _, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{symlink, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

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
    /// Pairs with our host.
    pub const OF_OUR_HOST: [Self; 2] = [Self::StockTarget, Self::Ours];

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
    settings: PortSettings,
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
        let size = MEGABYTES.to_string();
        for (name, value) in
            [("size", size.as_str()), ("memory_backed", "1"), ("discard", "1"), ("power", "1")]
        {
            set(Path::new(DISK).join(name), value)?;
        }
        Ok(())
    }

    /// Returns the disk itself, behind the target.
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
        let subsystem = Path::new(CONFIG).join("subsystems").join(NQN);
        symlink(subsystem, port.join("subsystems").join(NQN)).context("the port is not enabled")
    }

    /// Removes the port.
    pub fn stop_listening(&self) {
        Self::stop_listening_at(1);
    }

    fn stop_listening_at(number: u32) {
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

/// Waits for the disk of the namespace.
fn find_disk(patience: Duration) -> Result<PathBuf> {
    let start = Instant::now();
    loop {
        for entry in fs::read_dir("/sys/block")?.flatten() {
            let nqn = fs::read_to_string(entry.path().join("device/subsysnqn"));
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = Path::new("/dev").join(&name);
            if nqn.is_ok_and(|nqn| nqn.trim() == NQN) && path.exists() {
                return Ok(path);
            }
        }
        ensure!(start.elapsed() < patience, "no disk has appeared");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Controller of the host. The drop deletes it.
pub struct Controller(PathBuf);

impl Controller {
    pub fn attribute(&self, name: &str) -> Result<String> {
        let file = self.0.join(name);
        let text = fs::read_to_string(&file);
        Ok(text.with_context(|| format!("cannot read {}", file.display()))?.trim().to_string())
    }

    /// Waits until the controller is in a state: `live`, `connecting`, ...
    pub fn wait_for(&self, state: &str, patience: Duration) -> Result<()> {
        let start = Instant::now();
        while self.attribute("state")? != state {
            let now = self.attribute("state")?;
            ensure!(start.elapsed() < patience, "the controller is {now}, not {state}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub fn exists(&self) -> bool {
        self.0.exists()
    }

    /// Resets the controller, and waits until that is done.
    pub fn reset(&self) -> Result<()> {
        set(self.0.join("reset_controller"), "1")
    }

    /// Deletes the controller, as the drop, which ignores errors.
    pub fn delete(&self) -> Result<()> {
        set(self.0.join("delete_controller"), "1")
    }

    /// Path of the disk, as soon as it is there.
    pub fn disk_path(&self, patience: Duration) -> Result<PathBuf> {
        find_disk(patience)
    }

    pub fn disk(&self, context: &Context) -> Result<Disk> {
        Disk::open(&self.disk_path(context.patience())?)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.delete();
    }
}

/// Disk that is read and written without the page cache.
pub struct Disk {
    pub file: File,
}

/// `BLKDISCARD` of `linux/fs.h`.
const BLKDISCARD: libc::Ioctl = 0x1277;

impl Disk {
    pub fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_DIRECT).open(path);
        Ok(Self { file: file.with_context(|| format!("cannot open {}", path.display()))? })
    }

    /// Writes bytes, by one request as far as the disk allows.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.try_write(offset, bytes).with_context(|| format!("writing at {offset}"))
    }

    pub fn try_write(&self, offset: usize, bytes: &[u8]) -> std::io::Result<()> {
        let mut aligned = Aligned::new(bytes.len());
        aligned.bytes().copy_from_slice(bytes);
        self.file.write_all_at(aligned.bytes(), offset as u64)
    }

    pub fn read(&self, offset: usize, length: usize) -> Result<Vec<u8>> {
        let read = self.try_read(offset, length);
        read.with_context(|| format!("reading {length} bytes at {offset}"))
    }

    pub fn try_read(&self, offset: usize, length: usize) -> std::io::Result<Vec<u8>> {
        let mut aligned = Aligned::new(length);
        self.file.read_exact_at(aligned.bytes(), offset as u64)?;
        Ok(aligned.bytes().to_vec())
    }

    /// Discards a range.
    pub fn discard(&self, offset: usize, length: usize) -> Result<()> {
        let range = [offset as u64, length as u64];
        // SAFETY: the kernel reads two numbers.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
        if result != 0 {
            bail!("BLKDISCARD: {}", std::io::Error::last_os_error());
        }
        Ok(())
    }
}

/// Bytes at a page boundary.
struct Aligned {
    memory: Vec<u8>,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        Self { memory: vec![0; length + 4096], length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(4096);
        &mut self.memory[start..start + self.length]
    }
}
