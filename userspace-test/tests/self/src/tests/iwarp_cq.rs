// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Checks the completion queue entries of a queue pair whose connection outlives its endpoint.

use super::iwarp::{tcp_listener, Device, ADDRESS};
use super::tests;
use super::user_limits::held;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::same;
use anyhow::Result;
use libkdapl::{CompletionFlags, Ep, EpAttr, EvdFlags};
use std::io::Read;

tests! {
    entries_reserved_until_qp_is_destroyed, 120, "A queue pair that outlives its endpoint over iWARP keeps its completion queue entries until it is destroyed";
}

/// Entries of the first completion queue of a short EVD, and of the second.
const FIRST_CQ_ENTRIES: u32 = 1024;
const SECOND_CQ_ENTRIES: u32 = 4 * FIRST_CQ_ENTRIES;
const RECEIVES: u64 = 10;

fn entries_reserved_until_qp_is_destroyed(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let (silent, port) = tcp_listener(context)?;
    let end = End::new(&device.open()?, Shape::default())?;
    let evd = end.ia.create_evd(EvdFlags::DTO, 8)?;
    let endpoint = |completions: u32| -> Result<Ep, libkdapl::Error> {
        let max_recv_dtos = completions - 1;
        let attr = EpAttr { max_recv_dtos, max_request_dtos: 1, ..Default::default() };
        end.ia.create_ep(&end.pz, &evd, &evd, &end.connect, Some(attr))
    };
    let queues = || -> Result<u32> { Ok(evd.query()?.cqs) };
    let pairs = || held(0, "queue_pairs");
    let most = FIRST_CQ_ENTRIES / 4 * 3;
    let first = endpoint(most)?;
    for cookie in 0..RECEIVES {
        first.post_recv(&[end.lmr.segment(0, 64)], cookie, CompletionFlags::default())?;
    }
    same("completion queues", queues()?, 1)?;
    first.connect(ADDRESS.into(), port, None, &[])?;
    let (mut peer, _) = silent.accept()?;
    // From now on the driver waits some seconds for the answer.
    peer.read_exact(&mut [0; 20])?;
    let before = pairs()?;
    first.free()?;
    same("queue pairs after the free of the endpoint", pairs()?, before)?;
    let second = endpoint(most)?;
    same("completion queues while the first one is in use", queues()?, 2)?;
    second.free()?;
    drop(peer);
    context.until("the queue pair is destroyed", || Ok(pairs()? < before))?;
    let _whole_second = endpoint(SECOND_CQ_ENTRIES)?;
    // The remaining completions of the first endpoint are drained soon.
    let mut third = None;
    context.until("the entries are free again", || {
        third = endpoint(FIRST_CQ_ENTRIES).ok();
        Ok(third.is_some())
    })?;
    same("completion queues after its destruction", queues()?, 2)
}
