// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-bmi schema`: the JSON Schema of what each command prints with `--json`. It is derived
//! from the types that are printed.

use crate::{bandwidth, pattern, ping, serve};
use anyhow::Result;
use schemars::{schema_for, Schema};
use std::collections::BTreeMap;
use toolkit::output;

/// Prints an object with a schema for each command, and one for an error of any of them.
pub fn run() -> Result<()> {
    output::say(serde_json::to_string_pretty(&schemas())?)
}

fn schemas() -> BTreeMap<&'static str, Schema> {
    BTreeMap::from([
        ("serve: first line", schema_for!(serve::Listening)),
        ("serve: line of each client", schema_for!(serve::Served)),
        ("ping", schema_for!(ping::Outcome)),
        ("bandwidth", schema_for!(Vec<bandwidth::Outcome>)),
        ("pattern", schema_for!(pattern::Outcome)),
        ("error", schema_for!(toolkit::status::Report)),
    ])
}
