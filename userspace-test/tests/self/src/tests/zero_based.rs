// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! LMRs whose segments count addresses from 0 on.

use super::rmr::scene::{Scene, BOTH};
use super::tests;
use crate::context::Context;
use crate::end::End;
use crate::expect::{done, refused, refused_as, same};
use crate::harness::skip;
use anyhow::{ensure, Result};
use libkdapl::sys::KDAPL_VA_TYPE_ZB;
use libkdapl::{
    Buffer, CompletionFlags, DtoOperation, Ia, Lmr, Privileges, Segment, Subtype, Type,
};
use std::ptr::NonNull;

tests! {
    #[Transport]
    peers, 60, "A peer addresses a zero-based LMR from 0 on, and not one byte beyond its end";
    #[Transport]
    local_segments, 30, "Segments of this side address a zero-based LMR from 0 on";
    #[Transport]
    bound_rmr, 60, "The context of an RMR of a zero-based LMR has the LMR's addresses";
    queried, 20, "A query returns both addresses of a zero-based LMR";
    refused_regions, 20, "A zero-based LMR begins at a page boundary";
    #[Transport]
    without_support, 20, "A driver that knows the addresses of the process only has no zero-based LMRs";
}

/// Length of the region, which ends amid a page.
const LENGTH: usize = (16 << 10) - 100;

fn is_supported(ia: &Ia) -> Result<bool> {
    Ok(ia.query()?.raw.zb_supported != 0)
}

fn region(end: &End, privileges: Privileges) -> Result<Lmr> {
    let buffer = Buffer::new(LENGTH)?;
    buffer.fill(0, LENGTH, 0x55);
    Ok(end.ia.register_zero_based(&end.pz, buffer, privileges)?)
}

/// Returns a connected pair whose server has a zero-based LMR; `None` if there can be none.
fn scene(context: &Context, privileges: Privileges) -> Result<Option<Scene>> {
    let mut scene = Scene::new(context)?;
    if !is_supported(&scene.pair.server.ia)? {
        return Ok(None);
    }
    scene.lmr = region(&scene.pair.server, privileges)?;
    Ok(Some(scene))
}

fn peers(context: &Context) -> Result<()> {
    let last = LENGTH - 1000;
    for (offset, allowed) in [(0, true), (4000, true), (last, true), (last + 1, false)] {
        for is_write in [false, true] {
            let Some(scene) = scene(context, Privileges::ALL)? else {
                return skip("the driver has no zero-based LMRs");
            };
            let remote = scene.lmr.remote_segment(offset, 1000);
            same("address", remote.address, offset as u64)?;
            scene.access(context, is_write, remote, allowed)?;
        }
    }
    let Some(scene) = scene(context, Privileges::ALL)? else { return Ok(()) };
    let address = scene.lmr.buffer().address(0);
    let remote = Segment { address, ..scene.lmr.remote_segment(0, 1000) };
    scene.access(context, true, remote, false)
}

fn local_segments(context: &Context) -> Result<()> {
    let local = Privileges::LOCAL_READ | Privileges::LOCAL_WRITE;
    let Some(Scene { pair, lmr, .. }) = scene(context, local)? else {
        return skip("the driver has no zero-based LMRs");
    };
    let flags = CompletionFlags::default();
    let bytes = pair.client.scramble(context);
    pair.server.ep.post_recv(&[lmr.segment(10, 30), lmr.segment(5000, 4000)], 1, flags)?;
    pair.client.send(0, 4030, 2)?;
    done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 4030, 1)?;
    done(&context.next(&pair.client.request)?, DtoOperation::Send, 4030, 2)?;
    ensure!(lmr.buffer().to_vec(10, 30) == bytes[..30], "the first segment differs");
    ensure!(lmr.buffer().to_vec(5000, 4000) == bytes[30..4030], "the second segment differs");
    let outside =
        [(0, LENGTH + 1), (LENGTH, 1)].map(|(offset, length)| lmr.segment(offset, length));
    let address = lmr.buffer().address(0);
    let of_process = Segment { address, ..lmr.segment(0, 64) };
    for segment in outside.into_iter().chain([of_process]) {
        let posted = pair.server.ep.post_send(&[segment], 3, flags);
        refused(posted, Type::PROTECTION_VIOLATION)?;
    }
    Ok(())
}

fn bound_rmr(context: &Context) -> Result<()> {
    for is_write in [false, true] {
        let local = Privileges::LOCAL_READ | Privileges::LOCAL_WRITE;
        let Some(scene) = scene(context, local)? else {
            return skip("the driver has no zero-based LMRs");
        };
        let segment = scene.bind(context, BOTH)?;
        scene.access(context, is_write, segment, true)?;
        let next = Segment { address: segment.address + 1, ..segment };
        scene.access(context, is_write, next, false)?;
    }
    Ok(())
}

fn queried(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    if !is_supported(&ia)? {
        return skip("the driver has no zero-based LMRs");
    }
    let lmr = ia.register_zero_based(&pz, Buffer::new(LENGTH)?, Privileges::ALL)?;
    same("address in segments", lmr.registration().address, 0)?;
    let query = lmr.query()?;
    same("address", query.address, lmr.buffer().address(0))?;
    same("address in segments", query.registered_address, 0)?;
    same("length", query.registered_size, LENGTH as u64)?;
    same("type of addresses", query.va_type, KDAPL_VA_TYPE_ZB)
}

fn refused_regions(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    if !is_supported(&ia)? {
        return skip("the driver has no zero-based LMRs");
    }
    let buffer = Buffer::new(2 * 4096)?;
    for offset in [1, 2048, 4095] {
        let start = NonNull::new(buffer.address(offset) as *mut u8).expect("a mapping");
        // SAFETY: The memory is registered only, and nothing accesses it.
        let part = unsafe { Buffer::borrowed(start, 4096) };
        let made = ia.register_zero_based(&pz, part, Privileges::ALL);
        refused_as(made, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNSUPPORTED)?;
    }
    Ok(())
}

fn without_support(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let pz = ia.create_pz()?;
    same("support", is_supported(&ia)?, !context.server.is_siw())?;
    if !context.server.is_siw() {
        return Ok(());
    }
    let made = ia.register_zero_based(&pz, Buffer::new(4096)?, Privileges::ALL);
    refused(made, Type::MODEL_NOT_SUPPORTED)
}
