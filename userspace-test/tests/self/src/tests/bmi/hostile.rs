// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Peers that speak `kdapl` and not BMI: anything in private data and in messages.

use super::super::connect::random;
use super::super::tests;
use super::{long, transfer, Side, Sides};
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::same;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{CompletionFlags, ConnectionEvent, Event};
use libkdapl_bmi::{Failure, Options};

tests! {
    #[Transport]
    private_data, 60, "A BMI server refuses requests with malformed private data, and serves on";
    #[Transport]
    other_version, 60, "A BMI client says that its peer has another version of the protocol";
    #[Transport]
    messages, 120, "A BMI server ends the connection of a peer with malformed messages, and no other";
}

/// Private data of a peer whose messages may be long.
pub fn hello() -> Vec<u8> {
    let mut bytes = b"KBMI".to_vec();
    bytes.extend([1, 48, 1, 0]);
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(16384_u32.to_le_bytes());
    bytes.extend(16_u16.to_le_bytes());
    bytes.extend(8_u16.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(7_u64.to_le_bytes());
    bytes.extend([0; 16]);
    bytes
}

/// Connects to a server. Returns the event, and the end, which has eight receives.
pub fn connect(context: &Context, address: &str, hello: &[u8]) -> Result<(ConnectionEvent, End)> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    for slot in 0..8 {
        end.ep.post_recv(&[end.lmr.segment(slot * 256, 256)], 0, CompletionFlags::default())?;
    }
    let port: u16 = address.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0);
    end.ep.connect(context.server_address(), port.into(), Some(context.patience()), hello)?;
    match context.next(&end.connect)? {
        Event::Connection { event, .. } => Ok((event, end)),
        other => bail!("{other}"),
    }
}

fn private_data(context: &Context) -> Result<()> {
    let sides = Sides::open(context, &Options::default())?;
    let back = sides.greet()?;
    rejects_private_data(context, &sides.server.bmi.address().unwrap_or_default(), || {
        transfer(context, (&sides.client, &sides.peer), (&sides.server, &back), 1000)
    })
}

/// Checks that a server refuses requests with malformed private data, and works then.
pub fn rejects_private_data(
    context: &Context,
    address: &str,
    works: impl Fn() -> Result<()>,
) -> Result<()> {
    context.rejects_arrive()?;
    let mut other_version = hello();
    other_version[4] = 2;
    let mut no_window = hello();
    no_window[16..18].fill(0);
    let mut small = hello();
    small[12..16].copy_from_slice(&10_u32.to_le_bytes());
    let mut unknown_rail = hello();
    unknown_rail[6..8].copy_from_slice(&[4, 3]);
    let cases = [
        vec![],
        hello()[..12].to_vec(),
        random(context, 48),
        other_version,
        no_window,
        small,
        unknown_rail,
    ];
    for private_data in cases {
        let (event, end) = connect(context, address, &private_data)?;
        same("answer", event, ConnectionEvent::PeerRejected)
            .with_context(|| format!("{private_data:02x?}"))?;
        let reason = end.ep.private_data()?;
        ensure!(reason.starts_with(b"KBMI\x01"), "the rejection has {reason:02x?}");
        works()?;
    }
    let (event, _) = connect(context, address, &hello())?;
    same("answer to a valid request", event, ConnectionEvent::Established)
}

/// A server of another version rejects a client of this one.
fn other_version(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let listener = Listener::new(context, &context.open_server()?)?;
    let client = Side::open(context, &context.client, &Options::default())?;
    let place = std::net::SocketAddr::new(context.server_address(), listener.port as u16);
    let peer = client.bmi.lookup(&format!("kdapl://{place}"))?;
    for (reason, failure) in [
        (&b"KBMI\x02\x08\0\0"[..], Failure::Version),
        (&b"KBMI\x01\x08\0\0"[..], Failure::Refused),
        (&b"something else"[..], Failure::Refused),
        (&b"K"[..], Failure::Refused),
    ] {
        let send = client.context.send(&peer, 1, &[], 0)?;
        listener.request(context)?.reject(reason)?;
        client.failed(send, failure)?;
    }
    Ok(())
}

/// Returns a header.
pub fn header(kind: u8, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; 48];
    bytes[0] = kind;
    bytes[16..24].copy_from_slice(&length.to_le_bytes());
    bytes
}

fn messages(context: &Context) -> Result<()> {
    let sides = Sides::open(context, &Options::default())?;
    let back = sides.greet()?;
    ends_after_malformed(context, &sides.server.bmi.address().unwrap_or_default(), || {
        let length = long(context, 100_000);
        transfer(context, (&sides.client, &sides.peer), (&sides.server, &back), length)
    })
}

/// Checks that a server ends the connection of a peer with a malformed message, and works then.
pub fn ends_after_malformed(
    context: &Context,
    address: &str,
    works: impl Fn() -> Result<()>,
) -> Result<()> {
    let mut late = header(8, 0);
    late[8..12].copy_from_slice(&99_u32.to_le_bytes());
    let mut rich = header(8, 0);
    rich[2..4].copy_from_slice(&1000_u16.to_le_bytes());
    let mut flagged = header(8, 0);
    flagged[1] = 0xff;
    let mut described = header(3, u64::MAX);
    described[6..8].copy_from_slice(&1_u16.to_le_bytes());
    described.extend([0xff; 16]);
    let cases = [
        vec![0; 1],
        random(context, 48)[..47].to_vec(),
        header(0, 0),
        header(200, 0),
        header(1, 5),
        header(3, 0),
        late,
        rich,
        flagged,
        described,
    ];
    for message in cases {
        let (event, end) = connect(context, address, &hello())?;
        same("answer", event, ConnectionEvent::Established)?;
        send(&end, &message)?;
        let ended = ended(context, &end)?;
        same("end", context.ends_of_traffic().contains(&ended), true)
            .with_context(|| format!("{message:02x?}"))?;
        works()?;
    }
    Ok(())
}

/// Sends a message, whose bytes may change afterwards only when it was answered.
pub fn send(end: &End, message: &[u8]) -> Result<()> {
    end.lmr.buffer().write(4096, message);
    let segment = [end.lmr.segment(4096, message.len())];
    Ok(end.ep.post_send(&segment, 1, CompletionFlags::default())?)
}

/// Returns the event that ends a connection.
pub fn ended(context: &Context, end: &End) -> Result<ConnectionEvent> {
    loop {
        if let Event::Connection { event, .. } = context.next(&end.connect)? {
            return Ok(event);
        }
    }
}
