// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! InfiniBand extensions of DAT: availability, refusal, tracepoints.

use super::tests;
use super::trace::of_one;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{done, refused, refused_as, same};
use crate::harness::skip;
use crate::trace::Recording;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Buffer, CompletionFlags, Dto, DtoOperation, Ep, Error, Extensions, Privileges, Segment,
    Submitted, Subtype, Type, Wait,
};

tests! {
    reported_by_adapter, 20, "An adapter reports its extensions: all over soft-RoCE, none over iWARP";
    unsupported_are_refused, 60,
        "An extension that an adapter lacks is refused with MODEL_NOT_SUPPORTED, connected or not";
    wrong_flags, 60, "Each extension accepts the completion flags that it supports, and no others";
    wrong_segments, 60,
        "Each extension accepts its number of segments, and names the argument otherwise";
    submitted, 60, "Extensions are submitted among other DTOs, and complete in order";
    tracepoints, 60, "Tracepoints report extensions, and receives that immediate data have consumed";
}

const NO_FLAGS: CompletionFlags = CompletionFlags(0);
const ALL: Extensions = Extensions(Extensions::IMMED_DATA.0 | ATOMICS.0);
/// Atomic operations.
pub const ATOMICS: Extensions =
    Extensions(Extensions::FETCH_AND_ADD.0 | Extensions::CMP_AND_SWAP.0);

/// Skips a test of these extensions on a device without them.
pub fn needed(context: &Context, extensions: Extensions) -> Result<()> {
    let there = context.open()?.query()?.extensions;
    if !there.contains(extensions) {
        return skip(format!("this device lacks some of {extensions:?}"));
    }
    Ok(())
}

/// Operations, and the extensions that they require.
const OPERATIONS: [(DtoOperation, Extensions); 3] = [
    (DtoOperation::RdmaWriteImmed, Extensions::IMMED_DATA),
    (DtoOperation::FetchAdd, Extensions::FETCH_AND_ADD),
    (DtoOperation::CmpSwap, Extensions::CMP_AND_SWAP),
];

/// Posts an operation on 8 bytes. Atomic operations change nothing.
fn post(end: &End, operation: DtoOperation, remote: Segment) -> Result<(), Error> {
    let (local, ep) = (end.lmr.segment(0, 8), &end.ep);
    match operation {
        DtoOperation::RdmaWriteImmed => ep.post_rdma_write_immed(&[local], remote, 1, 77, NO_FLAGS),
        DtoOperation::FetchAdd => ep.post_fetch_and_add(0, local, remote, 77, NO_FLAGS),
        _ => ep.post_cmp_and_swap(0, 0, local, remote, 77, NO_FLAGS),
    }
}

/// Posts each extension that the adapter has. Returns the results.
pub fn each(end: &End, remote: Segment) -> Result<Vec<(DtoOperation, Result<(), Error>)>> {
    let there = end.ia.query()?.extensions;
    let wanted = OPERATIONS.into_iter().filter(|(_, extension)| there.contains(*extension));
    Ok(wanted.map(|(operation, _)| (operation, post(end, operation, remote))).collect())
}

/// Posts this operation, if the adapter has it. Returns the result.
pub fn one(
    end: &End,
    operation: DtoOperation,
    remote: Segment,
) -> Result<Option<Result<(), Error>>> {
    let there = end.ia.query()?.extensions;
    let has = |(other, extension)| other == operation && there.contains(extension);
    Ok(OPERATIONS.into_iter().any(has).then(|| post(end, operation, remote)))
}

fn reported_by_adapter(context: &Context) -> Result<()> {
    let query = context.open()?.query()?;
    let there = query.extensions;
    same("unknown extensions", there.0 & !ALL.0, 0)?;
    if context.client.is_iwarp() {
        return same("extensions over iWARP", there.0, 0);
    }
    ensure!(there.contains(Extensions::IMMED_DATA), "{there:?}");
    if query.adapter_name.starts_with("rxe") {
        return same("extensions over soft-RoCE", there, ALL);
    }
    // The device has both atomic operations or none.
    same("atomic operations", there.contains(ATOMICS), there.0 & ATOMICS.0 != 0)
}

fn unsupported_are_refused(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let there = ia.query()?.extensions;
    if there == ALL {
        return skip("this device has all extensions");
    }
    let pair = Pair::new(context, Shape::default())?;
    let unconnected = End::new(&ia, Shape::default())?;
    for end in [&unconnected, &pair.client] {
        let remote = pair.server.lmr.remote_segment(0, 8);
        for (operation, extension) in OPERATIONS {
            if !there.contains(extension) {
                let posted = post(end, operation, remote);
                refused(posted, Type::MODEL_NOT_SUPPORTED).context(operation)?;
            }
        }
        ensure!(end.ep.status()?.request_idle, "an operation was posted");
    }
    if !there.contains(ATOMICS) {
        let privileges = Privileges::ALL | Privileges::REMOTE_ATOMIC;
        let lmr = ia.register(&unconnected.pz, Buffer::new(4096)?, privileges);
        refused(lmr, Type::MODEL_NOT_SUPPORTED)?;
    }
    Ok(())
}

fn wrong_flags(context: &Context) -> Result<()> {
    needed(context, ALL)?;
    let pair = Pair::new(context, Shape::default())?;
    let (ep, local) = (&pair.client.ep, pair.client.lmr.segment(0, 8));
    let remote = pair.server.lmr.remote_segment(0, 8);
    let wrong = |posted, subtype| refused_as::<()>(posted, Type::INVALID_PARAMETER, subtype);
    for flags in [0x04, 0x10, 0x20, 0x8000_0000].map(CompletionFlags) {
        let posted = ep.post_rdma_write_immed(&[local], remote, 1, 1, flags);
        wrong(posted, Subtype::INVALID_ARG7).with_context(|| format!("{flags:?}"))?;
    }
    for flags in [0x02, 0x04, 0x10, 0x20, 0x8000_0000].map(CompletionFlags) {
        let posted = ep.post_fetch_and_add(1, local, remote, 1, flags);
        wrong(posted, Subtype::INVALID_ARG6).with_context(|| format!("{flags:?}"))?;
        let posted = ep.post_cmp_and_swap(1, 1, local, remote, 1, flags);
        wrong(posted, Subtype::INVALID_ARG7).with_context(|| format!("{flags:?}"))?;
    }
    ensure!(ep.status()?.request_idle, "an operation was posted");
    // A suppressed success is not reported here, but at the peer.
    let quiet = CompletionFlags::SUPPRESS | CompletionFlags::BARRIER_FENCE;
    pair.server.receive(0, 64, 1)?;
    if !context.loses_reads() {
        ep.post_fetch_and_add(1, local, remote, 1, quiet)?;
        ep.post_cmp_and_swap(1, 1, local, remote, 2, quiet)?;
    }
    let immed = quiet | CompletionFlags::SOLICITED_WAIT;
    ep.post_rdma_write_immed(&[local], remote, 5, 3, immed)?;
    done(&context.next(&pair.server.recv)?, DtoOperation::RecvImmed, 8, 1)?;
    context.quiet(&pair.client.request)
}

fn wrong_segments(context: &Context) -> Result<()> {
    needed(context, ALL)?;
    let pair = Pair::new(context, Shape::default())?;
    let (ep, lmr) = (&pair.client.ep, &pair.client.lmr);
    let remote = Some(pair.server.lmr.remote_segment(0, 64));
    let segments = vec![lmr.segment(0, 8); 64];
    let post = |operation, count: usize| {
        ep.post_dto(&Dto::new(operation, &segments[..count], remote, 1, NO_FLAGS))
    };
    let most = ep.query()?.raw.attr.max_rdma_write_iov as usize;
    for (operation, argument, most) in [
        (DtoOperation::RdmaWriteImmed, Subtype::INVALID_ARG2, most),
        (DtoOperation::FetchAdd, Subtype::INVALID_ARG3, 1),
        (DtoOperation::CmpSwap, Subtype::INVALID_ARG4, 1),
    ] {
        for count in [most + 1, 64] {
            refused_as(post(operation, count), Type::INVALID_PARAMETER, argument)
                .with_context(|| format!("{operation} with {count}"))?;
        }
    }
    ensure!(ep.status()?.request_idle, "an operation was posted");
    pair.server.receive(0, 64, 1)?;
    post(DtoOperation::RdmaWriteImmed, most)?;
    let length = 8 * most as u64;
    done(&context.next(&pair.server.recv)?, DtoOperation::RecvImmed, length, 1)?;
    done(&context.next(&pair.client.request)?, DtoOperation::RdmaWriteImmed, length, 1)
}

fn submitted(context: &Context) -> Result<()> {
    needed(context, ALL)?;
    let pair = Pair::new(context, Shape::default())?;
    let (client, server) = (&pair.client, &pair.server);
    (0..2).try_for_each(|cookie| server.receive(64, 64, cookie))?;
    let (local, remote) = ([client.lmr.segment(0, 8)], server.lmr.remote_segment(0, 8));
    let dtos = [
        Dto::fetch_and_add(3, &local[0], remote, 1, NO_FLAGS),
        Dto::rdma_write_immed(&local, server.lmr.remote_segment(128, 8), 9, 2, NO_FLAGS),
        Dto::send(&local, 3, NO_FLAGS),
        Dto::cmp_and_swap(3, 4, &local[0], remote, 4, NO_FLAGS),
    ];
    let wait = Wait { evd: &client.request, timeout: Some(context.patience()), threshold: 4 };
    let Submitted { posted, event } = client.ep.submit(&dtos, Some(wait));
    same("posted", posted, 4)?;
    let (first, more) = event?.context("no event")?;
    done(&first, DtoOperation::FetchAdd, 8, 1)?;
    same("events after it", more, 3)?;
    for (operation, cookie) in
        [(DtoOperation::RdmaWriteImmed, 2), (DtoOperation::Send, 3), (DtoOperation::CmpSwap, 4)]
    {
        done(&context.next(&client.request)?, operation, 8, cookie)?;
    }
    done(&context.next(&server.recv)?, DtoOperation::RecvImmed, 8, 0)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 8, 1)?;
    same("the peer's word", server.lmr.buffer().to_vec(0, 8), 4_u64.to_ne_bytes().to_vec())
}

fn tracepoints(context: &Context) -> Result<()> {
    needed(context, ALL)?;
    let pair = Pair::new(context, Shape::default())?;
    let (client, server) = (&pair.client, &pair.server);
    let recording = Recording::of_endpoints()?;
    server.receive(0, 64, 5)?;
    let mut wanted = Vec::new();
    for (operation, _) in OPERATIONS {
        post(client, operation, server.lmr.remote_segment(0, 8))?;
        done(&context.next(&client.request)?, operation, 8, 77)?;
        wanted.push(format!("kdapl_ep_post {operation}  0x4d 8"));
        wanted.push(format!("kdapl_ep_complete {operation} SUCCESS 0x4d 8"));
    }
    done(&context.next(&server.recv)?, DtoOperation::RecvImmed, 8, 5)?;
    let told = recording.told()?;
    let of = |ep: &Ep| -> Vec<String> {
        let fields = ["operation", "status", "cookie", "length"];
        let told = of_one(&told, ep).into_iter();
        told.map(|told| format!("{} {}", told.event, told.values(&fields))).collect()
    };
    same("trace of the client's endpoint", of(&client.ep), wanted)?;
    let wanted = [
        "kdapl_ep_post RECEIVE  0x5 64".to_string(),
        "kdapl_ep_complete RECV_IMMED SUCCESS 0x5 8".to_string(),
    ];
    same("trace of the server's endpoint", of(&server.ep), wanted.to_vec())
}
