// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A consumer in Rust that tests the crate `kdat`. The module is loaded for one scenario, and
//! refuses to load if that fails.
#![deny(unsafe_code)]

mod atomic;
mod calls;
#[allow(unsafe_code, reason = "a function in C")]
mod contexts;
#[allow(unsafe_code, reason = "the namespace of the process")]
mod namespace;
mod objects;
mod races;
mod registered;
#[allow(unsafe_code, reason = "memory of the consumer")]
mod scattered;
mod upcalls;

use core::{
    borrow::Borrow,
    net::{
        IpAddr,
        Ipv4Addr, //
    },
};
use kdat::{
    Ep,
    Ia,
    Streams, //
};
use kernel::{
    prelude::*,
    str::CString,
    time::{
        delay::fsleep,
        Delta, //
    },
};

module! {
    type: Consumer,
    name: "kdapl_rust_consumer",
    description: "Tests of the crate kdat",
    license: "Dual BSD/GPL",
    imports_ns: ["KDAPL"],
    params: {
        address: u32 { default: 0x0a070001, description: "IPv4 address of the RDMA device", },
        port: u32 { default: 7300, description: "connection qualifier to listen for", },
        scenario: u32 { default: 0, description: "number of the scenario", },
        rounds: u32 { default: 1, description: "number of repetitions", },
        iwarp: u32 { default: 0, description: "1: the device is an iWARP one", },
    },
}

/// Returns the value of a module parameter. Linux 7.2 passes a reference, 7.3 a value.
fn parameter(value: impl Borrow<u32>) -> u32 {
    *value.borrow()
}

/// Longest wait for an event, in microseconds.
const PATIENCE_US: u32 = 30_000_000;

/// Streams of most dispatchers.
fn streams() -> Streams {
    Streams::CR | Streams::CONNECTION | Streams::DTO | Streams::RMR_BIND
}

/// Returns whether the device is an iWARP one.
fn is_iwarp() -> bool {
    parameter(module_parameters::iwarp.value()) != 0
}

/// Returns the connection qualifier of the scenario.
fn conn_qual() -> u64 {
    parameter(module_parameters::port.value()).into()
}

/// Returns the address of this machine.
fn address() -> IpAddr {
    Ipv4Addr::from(parameter(module_parameters::address.value())).into()
}

/// Starts to connect to this machine.
fn connect_here(ep: &Ep, data: &[u8]) -> kdat::Result {
    ep.connect(&address().into(), conn_qual(), PATIENCE_US, data)
}

/// Returns the name of the adapter, its address.
fn name() -> Result<CString> {
    let [a, b, c, d] = module_parameters::address.value().to_be_bytes();
    CString::try_from_fmt(fmt!("{a}.{b}.{c}.{d}"))
}

fn open() -> Result<Ia> {
    Ok(Ia::open(&name()?, 8)?)
}

/// Waits until a condition is true.
fn until(condition: impl Fn() -> bool) -> Result {
    for _ in 0..PATIENCE_US / 1000 {
        if condition() {
            return Ok(());
        }
        fsleep(Delta::from_millis(1));
    }
    Err(ETIMEDOUT)
}

fn ensure(condition: bool, what: &str) -> Result {
    if condition {
        return Ok(());
    }
    pr_err!("false: {what}\n");
    Err(EIO)
}

struct Consumer;

impl kernel::Module for Consumer {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let scenarios = [
            races::close_first,
            races::close_last,
            races::free_in_upcall,
            races::free_dispatcher,
            calls::segments,
            calls::bound_memory,
            calls::shared_receives,
            registered::registered_memory,
            registered::dropped_registration,
            registered::late_invalidation,
            races::close_beside_free,
            registered::lost_memory,
            objects::notified,
            objects::points,
            objects::gated,
            objects::handed_off,
            namespace::opened_here,
            atomic::posts,
            atomic::full_queues,
            upcalls::echoed,
            objects::freed,
            atomic::resets,
        ];
        let number = parameter(module_parameters::scenario.value()) as usize;
        let scenario = scenarios.get(number).ok_or(EINVAL)?;
        for round in 0..parameter(module_parameters::rounds.value()) {
            scenario(round)?;
        }
        Ok(Self)
    }
}
