// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The machine under test: object counts, devices, the module, users, the kernel log.

use crate::context::Context;
use crate::harness::skip;
use crate::hosts::Host;
use anyhow::{bail, ensure, Context as _, Result};
use std::ffi::{CStr, CString};
use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

const OBJECTS: &str = "/sys/kernel/debug/kdapl/objects";
/// Time within which the objects of a process are freed after its end (times the scale).
const TEARDOWN: Duration = Duration::from_secs(10);

/// Mounts debugfs and tracefs if they are not mounted.
pub fn mount_debugfs() {
    for (kind, place, probe) in [
        ("debugfs", "/sys/kernel/debug", "/sys/kernel/debug/kdapl"),
        ("tracefs", "/sys/kernel/tracing", "/sys/kernel/tracing/trace"),
    ] {
        if !Path::new(probe).exists() {
            let strings = [kind, place].map(|text| CString::new(text).expect("no NUL in it"));
            // Ignore a failure: the tests that need it report it.
            // SAFETY: all pointers are C strings or null.
            unsafe {
                libc::mount(
                    strings[0].as_ptr(),
                    strings[1].as_ptr(),
                    strings[0].as_ptr(),
                    0,
                    std::ptr::null(),
                )
            };
        }
    }
}

/// Returns the module's objects that exist: name and count, where the count is above zero.
pub fn objects() -> Result<Vec<(String, u64)>> {
    let text = fs::read_to_string(OBJECTS).with_context(|| format!("cannot read {OBJECTS}"))?;
    let mut counts = Vec::new();
    for line in text.lines() {
        let Some((name, count)) = line.split_once(' ') else {
            bail!("{OBJECTS} has an invalid line: {line}");
        };
        counts.push((name.to_string(), count.trim().parse()?));
    }
    Ok(counts)
}

/// Returns the number of objects of one kind.
pub fn count_of(kind: &str) -> Result<u64> {
    let objects = objects()?;
    let found = objects.iter().find(|(name, _)| name == kind);
    found.map(|(_, count)| *count).with_context(|| format!("{OBJECTS} has no line '{kind}'"))
}

/// Memory of the kernel's own objects, without caches that it can reclaim.
pub const SLAB: &str = "SUnreclaim";

/// Returns the kilobytes of a line of `/proc/meminfo`.
pub fn meminfo(name: &str) -> Result<i64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let is_wanted = |line: &&str| line.split(':').next() == Some(name);
    let line = text.lines().find(is_wanted).with_context(|| format!("no line {name}"))?;
    let word = line.split_whitespace().nth(1).context("no number")?;
    Ok(word.parse()?)
}

/// Waits until no object is left. Reports those that stay.
pub fn no_objects_left(scale: f64) -> Result<()> {
    if !Path::new(OBJECTS).exists() {
        // Without debugfs, nothing can be checked.
        return Ok(());
    }
    let end = Instant::now() + TEARDOWN.mul_f64(scale);
    loop {
        let left: Vec<_> = objects()?.into_iter().filter(|(_, count)| *count > 0).collect();
        if left.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "objects left in the kernel: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the kernel's view of each thread of a process: system call and stack.
pub fn stacks(pid: u32) -> String {
    let mut text = String::new();
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let id = task.file_name();
        text += &format!(
            "thread {} in {}: syscall {}",
            id.to_string_lossy(),
            read("wchan"),
            read("syscall")
        );
        text += &read("stack");
    }
    text
}

/// Returns whether the kernel has KASAN. Emulated, it delays a packet by tens of milliseconds.
pub fn has_kasan() -> bool {
    // An emulated kernel takes seconds for the list.
    static HAS_KASAN: LazyLock<bool> = LazyLock::new(|| {
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        symbols.lines().any(|line| line.ends_with(" kasan_report"))
    });
    *HAS_KASAN
}

/// Runs a command. It must succeed.
pub fn command(line: &str) -> Result<()> {
    let mut words = line.split_whitespace();
    let program = words.next().context("an empty command")?;
    let output = match Command::new(program).args(words).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return skip(format!("there is no program '{program}'"));
        }
        Err(error) => return Err(error).with_context(|| line.to_string()),
    };
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{line}: {}: {}", output.status, text.trim());
    Ok(())
}

/// Finds `kdapl.ko` in this guest.
pub fn module_file() -> Result<PathBuf> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let release = release.trim();
    let places = [
        format!("/lib/modules/{release}/kdapl.ko"),
        format!("/lib/modules/{release}/updates/kdapl.ko"),
        format!("/lib/modules/{release}/extra/kdapl.ko"),
        "/usr/lib/modules/kdapl/kdapl.ko".into(),
    ];
    match places.iter().find(|place| Path::new(place).exists()) {
        Some(place) => Ok(place.into()),
        None => skip(format!("kdapl.ko is in none of {places:?}")),
    }
}

/// Unloads the module as `rmmod kdapl` does, without waiting. Returns the errno of a refusal.
pub fn unload() -> Result<(), std::io::Error> {
    // SAFETY: the name is a C string.
    match unsafe { libc::syscall(libc::SYS_delete_module, c"kdapl".as_ptr(), libc::O_NONBLOCK) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Loads the module as `insmod kdapl.ko` does.
pub fn load(file: &Path) -> Result<()> {
    load_with(file, c"")
}

/// Loads the module with parameters.
pub fn load_with(file: &Path, parameters: &CStr) -> Result<()> {
    use std::os::fd::AsRawFd;
    let file = fs::File::open(file)?;
    // SAFETY: the descriptor is open, the parameters are a C string.
    let outcome =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    ensure!(outcome == 0, "cannot load the module: {}", std::io::Error::last_os_error());
    let start = Instant::now();
    while !Path::new(libkdapl::raw::DEVICE_PATH).exists() {
        ensure!(start.elapsed() < Duration::from_secs(20), "/dev/kdapl is missing after loading");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Restores the RDMA devices when dropped.
pub struct DeviceGuard {
    hosts: Vec<Host>,
}

impl DeviceGuard {
    /// Skips the test unless a command can restore all devices, as for software devices.
    pub fn new(context: &Context) -> Result<Self> {
        let hosts: Vec<_> = context.hosts().into_iter().cloned().collect();
        match hosts.iter().find(|host| host.driver().is_none()) {
            Some(host) => skip(format!("{} is not a device that may be deleted", host.device)),
            None => Ok(Self { hosts }),
        }
    }

    /// Deletes the devices of all hosts.
    pub fn delete(&self) -> Result<()> {
        self.hosts.iter().try_for_each(|host| self.delete_of(host))
    }

    /// Deletes the device of one host.
    pub fn delete_of(&self, host: &Host) -> Result<()> {
        command(&format!("rdma link del {}", host.device))
    }

    /// Restores the devices that do not exist.
    pub fn add(&self) -> Result<()> {
        self.hosts.iter().try_for_each(add)
    }
}

fn add(host: &Host) -> Result<()> {
    let Host { device, netdev, .. } = host;
    if !Path::new("/sys/class/infiniband").join(device).exists() {
        let driver = host.driver().with_context(|| format!("{device} has no driver"))?;
        host.command(&format!("rdma link add {device} type {driver} netdev {netdev}"))?;
    }
    let start = Instant::now();
    while !host.is_up()? {
        ensure!(start.elapsed() < Duration::from_secs(20), "{device} does not come up");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

impl Drop for DeviceGuard {
    fn drop(&mut self) {
        for host in &self.hosts {
            let up = host.command(&format!("ip link set {} up", host.netdev));
            if let Err(error) = up.and_then(|()| add(host)) {
                eprintln!("{error:#}");
            }
        }
    }
}

/// Changes the calling thread, and no other, to an ordinary user without capabilities.
pub fn become_user(user: u32) -> Result<()> {
    // The C library's function would change all threads.
    // SAFETY: the call reads no memory.
    let outcome = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    ensure!(outcome == 0, "setresuid: {}", std::io::Error::last_os_error());
    Ok(())
}

/// An ordinary user: `nobody`.
pub const NOBODY: u32 = 65_534;

/// Bits of capabilities.
pub const CAP_DAC_READ_SEARCH: u32 = 1 << 2;
pub const CAP_NET_ADMIN: u32 = 1 << 12;
pub const CAP_SYS_RAWIO: u32 = 1 << 17;

/// Changes the calling thread, and no other, to a user with these capabilities only.
pub fn become_user_with(user: u32, capabilities: u32) -> Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let data = [capabilities, capabilities, 0, 0, 0, 0];
    // SAFETY: no memory is read.
    let kept = unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) };
    ensure!(kept == 0, "keepcaps: {}", std::io::Error::last_os_error());
    become_user(user)?;
    // SAFETY: header and data are of the sizes that version 3 has; only this thread changes.
    let set = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) };
    ensure!(set == 0, "capset: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Kernel log from a point in time.
pub struct KernelLog(fs::File);

impl KernelLog {
    /// Starts at the present.
    pub fn from_now() -> Result<Self> {
        let mut log = fs::OpenOptions::new();
        let mut log = log.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
        log.seek(SeekFrom::End(0))?;
        Ok(Self(log))
    }

    /// Returns all messages since then.
    pub fn rest(mut self) -> Result<String> {
        self.more()
    }

    /// Returns the messages since then, or since the previous call.
    pub fn more(&mut self) -> Result<String> {
        let mut told = String::new();
        // Each read returns one record.
        let mut record = [0; 8192];
        loop {
            match self.0.read(&mut record) {
                Ok(length) => told.push_str(&String::from_utf8_lossy(&record[..length])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(told),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
