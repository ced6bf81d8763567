// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Transfers of random lengths between random segments, all bytes of which are compared; and owners
//! of memory that fork, unmap, move it or exit amid transfers. The seed of a run replays them.

mod flow;
mod owner;

pub use owner::owner;

use super::tests;
use super::transfer::longest_read;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::done;
use anyhow::{ensure, Context as _, Result};
use flow::Flow;
use libkdapl::sys::KDAPL_PEER_TIMEOUT_NONE;
use libkdapl::DtoOperation;

tests! {
    #[Link, Transport]
    random_lists, 300,
        "Random segment lists are transferred in both directions of many connections at once";
    #[Long, Transport]
    up_to_64_mib, 300,
        "Transfers of 0 to 64 MiB (128 KiB over a spoilt link), each in as few operations as the limits allow, arrive";
    #[Transport]
    fork_amid_transfers, 60,
        "A fork amid transfers leaves the memory to the parent, and its copy to the child";
    #[Transport]
    unmapped_amid_transfers, 60,
        "Memory that is unmapped amid transfers: they go on, and no other memory is written";
    #[Transport]
    moved_amid_transfers, 60,
        "Memory that is moved amid transfers gets all bytes at its new address";
    #[Transport]
    exit_amid_transfers, 120, "An exit amid transfers ends the peer's connection, and no other one";
}

/// Length of the memory of an end. Each direction has half of it.
const MEMORY: usize = 256 << 10;

/// Returns a length up to `most`. Small and large ones are equally likely.
fn random_length(context: &Context, most: usize) -> usize {
    let bits = context.rng().u32(0..=usize::BITS - most.leading_zeros());
    context.rng().usize(0..1 << bits).min(most)
}

fn random_lists(context: &Context) -> Result<()> {
    let connections = context.count(40).clamp(8, 40);
    let (client, server) = context.open_both()?;
    let shape = Shape { memory: MEMORY, ..Default::default() };
    let pairs = (0..connections)
        .map(|_| Pair::between(context, &client, &server, shape))
        .collect::<Result<Vec<_>>>()?;
    let most = if context.link_is_spoilt() { 1_000 } else { MEMORY / 4 };
    for round in 0..context.count(60).max(8) {
        let mut flows = Vec::new();
        for Pair { client, server, .. } in &pairs {
            for (from, to, part) in
                [(client, server, 0..MEMORY / 2), (server, client, MEMORY / 2..MEMORY)]
            {
                let operation = context.rng().choice(flow::OPERATIONS).context("no operation")?;
                let limit = match operation {
                    DtoOperation::RdmaRead => longest_read(context, most),
                    _ => most,
                };
                let length = random_length(context, limit);
                flows.push(Flow::new(context, (from, to), part, operation, length)?);
            }
        }
        flows.iter().try_for_each(Flow::post)?;
        for flow in flows {
            let what = format!("round {round}: {flow}");
            flow.arrives(context).context(what)?;
        }
    }
    Ok(())
}

/// Lengths around the limit of an operation, the largest and a random one.
fn lengths(context: &Context, largest: usize, limit: usize) -> Vec<usize> {
    let mut lengths = vec![0, 1, limit - 1, limit, limit + 1, largest];
    lengths.push(random_length(context, largest));
    lengths.retain(|length| *length <= largest);
    lengths
}

fn up_to_64_mib(context: &Context) -> Result<()> {
    let (largest, peer_timeout_ms) = if context.link_is_spoilt() {
        // Each packet out of order costs a round trip, so a MiB takes 40 seconds, and a retry.
        (128 << 10, KDAPL_PEER_TIMEOUT_NONE)
    } else {
        ((64.0 * context.settings.effort).clamp(1.0, 64.0) as usize * (1 << 20), 0)
    };
    let shape = Shape {
        memory: largest,
        requests: 64,
        receives: 64,
        peer_timeout_ms,
        ..Default::default()
    };
    let pair = Pair::new(context, shape)?;
    let attr = pair.client.ia.query()?.raw;
    let limit = attr.max_message_size.min(attr.max_rdma_size).min(largest as u64) as usize;
    for operation in flow::OPERATIONS {
        let largest = match operation {
            DtoOperation::RdmaRead => longest_read(context, largest),
            _ => largest,
        };
        for length in lengths(context, largest, limit) {
            stream(context, &pair, operation, length, limit)
                .with_context(|| format!("{operation} of {length} bytes"))?;
        }
    }
    Ok(())
}

/// Transfers `length` bytes from the start of one memory to that of the other.
fn stream(
    context: &Context,
    pair: &Pair,
    operation: DtoOperation,
    length: usize,
    limit: usize,
) -> Result<()> {
    let Pair { client, server, .. } = pair;
    let sent = [client.scramble(context), server.scramble(context)];
    let ops: Vec<_> = (0..length.div_ceil(limit).max(1))
        .map(|number| (number * limit, (length - number * limit).min(limit)))
        .filter(|(_, length)| *length > 0 || operation == DtoOperation::Send)
        .collect();
    for (number, (offset, length)) in ops.iter().copied().enumerate() {
        let cookie = number as u64;
        let remote = server.lmr.remote_segment(offset, length);
        match operation {
            DtoOperation::Send => {
                server.receive(offset, length, cookie)?;
                client.send(offset, length, cookie)?;
            }
            DtoOperation::RdmaWrite => client.write(offset, length, remote, cookie)?,
            _ => client.read(offset, length, remote, cookie)?,
        }
    }
    for (number, (_, length)) in ops.iter().copied().enumerate() {
        let (cookie, length) = (number as u64, length as u64);
        done(&context.next(&client.request)?, operation, length, cookie)?;
        if operation == DtoOperation::Send {
            done(&context.next(&server.recv)?, DtoOperation::Receive, length, cookie)?;
        }
    }
    let (source, target, end) = match operation {
        DtoOperation::RdmaRead => (&sent[1], &sent[0], client),
        _ => (&sent[0], &sent[1], server),
    };
    // Over iWARP a write may still be on its way.
    context.until("all bytes have arrived", || {
        let got = end.lmr.buffer().to_vec(0, target.len());
        Ok(got[..length] == source[..length] && got[length..] == target[length..])
    })?;
    ensure!(client.ep.status()?.request_idle, "a request is outstanding");
    Ok(())
}

fn fork_amid_transfers(context: &Context) -> Result<()> {
    owner::forks(context)
}

fn unmapped_amid_transfers(context: &Context) -> Result<()> {
    owner::unmaps(context)
}

fn moved_amid_transfers(context: &Context) -> Result<()> {
    owner::moves(context)
}

fn exit_amid_transfers(context: &Context) -> Result<()> {
    owner::exits(context)
}
