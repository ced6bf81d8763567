// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Owners of memory that change it while a peer transfers.

use super::flow;
use crate::context::Context;
use crate::end::{Listener, Pair, Shape};
use crate::expect::{done, same};
use crate::fork::{end_of, fork};
use crate::machine;
use crate::peer::Peer;
use crate::raw;
use crate::traffic::Traffic;
use anyhow::{ensure, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{Buffer, DtoOperation, Segment};
use std::time::Duration;

const LENGTH: usize = 64 << 10;
/// Operations in flight when the owner acts.
const WINDOW: u64 = 8;

/// Memory of the server that is registered, but not kept mapped.
struct Loose {
    address: u64,
    segment: Segment,
}

impl Loose {
    fn new(pair: &Pair) -> Result<Self> {
        let buffer = std::mem::ManuallyDrop::new(Buffer::new(LENGTH)?);
        buffer.fill(0, LENGTH, 0x11);
        let address = buffer.address(0);
        let mut message = kdapl_lmr_create {
            pz: pair.server.pz.handle().0,
            address,
            length: LENGTH as u64,
            privileges: KDAPL_MEM_ALL,
            ..Default::default()
        };
        raw::call(pair.server.ia.device(), call::LMR_CREATE, &mut message)?;
        let context = message.rmr_context;
        Ok(Self { address, segment: Segment { address, length: LENGTH as u32, context } })
    }
}

fn pair(context: &Context) -> Result<Pair> {
    context.reads_arrive()?;
    Pair::new(context, Shape { memory: 2 * LENGTH, ..Default::default() })
}

/// Writes to the memory, acts amid the writes, and takes their completions, which are successful.
fn amid_writes(
    context: &Context,
    pair: &Pair,
    target: Segment,
    act: impl FnOnce() -> Result<()>,
) -> Result<Vec<u8>> {
    let client = &pair.client;
    let out = client.scramble(context)[..LENGTH].to_vec();
    (0..WINDOW).try_for_each(|cookie| client.write(0, LENGTH, target, cookie))?;
    std::thread::sleep(Duration::from_micros(context.rng().u64(0..500)));
    act()?;
    for cookie in 0..WINDOW {
        let event = context.next(&client.request)?;
        done(&event, DtoOperation::RdmaWrite, LENGTH as u64, cookie)?;
    }
    Ok(out)
}

/// Reads the memory through the peer.
fn seen_by_peer(context: &Context, pair: &Pair, target: Segment) -> Result<Vec<u8>> {
    let client = &pair.client;
    client.read(LENGTH, LENGTH, target, 9)?;
    done(&context.next(&client.request)?, DtoOperation::RdmaRead, LENGTH as u64, 9)?;
    Ok(client.lmr.buffer().to_vec(LENGTH, LENGTH))
}

/// The child has the memory as it was at the fork, and the parent keeps the registered pages.
pub fn forks(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let server = &pair.server;
    let target = server.lmr.remote_segment(0, LENGTH);
    for round in 0..context.count(20) {
        let byte = round as u8 | 1;
        server.lmr.buffer().fill(LENGTH, LENGTH, byte);
        let mut child = 0;
        let out = amid_writes(context, &pair, target, || {
            child = fork(|| holds(server.lmr.buffer(), byte))?;
            // The parent writes first: now its page is copied, or the child's.
            server.lmr.buffer().fill(LENGTH, LENGTH, !byte);
            Ok(())
        })?;
        let memory = || server.lmr.buffer().to_vec(0, 2 * LENGTH);
        context.until("the writes have arrived", || Ok(memory()[..LENGTH] == out[..]))?;
        let second = server.lmr.remote_segment(LENGTH, LENGTH);
        ensure!(
            seen_by_peer(context, &pair, second)? == vec![!byte; LENGTH],
            "the peer reads others"
        );
        same("status of the child", end_of(child)?, 0)?;
    }
    Ok(())
}

/// Checks that the second half of the memory has `byte` everywhere.
fn holds(buffer: &Buffer, byte: u8) -> Result<()> {
    let start = buffer.address(LENGTH) as *const u8;
    // SAFETY: the memory is mapped in a child as in its parent.
    let is_byte = |at| unsafe { start.add(at).read_volatile() } == byte;
    ensure!((0..LENGTH).all(is_byte), "other bytes than {byte:#x}");
    Ok(())
}

pub fn unmaps(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    // Later the library might map them where memory was unmapped.
    for end in [&pair.client, &pair.server] {
        ensure!(end.request.map_events() && end.recv.map_events(), "no mapped events");
    }
    for _ in 0..context.count(20) {
        let loose = Loose::new(&pair)?;
        let again = || -> Result<()> {
            // SAFETY: the memory is ours, and nothing in this process refers to it.
            let unmapped = unsafe { libc::munmap(loose.address as *mut _, LENGTH) };
            ensure!(unmapped == 0, "munmap: {}", std::io::Error::last_os_error());
            Ok(())
        };
        let out = amid_writes(context, &pair, loose.segment, again)?;
        let new = map_at(loose.address)?;
        // The pages are still registered, and they are not those of the new mapping.
        context.until("the old pages have the bytes", || {
            Ok(seen_by_peer(context, &pair, loose.segment)? == out)
        })?;
        amid_writes(context, &pair, loose.segment, || Ok(()))?;
        ensure!(new.to_vec(0, LENGTH) == vec![0; LENGTH], "the new memory was written");
    }
    Ok(())
}

/// Maps new memory at an address.
fn map_at(address: u64) -> Result<Buffer> {
    // SAFETY: nothing is mapped there, or the call fails.
    let start = unsafe {
        libc::mmap(
            address as *mut _,
            LENGTH,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    ensure!(start as u64 == address, "mmap: {}", std::io::Error::last_os_error());
    borrowed(address)
}

fn borrowed(address: u64) -> Result<Buffer> {
    let start = std::ptr::NonNull::new(address as *mut u8);
    // SAFETY: the memory stays mapped until the process ends, and is only copied.
    let buffer = start.map(|start| unsafe { Buffer::borrowed(start, LENGTH) });
    buffer.ok_or_else(|| anyhow::anyhow!("address 0"))
}

pub fn moves(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    for _ in 0..context.count(20) {
        let loose = Loose::new(&pair)?;
        let mut moved = 0;
        let out = amid_writes(context, &pair, loose.segment, || {
            moved = move_away(loose.address)?;
            Ok(())
        })?;
        let here = borrowed(moved)?;
        context.until("the moved memory has the bytes", || Ok(here.to_vec(0, LENGTH) == out))?;
        // What the owner writes at the new address, the peer reads at the old one.
        here.fill(0, LENGTH, 0x77);
        let seen = seen_by_peer(context, &pair, loose.segment)?;
        ensure!(seen == vec![0x77; LENGTH], "the peer reads other bytes");
    }
    Ok(())
}

fn move_away(address: u64) -> Result<u64> {
    // SAFETY: reserves room, which the moved memory replaces. Nothing refers to the old address.
    let moved = unsafe {
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let room = libc::mmap(std::ptr::null_mut(), LENGTH, libc::PROT_NONE, anonymous, -1, 0);
        ensure!(room != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::mremap(address as *mut _, LENGTH, LENGTH, flags, room)
    };
    ensure!(moved != libc::MAP_FAILED, "mremap: {}", std::io::Error::last_os_error());
    Ok(moved as u64)
}

/// The owner of a connection exits. The connection ends, and another one goes on.
pub fn exits(context: &Context) -> Result<()> {
    let (client, server) = context.open_both()?;
    let bystander = Pair::between(context, &client, &server, Shape::default())?;
    for _ in 0..context.count(10) {
        let before = machine::count_of("ep")?;
        let listener = Listener::new(context, &server)?;
        let mut traffic = Traffic::new(context, &server)?;
        traffic.post_receives()?;
        let owner = Peer::play(context, &format!("Owner {} 0", listener.port))?;
        traffic.accept(context, &listener)?;
        traffic.established(context)?;
        traffic.begin()?;
        let last = traffic.run_out(context)?;
        ensure!(context.ends_of_traffic().contains(&last), "the last event is {last}");
        owner.ends_well()?;
        flow::converse(context, &bystander)?;
        drop(traffic);
        context.until("its objects are gone", || Ok(machine::count_of("ep")? == before))?;
    }
    Ok(())
}

/// Plays the owner that exits, while it transfers.
pub fn owner(context: &Context, port: u64) -> Result<()> {
    let ia = context.open()?;
    let mut traffic = Traffic::new(context, &ia)?;
    traffic.post_receives()?;
    traffic.connect(context, port)?;
    traffic.established(context)?;
    traffic.begin()?;
    let pause = Duration::from_millis(context.rng().u64(0..50));
    std::thread::spawn(move || {
        std::thread::sleep(pause);
        std::process::exit(0)
    });
    traffic.run(context, u64::MAX).map(drop)
}
