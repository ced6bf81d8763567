// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posts of DTOs, one by one and in lists.
//!
//! * RDMA writes of 64 bytes, with as many in flight as the endpoint allows. The clock includes all
//!   that the machine does for a write: both sides are on it. Without events only the last write of
//!   a round has one.
//! * Receives: only their posts are measured. They are flushed in the end.

use crate::benchmark::Sink;
use crate::ends::{arrived, Ends, Pair, BYTES, PATIENCE};
use crate::sample::Sample;
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, Dto, DtoOperation, EvdFlags, Segment, Submitted};
use std::time::{Duration, Instant};

/// Number of writes in flight, which is a round.
const WINDOW: u32 = 64;
const ROUNDS: u32 = 200;
const RECEIVES: u32 = 4096;
/// Length of a list.
const LIST: u32 = 16;

/// Posts DTOs in lists of `length`.
fn post(ep: &libkdapl::Ep, dtos: &[Dto<'_>], length: u32) -> Result<()> {
    for list in dtos.chunks(length as usize) {
        let Submitted { posted, event } = ep.submit(list, None);
        event?;
        ensure!(posted == list.len(), "{posted} of {} DTOs were posted", list.len());
    }
    Ok(())
}

/// Returns the nanoseconds of a write, if `events` of a round have an event.
fn write(ends: &Ends, pair: &Pair, list: u32, events: u32) -> Result<f64> {
    let (local, to) = ([ends.lmr.segment(0, BYTES)], ends.lmr.remote_segment(BYTES, BYTES));
    let dto = |number: u32| {
        let has_event = number >= WINDOW - events;
        let flags = if has_event { CompletionFlags::default() } else { CompletionFlags::SUPPRESS };
        (number, flags)
    };
    let dtos: Vec<_> = (0..WINDOW)
        .map(dto)
        .map(|(number, flags)| {
            Dto::new(DtoOperation::RdmaWrite, &local, Some(to), number.into(), flags)
        })
        .collect();
    let round = || -> Result<()> {
        post(&pair.sender, &dtos, list)?;
        for _ in 0..events {
            arrived(&ends.sent.wait(Some(PATIENCE), 1)?.0, DtoOperation::RdmaWrite)?;
        }
        Ok(())
    };
    round()?;
    let start = Instant::now();
    (0..ROUNDS).try_for_each(|_| round())?;
    Ok(nanoseconds(start.elapsed(), ROUNDS * WINDOW))
}

/// Returns the nanoseconds to post a receive.
fn receive(ends: &Ends, list: u32) -> Result<f64> {
    let recv = ends.ia.create_evd(EvdFlags::DTO, RECEIVES as i32)?;
    let pair = ends.pair_with(&recv, RECEIVES, 1)?;
    let segment: [Segment; 1] = [ends.lmr.segment(BYTES, BYTES)];
    let flags = CompletionFlags::default();
    let dtos: Vec<_> = (0..u64::from(RECEIVES))
        .map(|number| Dto::new(DtoOperation::Receive, &segment, None, number, flags))
        .collect();
    let start = Instant::now();
    post(&pair.receiver, &dtos, list)?;
    Ok(nanoseconds(start.elapsed(), RECEIVES))
}

fn nanoseconds(time: Duration, count: u32) -> f64 {
    time.as_secs_f64() * 1e9 / f64::from(count)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let unused = ends.ia.create_evd(EvdFlags::DTO, 1)?;
    let pair = ends.pair_with(&unused, 1, WINDOW)?;
    let mut tell = |what: String, ours: f64| sink(Sample::alone("posts", &what, "ns", ours, None));
    for (list, how) in [(1, "one by one"), (LIST, "in lists of 16")] {
        let writes = "RDMA writes of 64 bytes";
        tell(format!("{writes} without events, {how}"), write(&ends, &pair, list, 1)?)?;
        tell(format!("{writes}, {how}"), write(&ends, &pair, list, WINDOW)?)?;
        tell(format!("receives, posted {how}"), receive(&ends, list)?)?;
    }
    Ok(())
}
