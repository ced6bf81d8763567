// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Data of hosts, compared with the target's own disk.

use super::{each, STOCK_HOST};
use crate::context::Context;
use crate::expect::same;
use crate::nvme::{Disk, Pair, PortSettings, MEGABYTES};
use crate::tests::tests;
use anyhow::{ensure, Context as _, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

tests! { #![Nvme]
    sizes, 300, "Blocks of 512 bytes to 1 MiB arrive as they were written, in both directions";
    in_capsule, 300, "Writes of all sizes arrive with any size of in-capsule data";
    discard_and_flush, 120, "Discarded blocks read as zeros, and a flush is answered";
    verified, 600, "fio verifies random blocks with checksums, with 32 of them outstanding";
    gigabyte, 1200, "fio verifies a gigabyte with checksums";
    file_system, 300, "A file tree on ext4 is the same after the host has connected again";
    #[Long]
    depths, 300, "Each depth of a queue works, with more blocks outstanding than it has";
}

/// Sizes of transfers, with odd numbers of blocks.
const SIZES: [usize; 10] =
    [512, 1024, 1536, 4096, 4608, 8192, 65536 - 512, 65536, (1 << 20) - 512, 1 << 20];

/// Writes random bytes of each size through `disk`, and compares them on both sides.
pub(super) fn exchange(context: &Context, disk: &Disk, behind: &Disk) -> Result<()> {
    for size in SIZES {
        let offset = context.rng().usize(0..(MEGABYTES << 20) / 512 - size / 512) * 512;
        let mut bytes = vec![0; size];
        context.rng().fill(&mut bytes);
        disk.write(offset, &bytes)?;
        ensure!(behind.read(offset, size)? == bytes, "{size} bytes were written changed");
        context.rng().fill(&mut bytes);
        behind.write(offset, &bytes)?;
        ensure!(disk.read(offset, size)? == bytes, "{size} bytes were read changed");
    }
    Ok(())
}

fn sizes(context: &Context) -> Result<()> {
    move_sizes(context, &STOCK_HOST)
}

/// Moves blocks of all sizes between hosts and targets of these kinds.
pub(super) fn move_sizes(context: &Context, pairs: &[Pair]) -> Result<()> {
    each(context, pairs, PortSettings::default(), |target| {
        let controller = target.connect("")?;
        let (disk, behind) = (controller.disk(context)?, target.disk()?);
        (0..context.count(10)).try_for_each(|_| exchange(context, &disk, &behind))
    })
}

fn in_capsule(context: &Context) -> Result<()> {
    let sizes = [0, 512, 4096, 8192, 16384, 1 << 20];
    write_in_capsules(context, &STOCK_HOST, &sizes)
}

/// Moves blocks of all sizes through ports that take so many bytes in a capsule.
pub(super) fn write_in_capsules(context: &Context, pairs: &[Pair], sizes: &[u32]) -> Result<()> {
    for &inline in sizes {
        let settings = PortSettings { inline: Some(inline), ..Default::default() };
        each(context, pairs, settings, |target| {
            let controller = target.connect("")?;
            exchange(context, &controller.disk(context)?, &target.disk()?)
        })
        .with_context(|| format!("with {inline} bytes"))?;
    }
    Ok(())
}

fn discard_and_flush(context: &Context) -> Result<()> {
    discard(context, &STOCK_HOST)
}

/// Discards some of the blocks that were written and flushed.
pub(super) fn discard(context: &Context, pairs: &[Pair]) -> Result<()> {
    each(context, pairs, PortSettings::default(), |target| {
        let controller = target.connect("")?;
        let disk = controller.disk(context)?;
        disk.write(1 << 20, &vec![0xaa; 1 << 20])?;
        disk.file.sync_all()?;
        disk.discard((1 << 20) + 4096, 8192)?;
        for (index, byte) in disk.read(1 << 20, 16384)?.iter().enumerate() {
            let is_discarded = (4096..12288).contains(&index);
            same("byte", *byte, if is_discarded { 0 } else { 0xaa })?;
        }
        Ok(())
    })
}

pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    let (text, problem) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    ensure!(output.status.success(), "{program} {arguments:?}:\n{text}{problem}");
    Ok(text)
}

pub(super) fn fio(path: &Path, options: &[&str]) -> Result<()> {
    let file = format!("--filename={}", path.display());
    let mut arguments = vec!["--name=verify", &file, "--direct=1", "--ioengine=libaio"];
    arguments.extend(["--verify=crc32c", "--verify_fatal=1", "--rw=randwrite"]);
    arguments.extend(options);
    run("fio", &arguments).map(drop)
}

fn verified(context: &Context) -> Result<()> {
    verify(context, &STOCK_HOST, context.count(32 << 10))
}

/// Lets fio verify so many KiB.
pub(super) fn verify(context: &Context, pairs: &[Pair], kilobytes: u64) -> Result<()> {
    each(context, pairs, PortSettings::default(), |target| {
        let controller = target.connect("")?;
        let path = controller.disk_path(context.patience())?;
        let size = format!("--size={kilobytes}k");
        fio(&path, &[&size, "--bs=4k", "--iodepth=32"])?;
        fio(&path, &[&size, "--bsrange=512-1m", "--iodepth=8"])
    })
}

fn gigabyte(context: &Context) -> Result<()> {
    verify_gigabyte(context, &STOCK_HOST)
}

/// Lets fio verify a gigabyte of each pair, in whole disks, or so much less as the effort says. A
/// slow kernel changes the time only.
pub(super) fn verify_gigabyte(context: &Context, pairs: &[Pair]) -> Result<()> {
    let disks = (1 << 30) / (MEGABYTES << 20);
    let rounds = (disks as f64 * context.settings.effort).max(1.0) as usize;
    let size = format!("--size={MEGABYTES}m");
    // Each round writes other bytes in another order.
    let options = [&size, "--bsrange=4k-1m", "--iodepth=16", "--randrepeat=0"];
    each(context, pairs, PortSettings::default(), |target| {
        let controller = target.connect("")?;
        let path = controller.disk_path(context.patience())?;
        (0..rounds).try_for_each(|_| fio(&path, &options))
    })
}

fn depths(context: &Context) -> Result<()> {
    exceed_depths(context, &STOCK_HOST)
}

/// Has more blocks outstanding than queues of several depths have entries.
pub(super) fn exceed_depths(context: &Context, pairs: &[Pair]) -> Result<()> {
    each(context, pairs, PortSettings::default(), |target| {
        for depth in [16, 64, 128] {
            let controller = target.connect(&format!(",queue_size={depth},nr_io_queues=1"))?;
            let path = controller.disk_path(context.patience())?;
            fio(&path, &["--size=1m", "--bs=64k", "--iodepth=256"])?;
            fio(&path, &["--size=1m", "--bs=512", "--iodepth=256"])?;
        }
        Ok(())
    })
}

fn file_system(context: &Context) -> Result<()> {
    keep_files(context, &STOCK_HOST)
}

/// Compares a file tree before and after the host has connected again.
pub(super) fn keep_files(context: &Context, pairs: &[Pair]) -> Result<()> {
    let place = Path::new("/tmp/kdapl-nvme");
    fs::create_dir_all(place)?;
    let place = place.to_string_lossy();
    let sums = "cd /tmp/kdapl-nvme && busybox find . -type f | sort | busybox xargs sha256sum";
    each(context, pairs, PortSettings::default(), |target| {
        let controller = target.connect("")?;
        let path = controller.disk_path(context.patience())?;
        run("mkfs.ext4", &["-q", "-F", &path.to_string_lossy()])?;
        let mount = |path: &Path| run("mount", &[&path.to_string_lossy(), &place]);
        let unmount = || run("umount", &[&place]);
        mount(&path)?;
        let made = run("cp", &["-r", "/usr/lib/modules", &place]);
        let before = made.and_then(|_| run("bash", &["-c", sums]));
        unmount()?;
        let before = before?;
        ensure!(before.lines().count() > 10, "only these files were copied:\n{before}");
        drop(controller);
        let controller = target.connect("")?;
        mount(&controller.disk_path(context.patience())?)?;
        let after = run("bash", &["-c", sums]);
        unmount()?;
        ensure!(after? == before, "the files have changed");
        Ok(())
    })
}
