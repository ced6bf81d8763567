// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Table of all calls of the interface, each with its stage.

mod commands;
mod connections;
mod objects;

use super::sweep::Sweeper;
use crate::context::Context;
use crate::tests::close_races::Race;
use anyhow::Result;
use libkdapl::raw::call;

/// A call. A call may have several rows, for different cases.
pub struct Row {
    pub name: &'static str,
    pub request: u32,
    pub sweep: fn(&Sweeper<'_>, &str) -> Result<()>,
    pub close_beside: fn(&Race<'_>, &str) -> Result<()>,
}

/// Lists rows: the call, the case if there are several, the stage, the invocation, and the check
/// after a success.
macro_rules! rows {
    (@after) => { |_, _, _, _| Ok(()) };
    (@after $after:expr) => { $after };
    ($($call:ident $($case:literal)?: $stage:expr, $invoke:expr $(, $after:expr)?;)*) => {
        &[$(crate::tests::faults::rows::Row {
            name: concat!(stringify!($call) $(, " ", $case)?),
            request: libkdapl::raw::call::$call.request(),
            sweep: |sweeper, name| sweeper.sweep(name, $stage, $invoke, rows!(@after $($after)?)),
            close_beside: |race, name| race.against(name, $stage, $invoke),
        },)*]
    };
}
use rows;

pub fn all() -> impl Iterator<Item = &'static Row> {
    objects::ROWS.iter().chain(connections::ROWS).chain(commands::ROWS)
}

/// Returns the calls of the interface without a row.
pub fn missing() -> Vec<&'static str> {
    let tried = |request| all().any(|row| row.request == request);
    let all = call::ALL.iter().chain(call::COMMANDS);
    all.filter(|(_, request, _)| !tried(*request)).map(|(name, ..)| *name).collect()
}

/// Sweeps the rows whose names begin with one of `prefixes`.
pub fn sweep(context: &Context, prefixes: &[&str]) -> Result<()> {
    let sweeper = Sweeper::new(context)?;
    let chosen = |row: &&Row| prefixes.iter().any(|prefix| row.name.starts_with(prefix));
    all().filter(chosen).try_for_each(|row| (row.sweep)(&sweeper, row.name))
}
