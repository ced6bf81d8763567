// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest schema`: the JSON Schema of what each command prints with `--json`. It is derived
//! from the types that are printed.

use crate::{bandwidth, connect, demo, devices, ping, server, stat, stream, transaction};
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
        ("devices", schema_for!(Vec<devices::Device>)),
        ("stat", schema_for!(Vec<stat::Record>)),
        ("server: first line", schema_for!(server::Listening)),
        ("server: line of each client", schema_for!(server::Served)),
        ("ping", schema_for!(ping::Outcome)),
        ("bandwidth", schema_for!(Vec<bandwidth::Outcome>)),
        ("connect", schema_for!(connect::Outcome)),
        ("stream", schema_for!(stream::Outcome)),
        ("transaction", schema_for!(transaction::Outcome)),
        ("demo", schema_for!(demo::Outcome)),
        ("error", schema_for!(toolkit::status::Report)),
    ])
}
