// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Loads and unloads the module.

use super::drivers::opened_as_siw;
use super::keepalive::{broken_in_time, silent_hosts};
use super::kernel::run_with;
use super::tests;
use super::udapl::consumer;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::same;
use crate::machine::{load, load_with, module_file, unload};
use crate::udapl::possible;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::Device;
use libkdapl::sys::{KDAPL_KEEPALIVE_MAX, KDAPL_KEEPALIVE_MIN, KDAPL_KEEPALIVE_NONE};
use libkdapl::{EpAttr, EpConfig};
use std::ffi::CStr;
use std::fs::File;
use std::time::Duration;

tests! {
    refused_in_use, 60, "The module does not unload while a file is open, with an IA, with a connection or without either";
    unsafe_drivers, 60, "With unsafe_drivers=1 every user may open every device, and no device is listed as restricted";
    #[Defaults]
    keepalive_values, 120, "Endpoints without a keepalive get that of the module parameter, within its limits";
    #[Defaults, Hosts]
    keepalive_of_all, 120, "With keepalive_ms=7000 an idle connection without an attribute of its own is BROKEN within seven seconds of silence";
    #[Defaults]
    keepalive_in_kernel, 120, "With keepalive_ms=7000 this is the attribute of a kernel consumer's endpoint that has asked for none";
    #[Defaults, Udapl]
    keepalive_of_udapl, 120, "uDAPL: with keepalive_ms=7000 this is the attribute of an Endpoint that has asked for none";
    unloads_and_loads, 120, "The module unloads cleanly after use, and works again when it is loaded";
}

fn busy(what: &str) -> Result<()> {
    match unload() {
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(()),
        other => anyhow::bail!("unload with {what}: {other:?}"),
    }
}

fn refused_in_use(context: &Context) -> Result<()> {
    // Skips if the module's file is missing, since the module could not be loaded again.
    module_file()?;
    if let Ok(file) = File::open("/sys/kernel/debug/kdapl/objects") {
        busy("an open file of debugfs")?;
        drop(file);
    }
    let device = Device::open()?;
    busy("an open file")?;
    let ia = context.open()?;
    busy("an open IA")?;
    let listener = Listener::new(context, &ia)?;
    busy("a listener")?;
    let pair = Pair::new(context, Shape::default())?;
    busy("a connection")?;
    pair.server.receive(0, 64, 1)?;
    pair.client.send(0, 64, 2)?;
    context.next(&pair.server.recv)?;
    drop((listener, pair, ia, device));
    Ok(())
}

/// Reloads the module with these parameters.
pub fn reload(context: &Context, parameters: &CStr) -> Result<()> {
    let file = module_file()?;
    context.until("the module unloads", || Ok(unload().is_ok()))?;
    load_with(&file, parameters)
}

fn unsafe_drivers(context: &Context) -> Result<()> {
    reload(context, c"unsafe_drivers=1")?;
    let outcome = opened_as_siw(context);
    // The following tests need the module without parameters.
    reload(context, c"")?;
    let (listed, opened) = outcome?;
    ensure!(!listed, "a siw device is listed as restricted");
    Ok(opened?)
}

/// Runs `action` with these parameters of the module. The following tests need it without any.
fn with_parameters(
    context: &Context,
    parameters: &CStr,
    action: impl FnOnce() -> Result<()>,
) -> Result<()> {
    reload(context, parameters)?;
    let outcome = action();
    reload(context, c"")?;
    outcome.with_context(|| format!("{parameters:?}"))
}

/// Checks the keepalive of endpoints that ask for `asked`.
fn gets_keepalive(context: &Context, asked: u32, expected: u32) -> Result<()> {
    let shape = Shape { keepalive_ms: asked, ..Shape::default() };
    let end = End::new(&context.open()?, shape)?;
    same("keepalive", end.ep.query()?.raw.attr.keepalive_ms, expected)
}

fn keepalive_values(context: &Context) -> Result<()> {
    gets_keepalive(context, 0, KDAPL_KEEPALIVE_NONE)?;
    for (parameters, expected) in [
        (c"keepalive_ms=7000", 7_000),
        (c"keepalive_ms=1", KDAPL_KEEPALIVE_MIN),
        (c"keepalive_ms=4000000000", KDAPL_KEEPALIVE_MAX),
        (c"keepalive_ms=0", KDAPL_KEEPALIVE_NONE),
    ] {
        with_parameters(context, parameters, || {
            gets_keepalive(context, 0, expected)?;
            gets_keepalive(context, 8_000, 8_000)?;
            gets_keepalive(context, KDAPL_KEEPALIVE_NONE, KDAPL_KEEPALIVE_NONE)?;
            // An endpoint without attributes, and one whose queue has no room for probes.
            let end = End::new(&context.open()?, Shape::default())?;
            let plain = end.another_ep()?.query()?.raw.attr;
            same("keepalive by default", plain.keepalive_ms, expected)?;
            let max_request_dtos = end.ia.query()?.raw.max_dto_per_ep;
            let attr = EpAttr { max_request_dtos, ..Default::default() };
            let config = EpConfig { pz: Some(&end.pz), attr: Some(attr), ..Default::default() };
            let longest = end.ia.create_ep_with(&config)?.query()?.raw.attr;
            same("keepalive without room", longest.keepalive_ms, KDAPL_KEEPALIVE_NONE)
        })?;
    }
    Ok(())
}

fn keepalive_of_all(context: &Context) -> Result<()> {
    silent_hosts(context)?;
    with_parameters(context, c"keepalive_ms=7000", || {
        broken_in_time(context, Shape::default(), Duration::from_secs(7))
    })
}

fn keepalive_in_kernel(context: &Context) -> Result<()> {
    with_parameters(context, c"keepalive_ms=7000", || {
        run_with(context, "keepalive", "default_keepalive=7000", |_| Ok(()))
    })
}

fn keepalive_of_udapl(context: &Context) -> Result<()> {
    possible(context)?;
    with_parameters(context, c"keepalive_ms=7000", || consumer(context, "keepalive 7000"))
}

fn unloads_and_loads(context: &Context) -> Result<()> {
    let file = module_file()?;
    for round in 0..context.count(5).max(2) {
        drop(Pair::new(context, Shape::default())?);
        context
            .until("the module unloads", || Ok(unload().is_ok()))
            .with_context(|| format!("round {round}"))?;
        let gone = Device::open();
        ensure!(gone.is_err(), "/dev/kdapl still exists");
        load(&file)?;
        let pair = Pair::new(context, Shape::default())?;
        pair.server.receive(0, 64, 1)?;
        pair.client.send(0, 64, 2)?;
        context.next(&pair.server.recv)?;
    }
    Ok(())
}
