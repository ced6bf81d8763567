// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Checks the tracepoints of endpoints, and their last operations in debugfs.

use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, done, same};
use crate::harness::skip;
use crate::trace::{Recording, Told};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, DtoOperation, Ep};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests! {
    dto_tracepoints, 60, "Tracepoints report every post and completion, with queue pair, slot, cookie and length";
    state_tracepoints, 60, "Tracepoints report every change of state of a connection, in order and with its cause";
    off_by_default, 20, "An endpoint records no operations by default";
    entries_parameter, 20, "The number of recorded operations is limited to 65536 and rounded up, and anything else is refused";
    ep_file_shows_operations, 60, "An endpoint that records operations shows the last ones and the outstanding DTOs";
    ep_file_lifetime, 60, "The file of an endpoint exists from its creation until it is freed, even with its IA";
    ep_file_read_during_traffic, 240, "The file of an endpoint can be read during traffic and while the endpoint is freed";
}

const FOLDER: &str = "/sys/kernel/debug/kdapl";
const ENTRIES: &str = "/sys/kernel/debug/kdapl/trace_entries";

/// Sets the number of recorded operations, and resets it when dropped.
pub(super) struct RecordedOperations;

impl RecordedOperations {
    pub(super) fn new(entries: u32) -> Result<Self> {
        if !Path::new(FOLDER).exists() {
            return skip("this kernel has no debugfs");
        }
        fs::write(ENTRIES, format!("{entries}\n"))?;
        Ok(Self)
    }
}

impl Drop for RecordedOperations {
    fn drop(&mut self) {
        let _ = fs::write(ENTRIES, "0");
    }
}

/// Returns the path of an endpoint's file in debugfs.
pub fn file(ep: &Ep) -> PathBuf {
    Path::new(FOLDER).join(format!("ep-{:x}", ep.handle().0))
}

fn files() -> Result<Vec<String>> {
    let names = fs::read_dir(FOLDER)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
    let mut names: Vec<_> = names.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    names.retain(|name| name.starts_with("ep-"));
    Ok(names)
}

/// The content of an endpoint's file.
struct EpFile {
    summary: Told,
    receives: String,
    requests: String,
    outstanding: Vec<Told>,
    /// Number of all operations so far.
    made: usize,
    operations: Vec<Told>,
}

/// Splits a line that begins with a time in brackets.
fn stamped(line: &str) -> Result<(Duration, &str)> {
    let (time, rest) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
        .with_context(|| format!("no time: {line}"))?;
    let (seconds, nanoseconds) = time.split_once('.').context("no dot in the time")?;
    ensure!(nanoseconds.len() == 9, "{time}");
    let time =
        (seconds.parse().ok().zip(nanoseconds.parse().ok())).with_context(|| time.to_string())?;
    Ok((Duration::new(time.0, time.1), rest))
}

/// Parses a line that begins with a time in brackets.
fn timed(line: &str) -> Result<Told> {
    let (_, rest) = stamped(line)?;
    Told::parse(rest).with_context(|| format!("strange: {line}"))
}

/// Returns the recorded operations of an endpoint that begin with a text, with the time of each.
pub(super) fn operations(ep: &Ep, beginning: &str) -> Result<Vec<(Duration, String)>> {
    let text = fs::read_to_string(file(ep))?;
    let (_, operations) = text.split_once("\nthe last ").context("the file has no operations")?;
    let stamped = operations.lines().skip(1).map(stamped);
    let all = stamped.map(|line| line.map(|(time, rest)| (time, rest.to_string())));
    all.filter(|line| line.as_ref().map_or(true, |(_, rest)| rest.starts_with(beginning))).collect()
}

impl EpFile {
    fn of(ep: &Ep) -> Result<Self> {
        let file = file(ep);
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Self::parse(&text).with_context(|| text.clone())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let mut next = || lines.next().context("the text ends early");
        let summary = Told::parse(&format!("summary {}", next()?)).context("summary")?;
        let count = |line: &str, what: &str| {
            let count = line.strip_prefix(what).map(String::from);
            count.with_context(|| format!("not '{what}': {line}"))
        };
        let receives = count(next()?, "receives outstanding: ")?;
        let requests = count(next()?, "requests outstanding: ")?;
        same("the word", timed(next()?)?.event.as_str(), "now")?;
        same("a line", next()?, "")?;
        same("a line", next()?, "outstanding, by the time of the post:")?;
        let mut outstanding = Vec::new();
        loop {
            match next()? {
                "" => break,
                line => outstanding.push(timed(&line.replacen("] ", "] posted ", 1))?),
            }
        }
        let line = next()?;
        let counts = line.strip_prefix("the last ").and_then(|rest| rest.strip_suffix(':'));
        let (_, made) =
            counts.and_then(|rest| rest.split_once(" of ")).context("the line has no counts")?;
        let operations = lines.map(timed).collect::<Result<_>>()?;
        let made = made.parse()?;
        Ok(Self { summary, receives, requests, outstanding, made, operations })
    }
}

/// Returns the trace events of one endpoint.
pub(super) fn of_one(told: &[Told], ep: &Ep) -> Vec<Told> {
    let handle = format!("{}", ep.handle());
    told.iter().filter(|told| told.get("ep") == handle).cloned().collect()
}

const CLIENT_SENDS: usize = 3;

/// Sends a few messages from client to server. The last one is never waited for.
fn traffic(context: &Context, pair: &Pair) -> Result<()> {
    for cookie in 0..CLIENT_SENDS as u64 {
        pair.server.receive(0, 64, 0x51 + cookie)?;
        pair.client.send(0, 48, 0x91 + cookie)?;
        done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 48, 0x51 + cookie)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 48, 0x91 + cookie)?;
    }
    Ok(())
}

/// Returns the trace events of [`traffic`]: posts on slot 0 and their completions.
fn expected(qp: u32, operation: &str, cookie: usize, posted: usize) -> Vec<String> {
    (cookie..cookie + CLIENT_SENDS)
        .flat_map(|cookie| {
            [
                format!("kdapl_ep_post {qp} {operation}  0 {cookie:#x} {posted}"),
                format!("kdapl_ep_complete {qp} {operation} SUCCESS 0 {cookie:#x} 48"),
            ]
        })
        .collect()
}

fn dto_tracepoints(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let recording = Recording::of_endpoints()?;
    traffic(context, &pair)?;
    pair.server.receive(0, 64, 7)?;
    pair.client.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&pair.server.connect)?, ConnectionEvent::Disconnected)?;
    let told = recording.told()?;
    let dtos = |ep: &Ep| -> Vec<String> {
        let told = of_one(&told, ep).into_iter().filter(|told| told.event != "kdapl_ep_state");
        let fields = ["qp", "operation", "status", "slot", "cookie", "length"];
        told.map(|told| format!("{} {}", told.event, told.values(&fields))).collect()
    };
    let qp = |ep: &Ep| -> Result<u32> { Ok(ep.query()?.raw.qp_num) };
    let (client, server) = (&pair.client.ep, &pair.server.ep);
    same("trace events of the client", dtos(client), expected(qp(client)?, "SEND", 0x91, 48))?;
    let qp = qp(server)?;
    let mut wanted = expected(qp, "RECEIVE", 0x51, 64);
    wanted.push(format!("kdapl_ep_post {qp} RECEIVE  0 0x7 64"));
    wanted.push(format!("kdapl_ep_complete {qp} RECEIVE FLUSHED 0 0x7 0"));
    same("trace events of the server", dtos(server), wanted)
}

/// Returns the changes of state as `cause: to`. Each begins with the state of the last.
fn changes(told: &[Told], kind: &str) -> Result<Vec<String>> {
    let mut state = "UNCONNECTED".to_string();
    let mut changes = Vec::new();
    for told in told.iter().filter(|told| told.event == kind) {
        same("a change begins at", told.get("from"), &state)?;
        state = told.get("to").into();
        changes.push(format!("{}: {state}", told.get("cause")));
    }
    Ok(changes)
}

const CLIENT_CHANGES: [&str; 5] = [
    "CONNECT: ACTIVE_CONNECTION_PENDING",
    "ESTABLISHED: CONNECTED",
    "DISCONNECT_GRACEFUL: DISCONNECT_PENDING_REQUESTS",
    "REQUESTS_IDLE: DISCONNECT_PENDING_FLUSH",
    "IDLE: DISCONNECTED",
];

const SERVER_CHANGES: [&str; 4] = [
    "ACCEPT: COMPLETION_PENDING",
    "ESTABLISHED: CONNECTED",
    "PEER_DISCONNECTED: DISCONNECT_PENDING_FLUSH",
    "IDLE: DISCONNECTED",
];

/// Makes a connection, from the first connect to the disconnect.
fn live(context: &Context) -> Result<Pair> {
    let pair = Pair::new(context, Shape::default())?;
    traffic(context, &pair)?;
    pair.client.ep.disconnect(Close::Graceful)?;
    for end in [&pair.client, &pair.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
    }
    Ok(pair)
}

fn state_tracepoints(context: &Context) -> Result<()> {
    let recording = Recording::of_endpoints()?;
    let pair = live(context)?;
    for end in [&pair.client, &pair.server] {
        end.ep.free()?;
    }
    let told = recording.told()?;
    let all = |known: &[&str]| -> Vec<String> {
        known.iter().copied().chain(["FREE: FREED"]).map(String::from).collect()
    };
    let of = |end: &End| changes(&of_one(&told, &end.ep), "kdapl_ep_state");
    same("the client's changes", of(&pair.client)?, all(&CLIENT_CHANGES))?;
    same("the server's changes", of(&pair.server)?, all(&SERVER_CHANGES))
}

fn off_by_default(context: &Context) -> Result<()> {
    if !Path::new(FOLDER).exists() {
        return skip("this kernel has no debugfs");
    }
    same("entries", fs::read_to_string(ENTRIES)?.as_str(), "0\n")?;
    let pair = Pair::new(context, Shape::default())?;
    traffic(context, &pair)?;
    same("files", files()?, Vec::new())
}

fn entries_parameter(_: &Context) -> Result<()> {
    let _asked = RecordedOperations::new(4)?;
    for text in ["", "x", "-1", "1 2", "0x10", "65537", "4294967296", "1.5", &"1".repeat(100)] {
        // An empty write does not reach the kernel.
        let error = match fs::write(ENTRIES, format!("{text}\n")) {
            Ok(()) => bail!("'{text}' was accepted"),
            Err(error) => error,
        };
        same(text, error.raw_os_error(), Some(libc::EINVAL))?;
        same(text, fs::read_to_string(ENTRIES)?.as_str(), "4\n")?;
    }
    for (text, taken) in [("1", 1), ("100", 128), (" 33 \n", 64), ("65536\n", 65_536), ("0", 0)] {
        fs::write(ENTRIES, text)?;
        same(text, fs::read_to_string(ENTRIES)?, format!("{taken}\n"))?;
    }
    Ok(())
}

fn ep_file_shows_operations(context: &Context) -> Result<()> {
    let _asked = RecordedOperations::new(5)?;
    let pair = Pair::new(context, Shape::default())?;
    let ep = &pair.server.ep;
    // This receive stays outstanding: the messages find the receives before it.
    pair.server.receive(0, 64, 0x50)?;
    pair.server.receive(0, 32, 0xbad)?;
    pair.client.send(0, 48, 1)?;
    done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 48, 0x50)?;
    for cookie in 1..10 {
        pair.client.receive(0, 16, cookie)?;
        pair.server.send(0, 16, cookie)?;
        done(&context.next(&pair.server.request)?, DtoOperation::Send, 16, cookie)?;
    }
    let shown = EpFile::of(ep)?;
    let summary = ["ep", "device", "qp", "state"];
    same(
        "the summary",
        shown.summary.values(&summary),
        format!("{} {} {} CONNECTED", ep.handle(), context.server.device, ep.query()?.raw.qp_num),
    )?;
    same("receives", shown.receives.as_str(), "1 of 16, 0 of them wait for a connection")?;
    same("requests", shown.requests.as_str(), "0 of 16")?;
    let fields = ["operation", "slot", "cookie", "length"];
    let outstanding: Vec<_> = shown.outstanding.iter().map(|told| told.values(&fields)).collect();
    same("outstanding", outstanding, vec!["RECEIVE 1 0xbad 32".to_string()])?;
    // Two changes of state, two receives with one completion, nine sends with nine completions.
    same("operations so far", shown.made, 2 + 3 + 18)?;
    let operations: Vec<_> =
        shown.operations.iter().map(|told| told.values(&["status", "cookie"])).collect();
    let last: Vec<_> =
        (6..10).flat_map(|n| [format!(" {n:#x}"), format!("SUCCESS {n:#x}")]).collect();
    same("the last operations", operations, last)
}

fn ep_file_lifetime(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let before = End::new(&ia, Shape::default())?;
    let asked = RecordedOperations::new(64)?;
    let pair = live(context)?;
    let known = |known: &[&str]| known.iter().copied().map(String::from).collect::<Vec<_>>();
    let of = |end: &End| changes(&EpFile::of(&end.ep)?.operations, "state");
    same("the client's changes", of(&pair.client)?, known(&CLIENT_CHANGES))?;
    same("the server's changes", of(&pair.server)?, known(&SERVER_CHANGES))?;
    drop(asked);
    // New endpoints record no operations. Existing ones do.
    let after = before.another_ep()?;
    for (what, ep) in [("before", &before.ep), ("after", &after)] {
        ensure!(!file(ep).exists(), "an endpoint that was created {what} has a file");
    }
    ensure!(file(&pair.server.ep).exists(), "the file was removed too early");
    let gone = file(&pair.client.ep);
    pair.client.ep.free()?;
    ensure!(!gone.exists(), "the file still exists");
    same("files", files()?.len(), 1)?;
    let Pair { server, .. } = pair;
    server.ia.close(Close::Abrupt)?;
    same("files", files()?, Vec::new())
}

/// Reads the file of every endpoint until stopped. Returns the number of reads.
fn read_all(stop: &AtomicBool) -> Result<u64> {
    let mut reads = 0;
    while !stop.load(Ordering::Acquire) {
        for name in files()? {
            match fs::read_to_string(Path::new(FOLDER).join(&name)) {
                Ok(text) => {
                    EpFile::parse(&text).with_context(|| text.clone())?;
                    reads += 1;
                }
                // The endpoint was freed before its file was opened, or before it was read.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.raw_os_error() == Some(libc::EIO) => {}
                Err(error) => return Err(error).context(name),
            }
        }
    }
    Ok(reads)
}

fn ep_file_read_during_traffic(context: &Context) -> Result<()> {
    let _asked = RecordedOperations::new(32)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| read_all(&stop)));
        let busy = || -> Result<()> {
            for round in 0..context.count(60).max(20) {
                let pair = Pair::new(context, Shape::default())?;
                for _ in 0..5 {
                    traffic(context, &pair)?;
                }
                if round % 2 == 0 {
                    pair.server.receive(0, 64, round)?;
                    pair.client.ep.free()?;
                }
            }
            Ok(())
        };
        let outcome = busy();
        stop.store(true, Ordering::Release);
        for reader in readers {
            let reads = reader.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??;
            ensure!(reads > 0, "no file was read meanwhile");
        }
        outcome
    })
}
