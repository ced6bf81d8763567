// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Extreme sizes. The guest's kernel panics at a warning, so these tests cause none.

use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{refused, refused_as};
use crate::harness::skip;
use crate::raw::{self, Bytes, HEADER};
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::{call, Call, Message};
use libkdapl::sys::*;
use libkdapl::{Buffer, Error, EvdFlags, Ia, Subtype, Type};

tests! {
    #[Transport]
    region_lengths, 60,
        "A region of any length at any address that a process does not have is refused";
    region_of_one_page, 60,
        "A region mapping one page too often for the driver is refused, and the limit is reported";
    queue_lengths, 60, "EVDs are at most as long as the adapter reports";
    endpoint_sizes, 60,
        "Endpoints are at most as large as reported, in each attribute and in all at once";
    #[Transport]
    extreme_words, 300,
        "Extreme values in any word of a message that creates or changes an object do no harm";
}

fn create_region(ia: &Ia, pz: u64, address: u64, length: u64) -> Result<(), Error> {
    let mut message =
        kdapl_lmr_create { pz, address, length, privileges: KDAPL_MEM_ALL, ..Default::default() };
    raw::call(ia.device(), call::LMR_CREATE, &mut message)
}

pub fn region_lengths(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    let buffer = Buffer::new(8192)?;
    let limit = ia.query()?.raw.max_lmr_size;
    // From more than any machine has to impossible lengths.
    for bit in 36..64 {
        for length in [(1 << bit) - 4096, 1 << bit, (1 << bit) + 1] {
            let outcome = create_region(&ia, pz.handle().0, buffer.address(1), length);
            let reaches = buffer.address(1).checked_add(length);
            let expected = match reaches {
                _ if length > limit => Type::LENGTH_ERROR,
                None => Type::LENGTH_ERROR,
                // End of a process's address space.
                Some(end) if end > (1 << 47) - 4096 => Type::INVALID_ADDRESS,
                Some(_) => Type::INSUFFICIENT_RESOURCES,
            };
            refused(outcome, expected).with_context(|| format!("{length:#x} bytes"))?;
        }
    }
    for address in [1 << 47, 1 << 48, 1 << 63, 0xffff_8880_0000_0000, u64::MAX - 4096] {
        let outcome = create_region(&ia, pz.handle().0, address, 4096);
        refused(outcome, Type::INVALID_ADDRESS).with_context(|| format!("at {address:#x}"))?;
    }
    Ok(())
}

/// Maps one page of memory `pages` times.
pub fn map_often(pages: usize) -> Result<u64> {
    const CHUNK: usize = 2 << 20;
    let length = pages * 4096;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new mappings. Those of the file replace parts of the reserved one.
    unsafe {
        let file = libc::memfd_create(c"often".as_ptr(), libc::MFD_CLOEXEC);
        ensure!(file >= 0 && libc::ftruncate(file, CHUNK as i64) == 0, "no memory file");
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, private, -1, 0);
        ensure!(start != libc::MAP_FAILED, "no room for {length} bytes");
        for at in (0..length).step_by(CHUNK) {
            let (there, left) = (start.byte_add(at), CHUNK.min(length - at));
            let fixed = libc::MAP_SHARED | libc::MAP_FIXED;
            let mapped = libc::mmap(there, left, rights, fixed, file, 0);
            ensure!(mapped == there, "mmap: {}", std::io::Error::last_os_error());
        }
        libc::close(file);
        Ok(start as u64)
    }
}

fn region_of_one_page(context: &Context) -> Result<()> {
    // Soft-RoCE allocates 16 bytes for each page, and 4 MiB at most.
    const PAGES: usize = 1 << 18;
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    let address = map_often(PAGES + 1)?;
    let length = (PAGES as u64 + 1) * 4096;
    if context.client.is_siw() {
        return skip("siw supports half a terabyte, which would take this machine too long");
    }
    refused(create_region(&ia, pz.handle().0, address, length), Type::LENGTH_ERROR)?;
    ensure!(ia.query()?.raw.max_lmr_size < length, "{:?}", ia.query()?);
    Ok(())
}

/// Returns invalid lengths for a queue with a limit of `max`.
fn no_lengths(max: u32) -> [i32; 6] {
    [0, -1, i32::MIN, i32::MAX, max as i32 + 1, 1 << 30]
}

fn queue_lengths(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let max = ia.query()?.raw.max_evd_qlen;
    let dtos = EvdFlags::DTO | EvdFlags::SOFTWARE;
    let evd = ia.create_evd(dtos, 1)?;
    let wrong = |outcome| refused_as(outcome, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2);
    for qlen in no_lengths(max) {
        wrong(ia.create_evd(dtos, qlen).map(drop))?;
        wrong(evd.resize(qlen).map(drop))?;
        let opened = context.client.inside(|| Ia::open(&context.client.device, qlen))?;
        wrong(opened.map(drop))?;
    }
    evd.resize(max as i32)?;
    ia.create_evd(dtos, max as i32)?;
    context.client.inside(|| Ia::open(&context.client.device, max as i32))??;
    Ok(())
}

fn endpoint_sizes(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let limits = end.ia.query()?.raw;
    let (evds, max) = (end.ia.create_evd(EvdFlags::DTO, 1)?, limits.max_dto_per_ep);
    let create = |attr| {
        let made = end.ia.create_ep(&end.pz, &evds, &evds, &end.connect, Some(attr));
        made.map(drop)
    };
    type Set = fn(&mut libkdapl::EpAttr, u32);
    let fields: [(Set, u32); 6] = [
        (|attr, value| attr.max_recv_dtos = value, max),
        (|attr, value| attr.max_request_dtos = value, max),
        (|attr, value| attr.max_recv_iov = value, limits.max_iov_segments_per_dto),
        (|attr, value| attr.max_request_iov = value, limits.max_iov_segments_per_dto),
        (|attr, value| attr.max_rdma_read_in = value, limits.max_rdma_read_per_ep_in),
        (|attr, value| attr.max_rdma_read_out = value, limits.max_rdma_read_per_ep_out),
    ];
    let mut all = libkdapl::EpAttr::default();
    for (set, limit) in fields {
        for value in [limit + 1, 1 << 24, 1 << 31, u32::MAX - 1] {
            let mut attr = libkdapl::EpAttr::default();
            set(&mut attr, value);
            refused(create(attr), Type::INVALID_PARAMETER)?;
        }
        set(&mut all, limit);
    }
    create(all).context("all at the limits")
}

/// Replaces each word of a valid message by extreme values, one after the other.
fn overwrite<M: Message>(end: &End, call: Call<M>, good: &M) -> Result<()> {
    const VALUES: [u64; 12] = [
        0,
        1,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x0100_0000,
        1 << 32,
        1 << 40,
        (1 << 47) - 4096,
        i64::MAX as u64,
        u64::MAX - 4095,
        u64::MAX,
    ];
    let request = raw::request(raw::number(call), size_of::<M>());
    for at in (HEADER..size_of::<M>()).step_by(4) {
        for value in VALUES {
            let mut bytes = Bytes::of(good);
            bytes.set_u32(at, value as u32);
            if value > u64::from(u32::MAX) {
                if at % 8 != 0 || at + 8 > size_of::<M>() {
                    continue;
                }
                bytes.set_u32(at + 4, (value >> 32) as u32);
            }
            // Any result will do. Created objects are freed with the adapter.
            let _ = raw::send(end.ia.device(), request, &mut bytes);
        }
    }
    Ok(())
}

pub fn extreme_words(context: &Context) -> Result<()> {
    let fresh = || End::new(&context.open()?, Shape { memory: 4096, ..Shape::default() });
    let segment = |end: &End| {
        let part = end.lmr.segment(0, 64);
        [kdapl_triplet { address: part.address, length: part.length, context: part.context }]
    };
    let dto = |part: &[kdapl_triplet; 1], operation| kdapl_dto {
        operation,
        iov: part.as_ptr() as u64,
        iov_count: 1,
        iov_size: size_of::<kdapl_triplet>() as u32,
        remote: part[0],
        ..Default::default()
    };
    let end = fresh()?;
    let (pz, evd, connect) = (end.pz.handle().0, end.recv.handle().0, end.connect.handle().0);
    let lmr = kdapl_lmr_create {
        pz,
        address: end.lmr.buffer().address(0),
        length: 4096,
        privileges: KDAPL_MEM_ALL,
        ..Default::default()
    };
    overwrite(&end, call::LMR_CREATE, &lmr)?;
    let made = kdapl_evd_create {
        qlen: 4,
        flags: KDAPL_EVD_DTO | KDAPL_EVD_SOFTWARE,
        vector: -1,
        ..Default::default()
    };
    overwrite(&end, call::EVD_CREATE, &made)?;
    let resize = kdapl_evd_resize { handle: evd, qlen: 8, ..Default::default() };
    overwrite(&end, call::EVD_RESIZE, &resize)?;
    let ep = kdapl_ep_create {
        pz,
        recv_evd: evd,
        request_evd: evd,
        connect_evd: connect,
        ..Default::default()
    };
    overwrite(&end, call::EP_CREATE, &ep)?;
    let psp = kdapl_psp_create { conn_qual: context.port(), evd: connect, ..Default::default() };
    overwrite(&end, call::PSP_CREATE, &psp)?;
    for operation in [KDAPL_DTO_SEND, KDAPL_DTO_RDMA_READ, KDAPL_DTO_RECEIVE] {
        let end = fresh()?;
        let part = segment(&end);
        let handle = end.ep.handle().0;
        let post = kdapl_ep_post { handle, dto: dto(&part, operation), ..Default::default() };
        overwrite(&end, call::EP_POST, &post)?;
        let dtos = [dto(&part, operation)];
        let submit = kdapl_ep_submit {
            handle,
            dtos: dtos.as_ptr() as u64,
            count: 1,
            dto_size: size_of::<kdapl_dto>() as u32,
            ..Default::default()
        };
        overwrite(&end, call::EP_SUBMIT, &submit)?;
    }
    let end = fresh()?;
    let connect = kdapl_ep_connect {
        handle: end.ep.handle().0,
        conn_qual: context.port(),
        timeout_ns: 1000,
        ..Default::default()
    };
    overwrite(&end, call::EP_CONNECT, &connect)?;
    // The kernel still works.
    End::new(&context.open()?, Shape::default()).map(drop)
}
