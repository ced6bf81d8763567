// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Data of our host, compared with the target's own disk.

use super::{each, io};
use crate::context::Context;
use crate::nvme::{Disk, Pair, PortSettings};
use crate::tests::tests;
use anyhow::{ensure, Result};
use std::os::fd::AsRawFd;

tests! { #![Nvme]
    sizes, 300, "Our host moves blocks of 512 bytes to 1 MiB unchanged, in both directions";
    in_capsule, 300, "Our host's writes of all sizes arrive with any size of in-capsule data";
    vectors, 120, "Our host moves vectors of pieces that begin and end within pages";
    discard_and_flush, 120, "Our host discards blocks, which read as zeros, and a flush is answered";
    verified, 600, "fio verifies random blocks of our host with checksums, with 32 of them outstanding";
    gigabyte, 2400, "fio verifies a gigabyte of our host with checksums";
    #[Long]
    depths, 300, "Each depth of a queue of our host works, with more blocks outstanding than it has";
    file_system, 300, "A file tree on ext4 is the same after our host has connected again";
}

fn sizes(context: &Context) -> Result<()> {
    io::move_sizes(context, Pair::of_our_host())
}

fn in_capsule(context: &Context) -> Result<()> {
    io::write_in_capsules(context, Pair::of_our_host(), &[0, 512, 4096, 8192, 16384])
}

/// Length of a vector's piece, which is no multiple of a page.
const PIECE: usize = 1536;

/// Number of pieces of a vector.
const PIECES: usize = 64;

/// Reads or writes pieces by one call. Every second piece of the memory is left out.
fn vector(disk: &Disk, memory: &mut [u8], is_write: bool) -> Result<()> {
    let vectors: Vec<_> = memory
        .chunks_exact_mut(2 * PIECE)
        .map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: PIECE })
        .collect();
    let (file, count) = (disk.file.as_raw_fd(), vectors.len() as i32);
    // SAFETY: the pieces are parts of `memory`, which is borrowed exclusively.
    let moved = unsafe {
        if is_write {
            libc::pwritev(file, vectors.as_ptr(), count, 0)
        } else {
            libc::preadv(file, vectors.as_ptr(), count, 0)
        }
    };
    ensure!(moved as usize == PIECE * PIECES, "{moved}: {}", std::io::Error::last_os_error());
    Ok(())
}

fn vectors(context: &Context) -> Result<()> {
    each(context, Pair::of_our_host(), PortSettings::default(), |target| {
        let controller = target.connect("")?;
        let (disk, behind) = (controller.disk(context)?, target.disk()?);
        let mut memory = vec![0; 2 * PIECE * PIECES + 512];
        // A disk of blocks of 512 bytes takes memory at any multiple of 4 bytes.
        let start = memory.as_ptr().align_offset(512);
        let memory = &mut memory[start..start + 2 * PIECE * PIECES];
        context.rng().fill(memory);
        let sent: Vec<_> =
            memory.chunks(2 * PIECE).flat_map(|part| &part[..PIECE]).copied().collect();
        vector(&disk, memory, true)?;
        ensure!(behind.read(0, sent.len())? == sent, "the pieces were written changed");
        let mut expected = memory.to_vec();
        let mut bytes = vec![0; sent.len()];
        context.rng().fill(&mut bytes);
        behind.write(0, &bytes)?;
        for (part, piece) in expected.chunks_mut(2 * PIECE).zip(bytes.chunks(PIECE)) {
            part[..PIECE].copy_from_slice(piece);
        }
        vector(&disk, memory, false)?;
        ensure!(*memory == expected, "the pieces were read changed, or bytes between them");
        Ok(())
    })
}

fn discard_and_flush(context: &Context) -> Result<()> {
    io::discard(context, Pair::of_our_host())
}

fn verified(context: &Context) -> Result<()> {
    io::verify(context, Pair::of_our_host(), context.count(16 << 10))
}

fn gigabyte(context: &Context) -> Result<()> {
    io::verify_gigabyte(context, Pair::of_our_host())
}

fn depths(context: &Context) -> Result<()> {
    io::exceed_depths(context, Pair::of_our_host())
}

fn file_system(context: &Context) -> Result<()> {
    io::keep_files(context, Pair::of_our_host())
}
