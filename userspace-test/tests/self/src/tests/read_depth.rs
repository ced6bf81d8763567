// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Negotiates the number of RDMA reads in flight: the depth that each side requests, the depth that
//! the peer gets, reads beyond it, which wait instead of failing, and a depth of 0, which allows
//! none.
//!
//! The manual page of `dat_ep_connect` leaves the agreement to the consumers ("Connection
//! establishment might fail"). Here the connect does not fail: the smaller number counts.

use super::connect::{ends, Ends};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, connection_over, done, dto, refused_as, same};
use crate::harness::skip;
use crate::plain::Plain;
use anyhow::{Context as _, Result};
use libkdapl::sys::KDAPL_RDMA_READS_DEFAULT;
use libkdapl::{ConnectionEvent, DtoOperation, DtoStatus, EpAttr, EpChange, Error, Subtype, Type};

tests! {
    reported_as_negotiated, 60, "An endpoint reports the RDMA read depths that were set, and those of its connection while it has one";
    excess_reads_wait, 120, "RDMA reads beyond the depths of either side wait, complete in order, and transfer every byte";
    sent_to_peer, 60, "A peer gets the requested RDMA read depths, and with an accept those that both sides support";
    beyond_device_limits, 30, "RDMA read depths beyond the device's are refused, and the endpoint connects with the largest depths";
    none_is_default, 20, "Attributes without RDMA read depths have the documented defaults, and zero is zero";
    zero_out_refuses_reads, 20, "An endpoint with an outgoing RDMA read depth of zero refuses to post RDMA reads and atomic operations";
    zero_in_refuses_peer, 60, "A peer's RDMA read at an endpoint with an incoming depth of zero fails and breaks the connection";
}

/// The RDMA reads that an endpoint allows its peer, and those that it issues itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depth {
    reads_in: u32,
    reads_out: u32,
}

const fn depth(reads_in: u32, reads_out: u32) -> Depth {
    Depth { reads_in, reads_out }
}

/// Depths of client and server: equal, unequal, and larger than the peer allows.
const DEPTHS: [[Depth; 2]; 5] = [
    [depth(1, 1), depth(1, 1)],
    [depth(4, 4), depth(4, 4)],
    [depth(1, 7), depth(2, 3)],
    [depth(5, 2), depth(1, 9)],
    [depth(16, 16), depth(1, 1)],
];

fn deepest(end: &End) -> Result<Depth> {
    let limits = end.ia.query()?.raw;
    Ok(depth(limits.max_rdma_read_per_ep_in, limits.max_rdma_read_per_ep_out))
}

fn ask(end: &End, Depth { reads_in, reads_out }: Depth) -> Result<()> {
    end.ep.modify(EpChange::new().max_rdma_read_in(reads_in).max_rdma_read_out(reads_out))?;
    Ok(())
}

fn tells(end: &End, expected: Depth) -> Result<()> {
    let EpAttr { max_rdma_read_in, max_rdma_read_out, .. } = end.ep.query()?.raw.attr;
    same("depths", depth(max_rdma_read_in, max_rdma_read_out), expected)
}

/// Connects both ends.
fn connect(context: &Context, ends: &Ends) -> Result<()> {
    ends.call(context, &[])?;
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    Ok(())
}

/// Returns the depths of the client and the server of a connection. Software iWARP raises the
/// incoming depth of the accepting side to the peer's outgoing one.
fn negotiated(context: &Context, mine: Depth, yours: Depth) -> [Depth; 2] {
    let to_client = mine.reads_in.min(yours.reads_out);
    let to_server = if context.client.is_iwarp() {
        yours.reads_in.max(mine.reads_out)
    } else {
        yours.reads_in.min(mine.reads_out)
    };
    [depth(to_client, to_server), depth(to_server, to_client)]
}

fn reported_as_negotiated(context: &Context) -> Result<()> {
    for [mine, yours] in DEPTHS {
        let ends = ends(context)?;
        let both = |[client, server]: [Depth; 2]| -> Result<()> {
            tells(&ends.client, client)?;
            tells(&ends.server, server)
        };
        ask(&ends.client, mine)?;
        ask(&ends.server, yours)?;
        both([mine, yours])?;
        connect(context, &ends)?;
        both(negotiated(context, mine, yours))
            .with_context(|| format!("connected with {mine:?}, {yours:?}"))?;
        ends.client.ep.disconnect(libkdapl::Close::Abrupt)?;
        for end in [&ends.client, &ends.server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
            end.ep.reset()?;
        }
        both([mine, yours]).context("after a reset")?;
    }
    Ok(())
}

/// Posts more reads than either side allows, of a piece each.
fn read_many(context: &Context, from: &End, by: &End) -> Result<()> {
    const READS: usize = 14;
    const PIECE: usize = 200;
    let bytes = from.scramble(context);
    by.lmr.buffer().fill(0, READS * PIECE, 0);
    for number in 0..READS {
        let remote = from.lmr.remote_segment(number * PIECE, PIECE);
        by.read(number * PIECE, PIECE, remote, number as u64)?;
    }
    for number in 0..READS {
        let event = context.next(&by.request)?;
        done(&event, DtoOperation::RdmaRead, PIECE as u64, number as u64)?;
    }
    same("bytes", by.lmr.buffer().to_vec(0, READS * PIECE) == bytes[..READS * PIECE], true)
}

fn excess_reads_wait(context: &Context) -> Result<()> {
    for [mine, yours] in DEPTHS {
        let ends = ends(context)?;
        ask(&ends.client, mine)?;
        ask(&ends.server, yours)?;
        connect(context, &ends)?;
        for (by, from) in [(&ends.client, &ends.server), (&ends.server, &ends.client)] {
            read_many(context, from, by).with_context(|| format!("{mine:?}, {yours:?}"))?;
        }
    }
    Ok(())
}

fn sent_to_peer(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("siw negotiates by itself, and reports its own numbers to a program");
    }
    let arguments = ["--reads", "3"];
    // Our connect: the peer gets the requested depths, in and out.
    for Depth { reads_in, reads_out } in [depth(5, 7), depth(1, 2), depth(16, 3)] {
        let (end, port) = (End::new(&context.open()?, Shape::default())?, context.port());
        ask(&end, depth(reads_in, reads_out))?;
        let mut plain = Plain::listen(context, port, &arguments)?;
        end.ep.connect(context.server_address(), port, Some(context.patience()), &[])?;
        plain.says("request")?;
        plain.says(&format!("reads {reads_out} {reads_in}"))?;
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    // Our accept: no more than the peer's depth of three.
    for (Depth { reads_in, reads_out }, [given_in, given_out]) in
        [(depth(5, 7), [3, 3]), (depth(1, 2), [1, 2]), (depth(16, 3), [3, 3])]
    {
        let end = End::new(&context.open_server()?, Shape::default())?;
        ask(&end, depth(reads_in, reads_out))?;
        let listener = Listener::new(context, &end.ia)?;
        let mut plain = Plain::connect(context, listener.port, &arguments)?;
        listener.request(context)?.accept(&end.ep, &[])?;
        plain.says("established")?;
        plain.says(&format!("reads {given_out} {given_in}"))?;
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    Ok(())
}

fn beyond_device_limits(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let (end, most) = (&ends.client, deepest(&ends.client)?);
    let bad = [
        depth(most.reads_in + 1, 1),
        depth(1, most.reads_out + 1),
        depth(u32::MAX - 1, 1),
        depth(1, u32::MAX - 1),
    ];
    ask(end, depth(2, 3))?;
    for Depth { reads_in, reads_out } in bad {
        let change = EpChange::new().max_rdma_read_in(reads_in).max_rdma_read_out(reads_out);
        refused_as(end.ep.modify(change), Type::INVALID_PARAMETER, Subtype::INVALID_ARG3)?;
        let attr = EpAttr {
            max_rdma_read_in: reads_in,
            max_rdma_read_out: reads_out,
            ..Default::default()
        };
        let made = end.ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(attr));
        refused_as(made, Type::INVALID_PARAMETER, Subtype::INVALID_ARG6)?;
        tells(end, depth(2, 3))?;
    }
    ask(end, most)?;
    ask(&ends.server, deepest(&ends.server)?)?;
    connect(context, &ends)?;
    tells(end, most)?;
    read_many(context, &ends.server, end)?;
    read_many(context, end, &ends.server)
}

fn none_is_default(context: &Context) -> Result<()> {
    const DEFAULT: u32 = 16;
    let end = End::new(&context.open()?, Shape::default())?;
    let most = deepest(&end)?;
    let default = depth(DEFAULT.min(most.reads_in), DEFAULT.min(most.reads_out));
    tells(&end, default)?;
    ask(&end, depth(1, 1))?;
    ask(&end, depth(KDAPL_RDMA_READS_DEFAULT, KDAPL_RDMA_READS_DEFAULT))?;
    tells(&end, default)?;
    ask(&end, depth(0, 0))?;
    tells(&end, depth(0, 0))
}

/// The error of a read that may not be outstanding.
fn none_allowed(result: Result<(), Error>) -> Result<()> {
    refused_as(result, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)
}

fn post_read(by: &End, from: &End) -> Result<(), Error> {
    let (local, remote) = ([by.lmr.segment(0, 8)], from.lmr.remote_segment(0, 8));
    by.ep.post_rdma_read(&local, remote, 5, Default::default())
}

fn zero_out_refuses_reads(context: &Context) -> Result<()> {
    for (server_out, client_out) in [(16, 0), (0, 16)] {
        let ends = ends(context)?;
        ask(&ends.client, depth(16, client_out))?;
        ask(&ends.server, depth(16, server_out))?;
        connect(context, &ends)?;
        let both = [&ends.client, &ends.server];
        let [by, from] = if client_out == 0 { both } else { [both[1], both[0]] };
        none_allowed(post_read(by, from))?;
        if !context.client.is_iwarp() {
            let (local, remote) = (by.lmr.segment(0, 8), from.lmr.remote_segment(0, 8));
            none_allowed(by.ep.post_fetch_and_add(1, local, remote, 6, Default::default()))?;
        }
        // Other DTOs are not concerned, and neither are the peer's reads.
        by.write(0, 64, from.lmr.remote_segment(0, 64), 7)?;
        done(&context.next(&by.request)?, DtoOperation::RdmaWrite, 64, 7)?;
        post_read(from, by)?;
        done(&context.next(&from.request)?, DtoOperation::RdmaRead, 8, 5)?;
        by.ep.disconnect(libkdapl::Close::Abrupt)?;
        connection(&context.next(&by.connect)?, ConnectionEvent::Disconnected)?;
        none_allowed(post_read(by, from)).context("disconnected")?;
    }
    Ok(())
}

fn zero_in_refuses_peer(context: &Context) -> Result<()> {
    for target_is_server in [false, true] {
        let ends = ends(context)?;
        let both = [&ends.client, &ends.server];
        let [target, by] = if target_is_server { [both[1], both[0]] } else { both };
        ask(target, depth(0, 16))?;
        connect(context, &ends)?;
        if context.client.is_iwarp() {
            if !target_is_server {
                none_allowed(post_read(by, target))?;
            }
            // Software iWARP raises the depth of the accepting side to the peer's.
            continue;
        }
        tells(target, depth(0, 16))?;
        tells(by, depth(16, 0))?;
        post_read(by, target)?;
        let event = context.next(&by.request)?;
        // The peer's queue pair ends with its answer, and does not repeat one that is lost.
        let is_lost = context.link_is_spoilt()
            && dto(&event, DtoOperation::RdmaRead, DtoStatus::Transport).is_ok();
        if !is_lost {
            dto(&event, DtoOperation::RdmaRead, DtoStatus::RemoteResponder)?;
        }
        connection(&context.next(&by.connect)?, ConnectionEvent::Broken)?;
        connection_over(&context.next(&target.connect)?)?;
    }
    Ok(())
}
