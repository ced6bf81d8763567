// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The tool that people use, as they use it.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use anyhow::{ensure, Result};
use std::process::Command;

tests! {
    demo, 240, "kdapltest's demo shows every event and finds every byte right";
    devices, 20, "kdapltest lists the devices, for people and for machines";
    refusals, 20, "kdapltest says what is wrong where nobody listens, and with bad arguments";
}

/// Runs it; says whether it succeeded, and what it printed on either way.
fn kdapltest(arguments: &[&str]) -> Result<(bool, String)> {
    let output = Command::new("kdapltest").args(arguments).output()?;
    let both = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&both).into_owned()))
}

fn demo(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("it shows one host");
    }
    let (device, iterations) = (context.client.device.as_str(), context.count(1000).max(50));
    let (ok, text) =
        kdapltest(&["demo", "--device", device, "--iterations", &iterations.to_string()])?;
    ensure!(ok, "it failed:\n{text}");
    for word in ["ESTABLISHED", "DISCONNECTED", "PASSED", "Context switches"] {
        ensure!(text.contains(word), "it says nothing of {word}:\n{text}");
    }
    Ok(())
}

fn devices(context: &Context) -> Result<()> {
    for arguments in [&["devices"][..], &["--json", "devices"]] {
        let (ok, text) = kdapltest(arguments)?;
        ensure!(ok && text.contains(&context.client.device), "{arguments:?}:\n{text}");
    }
    Ok(())
}

fn refusals(context: &Context) -> Result<()> {
    let address = context.server_address().to_string();
    let port = context.port().to_string();
    for (arguments, words) in [
        (&["ping", "-s", &address, "--port", &port, "-i", "1"][..], "nobody listens"),
        (&["ping", "-s", "nonsense"], "nonsense"),
        (&["ping", "--device", "no_such_device", "-s", &address], "no_such_device"),
        (&["no_such_command"], "no_such_command"),
    ] {
        let (ok, text) = kdapltest(arguments)?;
        ensure!(!ok && text.contains(words), "{arguments:?} is answered with:\n{text}");
    }
    Ok(())
}
