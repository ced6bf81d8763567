// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The tool that people use, as they use it.

use super::tests;
use crate::again::unheard;
use crate::context::Context;
use crate::harness::skip;
use anyhow::{ensure, Context as _, Result};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

tests! {
    demo, 240, "kdapltest's demo shows every event and finds every byte right";
    bandwidth, 120, "kdapltest's bandwidth finds right what its operations left in memory";
    stream, 60, "kdapltest's stream finds each message back once";
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
    let device = context.client.device.as_str();
    let iterations = context.count(1000).max(50).to_string();
    let operations = context.count(200).max(20).to_string();
    let counts = ["--iterations", &iterations, "--operations", &operations];
    let (ok, text) = kdapltest(&[&["demo", "--device", device][..], &counts].concat())?;
    if !ok {
        unheard!("it failed:\n{text}");
    }
    for word in ["ESTABLISHED", "DISCONNECTED", "PASSED", "Context switches"] {
        ensure!(text.contains(word), "it says nothing of {word}:\n{text}");
    }
    Ok(())
}

fn bandwidth(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("it needs a server on the same host");
    }
    let (device, port) = (context.client.device.as_str(), context.port().to_string());
    // Fewer messages than there are receives, and many times as many; sizes that are no multiple of anything.
    for (size, iterations) in [("1", "200"), ("4099", "3"), ("65537", "40")] {
        let place = ["--device", device, "--port", &port];
        let mut server = Command::new("kdapltest")
            .args(["--json", "server", "--clients", "3"])
            .args(place)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut output = BufReader::new(server.stdout.take().context("no pipe")?);
        let mut served = String::new();
        output.read_line(&mut served)?;
        let what = ["bandwidth", "--size", size, "--iterations", iterations, "--depth", "4"];
        let (ok, text) = kdapltest(&[&what[..], &place[..]].concat())?;
        if !ok {
            // It would wait for the rest for ever.
            server.kill()?;
        }
        output.read_to_string(&mut served)?;
        if !server.wait()?.success() || !ok {
            unheard!("{size} bytes: {text}\n{served}");
        }
    }
    Ok(())
}

fn stream(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("it needs a server on the same host");
    }
    let (device, port) = (context.client.device.as_str(), context.port().to_string());
    let place = ["--device", device, "--port", &port];
    // One message at a time, and several times as many in flight as the server has answers without an event.
    for (depth, iterations) in [("1", "50"), ("128", "1000")] {
        let mut server = Command::new("kdapltest")
            .args(["--json", "server", "--once"])
            .args(place)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut output = BufReader::new(server.stdout.take().context("no pipe")?);
        let mut served = String::new();
        output.read_line(&mut served)?;
        let what = ["stream", "--size", "9", "--iterations", iterations, "--depth", depth];
        let (ok, text) = kdapltest(&[&what[..], &place[..]].concat())?;
        if !ok {
            // It would wait for the rest for ever.
            server.kill()?;
        }
        output.read_to_string(&mut served)?;
        if !server.wait()?.success() || !ok {
            unheard!("{depth} in flight: {text}\n{served}");
        }
        ensure!(served.contains(&format!("\"messages\":{iterations},")), "{text}\n{served}");
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
    let (device, port) = (context.client.device.as_str(), context.port().to_string());
    let call = ["ping", "--device", device, "-s", &address, "--port", &port, "-i", "1"];
    for (arguments, words) in [
        (&call[..], "nobody listens"),
        (&["ping", "-s", "nonsense"], "nonsense"),
        (&["ping", "--device", "no_such_device", "-s", &address], "no_such_device"),
        (&["no_such_command"], "no_such_command"),
    ] {
        let (ok, text) = kdapltest(arguments)?;
        ensure!(!ok && text.contains(words), "{arguments:?} is answered with:\n{text}");
    }
    Ok(())
}
