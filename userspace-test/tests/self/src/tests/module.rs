// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Loads and unloads the module.

use super::drivers::opened_as_siw;
use super::tests;
use crate::context::Context;
use crate::end::{Listener, Pair, Shape};
use crate::machine::{load, load_with, module_file, unload};
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::Device;
use std::ffi::CStr;
use std::fs::File;

tests! {
    refused_in_use, 60, "The module does not unload while a file is open, with an IA, with a connection or without either";
    unsafe_drivers, 60, "With unsafe_drivers=1 every user may open every device, and no device is listed as restricted";
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
