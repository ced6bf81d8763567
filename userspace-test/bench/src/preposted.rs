// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Longest connection of one process while another thread connects Endpoints with many receives.
//!
//! Receives that are posted before a connection go to the queue pair when it exists. That takes
//! hundreds of milliseconds for the largest Endpoints. The kernel handles the connections of all
//! users in one worker, which must not do that.

use crate::benchmark::Sink;
use crate::ends::{answer, established, Ends, PATIENCE};
use crate::sample::Sample;
use crate::times::Times;
use anyhow::{anyhow, Result};
use libkdapl::{CompletionFlags, Ep, EpAttr, Evd, EvdFlags};

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
        let recv = ends.ia.create_evd(EvdFlags::DTO, RECEIVES as i32)?;
        let connect = ends.ia.create_evd(EvdFlags::CONNECTION, 8)?;
        let attr =
            EpAttr { max_recv_dtos: RECEIVES, max_recv_iov: SEGMENTS as u32, ..EpAttr::default() };
        let ep = ends.ep(&recv, &connect, attr)?;
        let segments: Vec<_> = (0..SEGMENTS).map(|byte| ends.lmr.segment(byte, 1)).collect();
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

/// Connects two small Endpoints.
fn connect_small(ends: &Ends, recv: &Evd, times: &mut Times) -> Result<()> {
    times.call(|| ends.pair(recv, 1)).map(drop)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let recv = ends.ia.create_evd(EvdFlags::DTO, 8)?;
    let (mut alone, mut beside) = (Times::default(), Times::default());
    (0..ALONE).try_for_each(|_| connect_small(&ends, &recv, &mut alone))?;
    let requests = ends.ia.create_evd(EvdFlags::CR, 8)?;
    let _psp = ends.ia.create_psp(PORT, &requests)?;
    let large = (0..LARGE).map(|_| Large::new(&ends)).collect::<Result<Vec<_>>>()?;
    let _small = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| connect_large(&ends, &large, &requests));
        while !connecting.is_finished() {
            connect_small(&ends, &recv, &mut beside)?;
        }
        connecting.join().map_err(|_| anyhow!("the connecting thread panicked"))?
    })?;
    let count = beside.count();
    eprintln!("kdapl-bench: preposted: {count} small connections beside {LARGE} large ones");
    let mut tell = |what: &str, times: Times, limit| {
        let what = format!("longest connection{what}");
        sink(Sample::alone("preposted", &what, "us", times.longest(0)?, limit))
    };
    tell(", alone", alone, None)?;
    let what = format!(" beside {LARGE} Endpoints with 16,384 receives of {SEGMENTS} segments");
    tell(&what, beside, Some(LIMIT_US))
}
