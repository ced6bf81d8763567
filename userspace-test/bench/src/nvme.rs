// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! NVMe over Fabrics: our transports compared with the kernel's.
//!
//! Target and host are in one guest with one device. The disk is a null block device, so that an
//! operation costs what the transports and the NVMe core do. fio reads and writes it with direct
//! I/O. Each combination of hosts and targets is measured. The kernel's pair is what the others are
//! compared with.

use crate::benchmark::Sink;
use crate::sample::Sample;
use crate::side::{client, text};
use anyhow::{ensure, Context, Result};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const FOLDER: &str = "/usr/lib/modules/kdapl";
const CONFIG: &str = "/sys/kernel/config/nvmet";
const NQN: &str = "nqn.2026-11.bench:kdapl";
const ADDRESS: &str = "10.7.0.1";
const PORT: &str = "4420";
/// Number of connects and deletions whose time is measured.
const CONNECTS: u32 = 5;
/// Longest time until the disk appears.
const PATIENCE: Duration = Duration::from_secs(60);

/// A way to use the disk.
struct Load {
    name: &'static str,
    kind: &'static str,
    size: &'static str,
    depth: u32,
    operations: u32,
    /// Maximum of the ratio of our pair's time to that of the kernel's pair.
    limit: Option<f64>,
}

const LOADS: [Load; 5] = [
    Load::small("randread", "a random read of 4 KiB, one at a time", 1, 1.05),
    Load::small("randwrite", "a random write of 4 KiB, one at a time", 1, 1.05),
    Load::small("randread", "a random read of 4 KiB, 32 at a time", 32, 1.0),
    Load::small("randwrite", "a random write of 4 KiB, 32 at a time", 32, 1.0),
    Load {
        name: "a read of 128 KiB, 16 at a time",
        kind: "read",
        size: "128k",
        depth: 16,
        operations: 400,
        limit: None,
    },
];

impl Load {
    const fn small(kind: &'static str, name: &'static str, depth: u32, limit: f64) -> Self {
        Self { name, kind, size: "4k", depth, operations: 3000, limit: Some(limit) }
    }

    /// Returns the microseconds of an operation.
    fn time(&self, disk: &Path) -> Result<f64> {
        let Self { kind, size, depth, operations, .. } = self;
        let report: Report = client(&format!(
            "fio --name=load --filename={} --rw={kind} --bs={size} --iodepth={depth} \
             --number_ios={operations} --ioengine=libaio --direct=1 --randrepeat=1 --size=512m \
             --output-format=json",
            disk.display()
        ))?;
        let job = report.jobs.first().context("fio reports no job")?;
        let done = [&job.read, &job.write].map(|side| (side.total_ios, side.iops));
        let (_, iops) = done.into_iter().max_by_key(|(total, _)| *total).context("no figures")?;
        ensure!(iops > 0.0, "fio has done nothing");
        Ok(1e6 / iops)
    }
}

/// What of fio's output is used.
#[derive(Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    read: Direction,
    write: Direction,
}

#[derive(Deserialize)]
struct Direction {
    total_ios: u64,
    iops: f64,
}

/// Owner of a transport.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Kernel,
    Us,
}

impl By {
    fn host(self) -> &'static str {
        match self {
            Self::Kernel => "rdma",
            Self::Us => "kdapl",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Kernel => "the kernel's",
            Self::Us => "our",
        }
    }
}

fn set(file: impl AsRef<Path>, value: &str) -> Result<()> {
    let file = file.as_ref();
    fs::write(file, value).with_context(|| format!("cannot write '{value}' to {}", file.display()))
}

fn config(path: &str) -> PathBuf {
    Path::new(CONFIG).join(path)
}

/// Creates the subsystem with its disk.
fn make_subsystem() -> Result<()> {
    text("modprobe -a nvme-rdma nvmet null_blk configfs")?;
    if !Path::new(CONFIG).exists() {
        text("mount -t configfs none /sys/kernel/config")?;
    }
    let subsystem = config(&format!("subsystems/{NQN}"));
    fs::create_dir_all(&subsystem)?;
    set(subsystem.join("attr_allow_any_host"), "1")?;
    fs::create_dir_all(subsystem.join("namespaces/1"))?;
    set(subsystem.join("namespaces/1/device_path"), "/dev/nullb0")?;
    set(subsystem.join("namespaces/1/enable"), "1")
}

/// A target that listens. The drop ends it.
struct Target(By);

impl Target {
    fn new(by: By) -> Result<Self> {
        match by {
            By::Kernel => text("modprobe nvmet-rdma")?,
            By::Us => text(&format!("insmod {FOLDER}/kdapl_nvmet.ko"))?,
        };
        let port = config("ports/1");
        fs::create_dir(&port)?;
        for (name, value) in [
            ("addr_trtype", "rdma"),
            ("addr_adrfam", "ipv4"),
            ("addr_traddr", ADDRESS),
            ("addr_trsvcid", PORT),
        ] {
            set(port.join(name), value)?;
        }
        let link = config(&format!("ports/1/subsystems/{NQN}"));
        symlink(config(&format!("subsystems/{NQN}")), link)?;
        Ok(Self(by))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = fs::remove_file(config(&format!("ports/1/subsystems/{NQN}")));
        let _ = fs::remove_dir(config("ports/1"));
        let module = match self.0 {
            By::Kernel => "nvmet-rdma",
            By::Us => "kdapl_nvmet",
        };
        if let Err(error) = text(&format!("rmmod {module}")) {
            eprintln!("{error:#}");
        }
    }
}

/// A connected host. The drop ends it.
struct Host(PathBuf);

impl Host {
    fn connect(by: By) -> Result<Self> {
        let options = format!(
            "transport={},traddr={ADDRESS},trsvcid={PORT},nqn={NQN},nr_io_queues=1,queue_size=128",
            by.host()
        );
        let mut fabrics = OpenOptions::new().read(true).write(true).open("/dev/nvme-fabrics")?;
        fabrics.write_all(options.as_bytes()).with_context(|| format!("connecting: {options}"))?;
        let mut answer = String::new();
        fabrics.read_to_string(&mut answer)?;
        let instance = answer.split(',').find_map(|part| part.strip_prefix("instance="));
        let instance = instance.with_context(|| format!("no instance in '{answer}'"))?;
        Ok(Self(PathBuf::from(format!("/sys/class/nvme/nvme{}", instance.trim()))))
    }

    /// Returns the path of the disk, as soon as it is there.
    fn disk(&self) -> Result<PathBuf> {
        let start = Instant::now();
        loop {
            for entry in fs::read_dir("/sys/block")?.flatten() {
                let name = entry.file_name();
                let path = Path::new("/dev").join(&name);
                if name.to_string_lossy().starts_with("nvme") && path.exists() {
                    return Ok(path);
                }
            }
            ensure!(start.elapsed() < PATIENCE, "no disk has appeared");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("delete_controller"), "1");
    }
}

/// Returns the milliseconds of a connect with its deletion.
fn connect_time(host: By) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..CONNECTS {
        drop(Host::connect(host)?);
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(CONNECTS))
}

/// Measures a combination. Returns the figures of each load, and the time of a connect.
fn measure(host: By, target: By) -> Result<Vec<f64>> {
    let _target = Target::new(target)?;
    let connected = Host::connect(host)?;
    let disk = connected.disk()?;
    LOADS[0].time(&disk)?;
    let mut figures = LOADS.iter().map(|load| load.time(&disk)).collect::<Result<Vec<_>>>()?;
    drop(connected);
    figures.push(connect_time(host)?);
    Ok(figures)
}

/// Name, unit and limit of a figure.
fn figures() -> Vec<(&'static str, &'static str, Option<f64>)> {
    let loads = LOADS.iter().map(|load| (load.name, "us", load.limit));
    loads.chain([("a connect and its end", "ms", None)]).collect()
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    make_subsystem()?;
    text(&format!("insmod {FOLDER}/kdapl_nvme.ko"))?;
    let mut measured = HashMap::new();
    for target in [By::Kernel, By::Us] {
        for host in [By::Kernel, By::Us] {
            let figures = measure(host, target).with_context(|| {
                format!("with {} host and {} target", host.name(), target.name())
            })?;
            measured.insert((host, target), figures);
        }
    }
    text("rmmod kdapl_nvme")?;
    let processors = match thread::available_parallelism()?.get() {
        1 => "on one processor",
        _ => "on two processors",
    };
    for (host, target) in [(By::Us, By::Us), (By::Us, By::Kernel), (By::Kernel, By::Us)] {
        for (number, (name, unit, limit)) in figures().into_iter().enumerate() {
            let limit = limit.filter(|_| host == target);
            let name =
                format!("{name}: {} host, {} target, {processors}", host.name(), target.name());
            let ours = measured[&(host, target)][number];
            let peer = measured[&(By::Kernel, By::Kernel)][number];
            sink(Sample { peer: Some(peer), ..Sample::alone("nvme", &name, unit, ours, limit) })?;
        }
    }
    Ok(())
}
