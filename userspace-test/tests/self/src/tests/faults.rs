// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Fault injection: makes each call with a failure at each place where the kernel can fail. Memory
//! is short, or memory of the process is gone. The call must return the right error, leave no
//! objects, and succeed when it is repeated.
//!
//! Only requests of the calling thread fail, [one](inject) in each run. The first one fails in the
//! first run, and so on, until the call succeeds [without a fault](sweep).

pub mod inject;
pub mod rows;
mod sweep;
mod workers;

use self::inject::{Fault, Injector};
use self::workers::connects as kernel_workers;
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::machine::{no_objects_left, objects};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::raw::Device;
use std::fs::File;
use std::os::fd::AsRawFd;

tests! {
    table_is_complete, 5, "Every call has a row in the table of calls that are tested with failing memory";
    adapters, 60, "Calls on adapters survive each failure of memory";
    memory, 60, "Calls on protection zones and regions survive each failure of memory";
    evds, 60, "Calls on EVDs survive each failure of memory";
    cnos, 60, "Calls on CNOs survive each failure of memory";
    srqs, 60, "Calls on SRQs survive each failure of memory";
    endpoints, 60, "Calls on endpoints survive each failure of memory";
    transfers, 60, "Posts survive each failure of memory";
    connects, 60, "Connects survive each failure of memory";
    #[Address]
    service_points, 60, "Calls on service points survive each failure of memory";
    requests, 60, "Calls on connection requests survive each failure of memory";
    commands, 60, "Commands of io_uring survive each failure of memory";
    open_file, 60, "Opening the device file survives each failure of memory";
    kernel_workers, 60,
        "With failing memory in the kernel's workers, a connect succeeds or fails with an event";
    close_file, 60, "Closing the device file frees everything, whichever allocation fails";
}

fn table_is_complete(_context: &Context) -> Result<()> {
    let missing = rows::missing();
    ensure!(missing.is_empty(), "faults/rows has no row for {missing:?}");
    Ok(())
}

macro_rules! sweeps {
    ($($test:ident: $($prefix:literal),+;)*) => {
        $(fn $test(context: &Context) -> Result<()> {
            rows::sweep(context, &[$($prefix),+])
        })*

        /// Prefixes by which the tests select rows.
        #[cfg(test)]
        const PREFIXES: &[&str] = &[$($($prefix),+),*];
    };
}

sweeps! {
    adapters: "DEVICE_", "IA_", "PORT_";
    memory: "PZ_", "LMR_", "RMR_";
    evds: "EVD_";
    cnos: "CNO_";
    srqs: "SRQ_";
    endpoints: "EP_CREATE", "EP_FREE", "EP_QUERY", "EP_GET", "EP_MODIFY", "EP_RESET",
        "EP_SET", "EP_RECV";
    transfers: "EP_POST", "EP_SUBMIT";
    connects: "EP_CONNECT", "EP_COMMON", "EP_DUP", "EP_READY", "EP_DISCONNECT", "EP_PRIVATE";
    service_points: "PSP_", "RSP_", "CSP_";
    requests: "CR_";
    commands: "URING_";
}

fn open_file(context: &Context) -> Result<()> {
    let injector = Injector::new(context)?;
    for nth in 1.. {
        match injector.during(nth, Device::open)? {
            (Ok(_), None) => break,
            (Ok(_), Some(_)) => {}
            (Err(error), Some(Fault::Memory)) => {
                ensure!(error.errno() == Some(libc::ENOMEM), "failure {nth}: {error}");
            }
            (Err(error), Some(Fault::Copy)) => {
                ensure!(error.errno() == Some(libc::EFAULT), "failure {nth}: {error}");
            }
            (Err(error), None) => return Err(error.into()),
        }
    }
    Ok(())
}

fn close_file(context: &Context) -> Result<()> {
    let injector = Injector::new(context)?;
    let nothing = File::open("/dev/null")?;
    let before = objects()?;
    for nth in 1..1000 {
        let pair = Pair::new(context, Shape::default())?;
        pair.server.receive(0, 64, 1)?;
        let fd = pair.server.ia.device().as_raw_fd();
        // `dup2()` closes the device file. Every later use of the descriptor fails.
        // SAFETY: both descriptors are open.
        let close = || unsafe { libc::dup2(nothing.as_raw_fd(), fd) };
        let (outcome, fault) = injector.during(nth, close)?;
        ensure!(outcome == fd, "failure {nth}: {}", std::io::Error::last_os_error());
        drop(pair);
        let same = || Ok(objects()? == before);
        context
            .until("all objects are freed", same)
            .with_context(|| format!("failure {nth}: {fault:?}"))?;
        if fault.is_none() {
            println!("{} failures", nth - 1);
            return no_objects_left(context.settings.scale);
        }
    }
    bail!("the failures do not end")
}

#[cfg(test)]
mod unit {
    use super::{rows, PREFIXES};

    #[test]
    fn every_row_belongs_to_one_test() {
        for row in rows::all() {
            let of = PREFIXES.iter().filter(|prefix| row.name.starts_with(**prefix)).count();
            assert_eq!(of, 1, "{}", row.name);
        }
    }
}
