// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Time to close an adapter with many objects, and to remove its device.

use super::tenant::EpParts;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::connection;
use crate::machine::DeviceGuard;
use crate::tests::ep_races::{ep_on, post};
use anyhow::{ensure, Result};
use libkdapl::{Buffer, Close, ConnectionEvent, EvdFlags, Ia, Privileges, PspOptions};
use std::any::Any;
use std::time::Instant;

/// Objects that are kept until dropped.
type Kept = Vec<Box<dyn Any>>;

/// Creates this many objects in an adapter.
type Make = fn(&Context, &Ia, u64) -> Result<Kept>;

/// Returns the time to close an adapter, in microseconds for each of its `count` objects.
fn close_of(context: &Context, count: u64, make: Make) -> Result<f64> {
    let ia = context.open()?;
    let kept = make(context, &ia, count)?;
    let start = Instant::now();
    ia.close(Close::Abrupt)?;
    let took = start.elapsed();
    drop(kept);
    Ok(took.as_secs_f64() * 1e6 / count as f64)
}

fn small_eps(_context: &Context, ia: &Ia, count: u64) -> Result<Kept> {
    let parts = EpParts::new(ia)?;
    let mut made: Kept = Vec::new();
    for _ in 0..count {
        made.push(Box::new(ia.create_ep_with(&parts.config())?));
    }
    Ok(made)
}

/// Connects endpoints to those of another adapter, which stays open.
fn connected_eps(context: &Context, ia: &Ia, count: u64) -> Result<Kept> {
    let server = context.open_server()?;
    let listener = Listener::new(context, &server)?;
    let (here, there) = (EpParts::new(ia)?, EpParts::new(&server)?);
    let mut made: Kept = Vec::new();
    for _ in 0..count {
        let (near, far) =
            (ia.create_ep_with(&here.config())?, server.create_ep_with(&there.config())?);
        near.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
        listener.request(context)?.accept(&far, &[])?;
        for evd in [&here.connect, &there.connect] {
            connection(&context.next(evd)?, ConnectionEvent::Established)?;
        }
        made.push(Box::new((near, far)));
    }
    made.push(Box::new((listener, there)));
    Ok(made)
}

fn software_evds(_context: &Context, ia: &Ia, count: u64) -> Result<Kept> {
    let mut made: Kept = Vec::new();
    for _ in 0..count {
        made.push(Box::new(ia.create_evd(EvdFlags::SOFTWARE, 1)?));
    }
    Ok(made)
}

/// Registers memory of one page each.
fn regions(_context: &Context, ia: &Ia, count: u64) -> Result<Kept> {
    let pz = ia.create_pz()?;
    let mut made: Kept = Vec::new();
    for _ in 0..count {
        made.push(Box::new(ia.register(&pz, Buffer::new(4096)?, Privileges::ALL)?));
    }
    Ok(made)
}

/// Listens at free ports.
fn service_points(_context: &Context, ia: &Ia, count: u64) -> Result<Kept> {
    let requests = ia.create_evd(EvdFlags::CR, 8)?;
    let mut made: Kept = Vec::new();
    for _ in 0..count {
        made.push(Box::new(ia.create_psp_with(&requests, &PspOptions::default())?));
    }
    Ok(made)
}

/// Returns the time to remove the device, in microseconds for each of the `count` endpoints on it.
/// Each has posted `receives` receives; an EVD of one event takes their completions.
fn removal_of(context: &Context, guard: &DeviceGuard, count: u64, receives: u32) -> Result<f64> {
    let end = End::new(&context.open()?, Shape::default())?;
    let recv = end.ia.create_evd(EvdFlags::DTO, 1)?;
    let mut eps = Vec::new();
    for _ in 0..count {
        let ep = ep_on(&end, &recv, receives)?;
        post(&end, &ep, 0..receives.into())?;
        eps.push(ep);
    }
    let start = Instant::now();
    guard.delete()?;
    let took = start.elapsed();
    drop((eps, recv, end));
    guard.add()?;
    Ok(took.as_secs_f64() * 1e6 / count as f64)
}

/// Measures the cost of each object when there are `many` of them, and when there is a tenth.
fn is_proportional(
    name: &str,
    many: u64,
    mut cost_of: impl FnMut(u64) -> Result<f64>,
) -> Result<()> {
    /// Factor between the two measurements.
    const COUNT_FACTOR: u64 = 10;
    /// Small counts fit into caches, large ones do not.
    const MAX_COST_FACTOR: f64 = 4.0;
    /// A busy machine lengthens some measurements. The shortest ones count.
    const MEASUREMENTS: u32 = 30;
    let few = many / COUNT_FACTOR;
    let (mut one_of_few, mut one_of_many) = (f64::MAX, f64::MAX);
    let in_proportion = |few: f64, many: f64| many < few * MAX_COST_FACTOR;
    for round in 0..MEASUREMENTS {
        one_of_few = one_of_few.min(cost_of(few)?);
        one_of_many = one_of_many.min(cost_of(many)?);
        if round > 0 && in_proportion(one_of_few, one_of_many) {
            break;
        }
    }
    println!("{name}: {one_of_few:.1} us each of {few}, {one_of_many:.1} us each of {many}");
    ensure!(in_proportion(one_of_few, one_of_many), "{name}: not proportional to their number");
    Ok(())
}

pub(super) fn close_time_is_proportional(context: &Context) -> Result<()> {
    let kinds: [(&str, Make, u64); 5] = [
        ("endpoints", small_eps, 3000),
        ("connected endpoints", connected_eps, 500),
        ("EVDs", software_evds, 20_000),
        ("regions", regions, 5000),
        ("service points", service_points, 1000),
    ];
    for (name, make, many) in kinds {
        let many = context.count(many).max(500);
        is_proportional(name, many, |count| close_of(context, count, make))?;
    }
    Ok(())
}

pub(super) fn removal_time_is_proportional(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 200;
    let guard = DeviceGuard::new(context)?;
    let many = context.count(1000).clamp(300, 1000);
    let cost_of = |count| removal_of(context, &guard, count, RECEIVES);
    is_proportional("endpoints with a full EVD", many, cost_of)
}
