// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Runs `kdapltest` as its users do.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::machine::count_of;
use crate::plain::Plain;
use crate::repeat::unheard;
use crate::threads::Worker;
use anyhow::{ensure, Context as _, Result};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

tests! {
    #![Output]
    demo, 240, "kdapltest demo shows every event and finds every byte right";
    bandwidth, 120, "kdapltest bandwidth finds the right bytes in memory after its operations";
    sweep, 120,
        "kdapltest bandwidth measures each size and depth, over several connections and in both directions";
    histogram, 60, "kdapltest ping shows, prints and plots how its round trips are distributed";
    stream, 60, "kdapltest stream gets each message back once";
    devices, 20, "kdapltest lists the devices, as text and as JSON";
    schema, 60, "The output of kdapltest --json has the fields of its schema";
    refusals, 20, "kdapltest reports a missing listener and bad arguments";
    #[Address]
    server_by_name, 60, "kdapltest finds its server by name, at an address that the device can reach";
    #[Address]
    unknown_server, 60, "kdapltest names a server that is unknown, and one that the device cannot reach";
}

/// Runs `kdapltest`. Returns whether it succeeded, and its output on stdout and stderr.
fn kdapltest(arguments: &[&str]) -> Result<(bool, String)> {
    let output = Command::new("kdapltest").args(arguments).output()?;
    let both = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&both).into_owned()))
}

fn demo(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("the demo uses one host");
    }
    let device = context.client.device.as_str();
    let iterations = context.count(1000).max(50).to_string();
    let operations = context.count(200).max(20).to_string();
    let counts = ["--iterations", &iterations, "--operations", &operations];
    let (ok, text) = kdapltest(&[&["demo", "--device", device][..], &counts].concat())?;
    if !ok {
        unheard!("kdapltest failed:\n{text}");
    }
    for word in ["ESTABLISHED", "DISCONNECTED", "PASSED", "Context switches"] {
        ensure!(text.contains(word), "{word} is missing in the output:\n{text}");
    }
    Ok(())
}

/// Runs a client command against a server on the same host, and checks that both succeed. Returns
/// the output of the client and of the server.
fn client_and_server(
    context: &Context,
    serve: &[&str],
    client: &[&str],
) -> Result<(String, String)> {
    let (device, port) = (context.client.device.as_str(), context.port().to_string());
    let place = ["--device", device, "--port", &port];
    let mut server = Command::new("kdapltest")
        .args(["--json", "server"])
        .args(serve)
        .args(place)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = BufReader::new(server.stdout.take().context("no pipe")?);
    let mut served = String::new();
    output.read_line(&mut served)?;
    // A server whose pipe is full serves nobody.
    let reader = Worker::start(move || {
        let mut rest = String::new();
        output.read_to_string(&mut rest).map(|_| rest)
    })?;
    let (ok, text) = kdapltest(&[client, &place[..]].concat())?;
    if !ok {
        // The server would wait for further clients forever.
        server.kill()?;
    }
    served += &reader.join()??;
    if !server.wait()?.success() || !ok {
        unheard!("{}: {text}\n{served}", client.join(" "));
    }
    Ok((text, served))
}

fn bandwidth(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("the test needs a server on the same host");
    }
    // Fewer messages than receives, and many times as many. No size is a multiple of another.
    for (size, iterations) in [("1", "200"), ("4099", "3"), ("65537", "40")] {
        let client = ["bandwidth", "--size", size, "--iterations", iterations, "--depth", "4"];
        client_and_server(context, &["--clients", "3"], &client)?;
    }
    Ok(())
}

/// Reads a plot and removes it. Checks that it has each of these texts.
fn plotted(file: &str, texts: &[&str]) -> Result<String> {
    let svg = fs::read_to_string(file)?;
    fs::remove_file(file)?;
    let missing = texts.iter().find(|text| !svg.contains(**text));
    ensure!(missing.is_none() && svg.ends_with("</svg>\n"), "{missing:?} is missing: {svg}");
    Ok(svg)
}

fn sweep(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("the test needs a server on the same host");
    }
    let file = "/tmp/sweep.svg";
    let what = ["bandwidth", "--json", "-o", "send", "-o", "duplex", "-n", "20", "--svg", file];
    let client = [&what[..], &["-s", "100..200,4096", "-t", "1,8", "-q", "2"]].concat();
    let (text, served) = client_and_server(context, &["--clients", "12"], &client)?;
    let outcomes: Vec<Value> = serde_json::from_str(text.trim())?;
    let measured: Vec<_> = outcomes
        .iter()
        .map(|one| ["operation", "size", "depth", "iterations"].map(|field| one[field].clone()))
        .collect();
    let mut expected: Vec<[Value; 4]> = Vec::new();
    // Two connections of 20 operations each, in one direction and in two.
    for (operation, done) in [("send", 40), ("duplex", 80)] {
        for size in [100, 200, 4096] {
            let of = |depth: u32| [operation.into(), size.into(), depth.into(), done.into()];
            expected.extend([1, 8].map(of));
        }
    }
    ensure!(measured == expected, "{measured:?} are not {expected:?}");
    for one in &outcomes {
        let (mib, gbit) = (one["mib_per_second"].as_f64(), one["gbit_per_second"].as_f64());
        let ratio = mib.zip(gbit).map(|(mib, gbit)| mib * 8.0 * 1_048_576.0 / 1e9 / gbit);
        ensure!(ratio.is_some_and(|ratio| (ratio - 1.0).abs() < 1e-6), "{one}");
    }
    // The server has seen each connection; the first line says where it listens.
    ensure!(served.lines().count() == 1 + 6 * 2 + 6 * 4, "{served}");
    plotted(file, &["MiB/s", "bytes", "send, 1 in flight", "duplex, 8 in flight"]).map(drop)
}

fn histogram(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("the test needs a server on the same host");
    }
    let file = "/tmp/ping.svg";
    let ping = ["ping", "-n", "300", "--histogram", "--svg", file];
    let (text, _) = client_and_server(context, &["--once"], &ping)?;
    ensure!(text.contains('█') && text.contains("100.00 %"), "no histogram:\n{text}");
    plotted(file, &["microseconds", "Round trips of 64 bytes"])?;
    let (text, _) = client_and_server(context, &["--once"], &["ping", "--json", "-n", "300"])?;
    let outcome: Value = serde_json::from_str(text.trim())?;
    let buckets = outcome["histogram"].as_array().context("no histogram")?;
    let counts = buckets.iter().filter_map(|bucket| bucket["count"].as_u64());
    ensure!(counts.sum::<u64>() == 300, "{text}");
    let longest = buckets.last().and_then(|bucket| bucket["up_to_us"].as_f64());
    let max = outcome["round_trip_us"]["max"].as_f64();
    ensure!(longest.zip(max).is_some_and(|(up_to, max)| up_to >= max * 0.999), "{text}");
    Ok(())
}

fn stream(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("the test needs a server on the same host");
    }
    // One message at a time, and several times as many as the server echoes without an event.
    for (depth, iterations) in [("1", "50"), ("128", "1000")] {
        let client = ["stream", "--size", "9", "--iterations", iterations, "--depth", depth];
        let (text, served) = client_and_server(context, &["--once"], &client)?;
        ensure!(served.contains(&format!("\"messages\":{iterations},")), "{text}\n{served}");
    }
    Ok(())
}

fn devices(context: &Context) -> Result<()> {
    for arguments in [&["devices"][..], &["--json", "devices"]] {
        let (ok, text) = kdapltest(arguments)?;
        ensure!(ok && text.contains(&context.client.device), "{arguments:?}:\n{text}");
        ensure!(text.contains(&context.client.address.to_string()), "{arguments:?}:\n{text}");
    }
    // Each address of each port, as an IA is opened by it.
    let listed = libkdapl::devices()?;
    let ours = listed.iter().find(|found| found.name == context.client.device);
    let ports = &ours.context("our device is not listed")?.ports;
    ensure!(!ports.is_empty(), "no ports");
    let (text, json) = (kdapltest(&["devices"])?.1, kdapltest(&["--json", "devices"])?.1);
    for port in ports {
        let number = format!("\"port\":{}", port.number);
        ensure!(json.contains(&number), "{number} is missing:\n{json}");
        for at in &port.addresses {
            let (written, netdev) = (format!("\"name\":\"{at}\""), &at.netdev);
            ensure!(json.contains(&written) && json.contains(netdev), "{written}:\n{json}");
            ensure!(text.contains(&at.to_string()) && text.contains(netdev), "{at}:\n{text}");
        }
    }
    Ok(())
}

/// Measurements that last a moment.
pub const SHORT: [&[&str]; 5] = [
    &["ping", "-n", "10"],
    &["bandwidth", "-n", "10"],
    &["connect", "-n", "5"],
    &["stream", "-n", "10"],
    &["transaction", "-n", "5"],
];

fn schema(context: &Context) -> Result<()> {
    if context.client.device != context.server.device {
        return skip("the test needs a server on the same host");
    }
    let schemas: Value = serde_json::from_str(&kdapltest(&["schema"])?.1)?;
    for client in SHORT {
        // `bandwidth` is three clients, one after the other.
        let clients = if client[0] == "bandwidth" { "3" } else { "1" };
        let client = [client, &["--json"]].concat();
        let (text, served) = client_and_server(context, &["--clients", clients], &client)?;
        fits(&text, &schemas[client[0]]).context(client[0])?;
        let mut lines = served.lines();
        fits(lines.next().context("no line")?, &schemas["server: first line"])?;
        lines.try_for_each(|line| fits(line, &schemas["server: line of each client"]))?;
    }
    let _open = context.open()?;
    fits(&kdapltest(&["stat", "--json"])?.1, &schemas["stat"]).context("stat")?;
    fits(&kdapltest(&["devices", "--json"])?.1, &schemas["devices"]).context("devices")
}

/// Checks that a value, or each of a list, has the fields of its schema and no other.
fn fits(text: &str, schema: &Value) -> Result<()> {
    let value: Value = serde_json::from_str(text.trim()).context("no JSON")?;
    let values = value.as_array().cloned().unwrap_or_else(|| vec![value]);
    ensure!(!values.is_empty(), "nothing was printed");
    // The schema of a list has that of an element among its definitions.
    let name = schema["items"]["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let schema = name.map_or(schema, |name| &schema["$defs"][name]);
    let fields = schema["properties"].as_object().context("the schema has no fields")?;
    for value in &values {
        let value = value.as_object().context("no object")?;
        let unknown = value.keys().find(|key| !fields.contains_key(*key));
        let missing = fields.keys().find(|key| !value.contains_key(*key));
        ensure!(unknown.is_none() && missing.is_none(), "{unknown:?}, {missing:?}: {text}");
    }
    Ok(())
}

fn refusals(context: &Context) -> Result<()> {
    let address = context.server_address().to_string();
    let (device, port) = (context.client.device.as_str(), context.port().to_string());
    let call = ["ping", "--device", device, &address, "--port", &port, "-i", "1"];
    let plot = [&call[..], &["--svg", "/nonexistent/plot.svg"]].concat();
    for (arguments, words) in [
        (&call[..], "nobody listens"),
        (&["ping", "nonsense"], "nonsense"),
        (&["ping", "--device", "no_such_device", &address], "no_such_device"),
        (&["no_such_command"], "no_such_command"),
        (&["bandwidth", "-s", "64..32"], "64..32"),
        (&["bandwidth", "-t", "4096"], "1..=1024"),
        (&["bandwidth", "-a", "-s", "64"], "--all"),
        (&plot, "/nonexistent/plot.svg"),
    ] {
        let (ok, text) = kdapltest(arguments)?;
        ensure!(!ok && text.contains(words), "{arguments:?} has the output:\n{text}");
    }
    Ok(())
}

/// Lines that a test adds to `/etc/hosts`. They are removed with this value.
struct Hosts(String);

impl Hosts {
    const FILE: &'static str = "/etc/hosts";

    fn add(lines: &[(&str, &str)]) -> Result<Self> {
        let before = fs::read_to_string(Self::FILE).unwrap_or_default();
        let lines: Vec<_> = lines.iter().map(|(ip, name)| format!("{ip} {name}")).collect();
        fs::write(Self::FILE, format!("{before}{}\n", lines.join("\n")))?;
        Ok(Self(before))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = fs::write(Self::FILE, &self.0);
    }
}

/// Returns an address of the family that the devices of the test do not have.
fn of_other_family(context: &Context) -> &'static str {
    match context.server_address().is_ipv6() {
        true => "192.0.2.7",
        false => "2001:db8::7",
    }
}

fn server_by_name(context: &Context) -> Result<()> {
    let address = context.server_address().to_string();
    let other = of_other_family(context);
    // The other family comes first and last.
    let lines = [
        (other, "kdapl-two"),
        (address.as_str(), "kdapl-two"),
        (address.as_str(), "kdapl-one"),
        (other, "kdapl-one"),
    ];
    let _hosts = Hosts::add(&lines)?;
    for name in ["kdapl-one", "kdapl-two"] {
        let port = context.port().to_string();
        let serve = ["server", "--once", "--device", &context.server.device, "--port", &port];
        let server = Plain::start(&context.server, "kdapltest", &serve)?;
        context.until("the server listens", || Ok(count_of("psp")? > 0))?;
        let mut client = Command::new("kdapltest");
        let place = ["--device", &context.client.device, "--port", &port, "--iterations", "10"];
        client.args(["ping", "--server", name]).args(place);
        let output = context.client.inside(|| client.output())??;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if !output.status.success() {
            unheard!("kdapltest ping {name}: {text}");
        }
        ensure!(text.contains(&address), "{name} is not {address}:\n{text}");
        let (status, said) = server.ends()?;
        ensure!(status.success(), "the server ended with {status}:\n{said}");
    }
    Ok(())
}

fn unknown_server(context: &Context) -> Result<()> {
    let other = of_other_family(context);
    let second = format!("{other}7");
    let _hosts = Hosts::add(&[(other, "kdapl-far"), (&second, "kdapl-far")])?;
    let far = format!("the device has no address that leads to {other}");
    for (name, says) in [("no.such.host.invalid", "no.such.host.invalid"), ("kdapl-far", &far)] {
        let ping = ["ping", name, "--device", &context.client.device];
        let (good, text) = context.client.inside(|| kdapltest(&ping))??;
        let whole = text.contains(says) && text.contains(&format!("host '{name}'"));
        ensure!(!good && whole, "'{says}' is missing:\n{text}");
    }
    Ok(())
}
