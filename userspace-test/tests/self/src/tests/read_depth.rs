// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Negotiates the number of RDMA reads in flight: the depth that each side requests, the depth that
//! the peer gets, and reads beyond it, which wait instead of failing.
//!
//! The manual page of `dat_ep_connect` leaves the agreement to the consumers ("Connection
//! establishment might fail"). Here the connect does not fail: the smaller number counts.

use super::connect::{ends, Ends};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, refused_as, same};
use crate::harness::skip;
use crate::plain::Plain;
use anyhow::{Context as _, Result};
use libkdapl::{ConnectionEvent, DtoOperation, EpAttr, EpChange, Subtype, Type};

tests! {
    reported_as_set, 60, "An endpoint reports the RDMA read depths that were set, before, during and after a connection, whatever the peer's";
    excess_reads_wait, 120, "RDMA reads beyond the depths of either side wait, complete in order, and transfer every byte";
    sent_to_peer, 60, "A peer gets the requested RDMA read depths, and with an accept those that both sides support";
    beyond_device_limits, 30, "RDMA read depths beyond the device's are refused, and the endpoint connects with the largest depths";
    zero_is_default, 20, "An RDMA read depth of zero is the documented default";
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

fn reported_as_set(context: &Context) -> Result<()> {
    for [mine, yours] in DEPTHS {
        let ends = ends(context)?;
        let both = || -> Result<()> {
            tells(&ends.client, mine)?;
            tells(&ends.server, yours)
        };
        ask(&ends.client, mine)?;
        ask(&ends.server, yours)?;
        both()?;
        connect(context, &ends)?;
        both().with_context(|| format!("connected with {mine:?}, {yours:?}"))?;
        ends.client.ep.disconnect(libkdapl::Close::Abrupt)?;
        for end in [&ends.client, &ends.server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
            end.ep.reset()?;
        }
        both().context("after a reset")?;
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
        depth(u32::MAX, 1),
        depth(1, u32::MAX),
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

fn zero_is_default(context: &Context) -> Result<()> {
    const DEFAULT: u32 = 16;
    let end = End::new(&context.open()?, Shape::default())?;
    let most = deepest(&end)?;
    let default = depth(DEFAULT.min(most.reads_in), DEFAULT.min(most.reads_out));
    tells(&end, default)?;
    ask(&end, depth(1, 1))?;
    ask(&end, depth(0, 0))?;
    tells(&end, default)
}
