// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Longest connection of one process while another thread connects Endpoints with many receives.
//!
//! Receives that are posted before a connection go to the queue pair when it exists. That takes
//! hundreds of milliseconds for the largest Endpoints. The kernel handles the connections of all
//! users in one worker, which must not do that.

use crate::benchmark::Sink;
use crate::ends::{answer, established, Ends, PATIENCE};
use crate::sample::Sample;
use anyhow::{anyhow, Result};
use libkdapl::{CompletionFlags, Ep, EpAttr, EpConfig, Evd, EvdFlags};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Receives of a large Endpoint, and segments of each. Soft-RoCE allows no more.
const RECEIVES: u32 = 16_384;
const SEGMENTS: usize = 32;
/// Large Endpoints.
const LARGE: usize = 8;
/// Small connections that are measured alone.
const ALONE: usize = 100;
/// Maximum of a small connection beside them, in microseconds: some turns of a scheduler with two
/// threads.
const LIMIT_US: f64 = 20_000.0;
const PORT: u64 = 7198;

/// A large Endpoint and its queues, with all its receives.
struct Large {
    ep: Ep,
    connect: Evd,
    _recv: Evd,
}

impl Large {
    fn new(ends: &Ends) -> Result<Self> {
        let pz = ends.ia.create_pz()?;
        let recv = ends.ia.create_evd(EvdFlags::DTO, RECEIVES as i32)?;
        let connect = ends.ia.create_evd(EvdFlags::CONNECTION, 8)?;
        let attr =
            EpAttr { max_recv_dtos: RECEIVES, max_recv_iov: SEGMENTS as u32, ..EpAttr::default() };
        let ep = ends.ia.create_ep_with(&EpConfig {
            pz: Some(&pz),
            recv: Some(&recv),
            request: Some(&ends.sent),
            connect: Some(&connect),
            attr: Some(attr),
            ..EpConfig::default()
        })?;
        let buffer = libkdapl::Buffer::new(SEGMENTS)?;
        let lmr = ends.ia.register(&pz, buffer, libkdapl::Privileges::ALL)?;
        let segments: Vec<_> = (0..SEGMENTS).map(|byte| lmr.segment(byte, 1)).collect();
        for cookie in 0..RECEIVES {
            ep.post_recv(&segments, cookie.into(), CompletionFlags::default())?;
        }
        Ok(Self { ep, connect, _recv: recv })
    }
}

/// Connects large Endpoints, which have their receives already, to small ones, all at once.
/// Returns the small ones. Their end would flush all the receives, which keeps soft-RoCE's workers
/// busy.
fn connect_large(ends: &Ends, large: &[Large], requests: &Evd) -> Result<Vec<Ep>> {
    let small_connect = ends.ia.create_evd(EvdFlags::CONNECTION, 2 * LARGE as i32)?;
    for Large { ep, .. } in large {
        ep.connect(ends.address, PORT, Some(PATIENCE), &[])?;
    }
    let mut small = Vec::new();
    for _ in large {
        let ep = ends.bare_ep(&small_connect)?;
        answer(requests.wait(Some(PATIENCE), 1)?.0, &ep)?;
        small.push(ep);
    }
    for Large { connect, .. } in large {
        established(&connect.wait(Some(PATIENCE), 1)?.0)?;
    }
    Ok(small)
}

/// Returns the time of a small connection.
fn connect_small(ends: &Ends, recv: &Evd) -> Result<Duration> {
    let start = Instant::now();
    ends.pair(recv, 1)?;
    Ok(start.elapsed())
}

/// Returns the longest of some times in microseconds.
fn longest(times: &[Duration]) -> f64 {
    times.iter().max().map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let recv = ends.ia.create_evd(EvdFlags::DTO, 8)?;
    let alone = (0..ALONE).map(|_| connect_small(&ends, &recv)).collect::<Result<Vec<_>>>()?;
    let requests = ends.ia.create_evd(EvdFlags::CR, 8)?;
    let _psp = ends.ia.create_psp(PORT, &requests)?;
    let large = (0..LARGE).map(|_| Large::new(&ends)).collect::<Result<Vec<_>>>()?;
    let ended = AtomicBool::new(false);
    let start = Instant::now();
    let beside = std::thread::scope(|scope| -> Result<Vec<Duration>> {
        let connecting = scope.spawn(|| {
            let result = connect_large(&ends, &large, &requests);
            ended.store(true, Ordering::Relaxed);
            result
        });
        let mut times = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            times.push(connect_small(&ends, &recv)?);
        }
        let small = connecting.join().map_err(|_| anyhow!("the connecting thread panicked"))??;
        drop(small);
        Ok(times)
    })?;
    eprintln!(
        "kdapl-bench: preposted: {} small connections beside {LARGE} large ones in {:?}",
        beside.len(),
        start.elapsed()
    );
    let what = "longest connection, alone";
    sink(Sample::alone("preposted", what, "us", longest(&alone), None))?;
    let what = "longest connection beside 8 Endpoints with 16,384 receives of 32 segments";
    sink(Sample::alone("preposted", what, "us", longest(&beside), Some(LIMIT_US)))
}
