// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Checks the quality of service of a connection in its packets.

use super::connect::ends;
use super::tests;
use crate::context::Context;
use crate::expect::{connection, done, same};
use crate::harness::skip;
use crate::hosts::Count;
use anyhow::{ensure, Result};
use libkdapl::{ConnectOptions, ConnectionEvent, DtoOperation, Qos};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

tests! {
    #[Address]
    each_class_connects, 60, "A connect with each quality of service makes a connection that carries data";
    #[Hosts]
    in_packets, 60, "The packets of a connection have its quality of service";
}

/// The qualities with their Differentiated Services field (AF11, AF21, CS1, EF).
const QUALITIES: [(Qos, u8); 5] = [
    (Qos::BestEffort, 0),
    (Qos::HighThroughput, 0x28),
    (Qos::LowLatency, 0x48),
    (Qos::Economy, 0x20),
    (Qos::Premium, 0xb8),
];

/// Connects with this quality, and sends one message.
fn transfer(context: &Context, qos: Qos) -> Result<()> {
    let ends = ends(context)?;
    ends.server.receive(0, 64, 1)?;
    let options = ConnectOptions { timeout: Some(context.patience()), qos, ..Default::default() };
    ends.client.ep.connect_with(
        (context.server_address(), 0).into(),
        ends.listener.port,
        &options,
    )?;
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    ends.client.send(0, 64, 2)?;
    done(&context.next(&ends.server.recv)?, DtoOperation::Receive, 64, 1)?;
    done(&context.next(&ends.client.request)?, DtoOperation::Send, 64, 2)
}

fn each_class_connects(context: &Context) -> Result<()> {
    QUALITIES.into_iter().try_for_each(|(qos, _)| transfer(context, qos))
}

/// A socket that receives all packets of this network namespace.
struct Tap(OwnedFd);

impl Tap {
    fn new() -> Result<Self> {
        let every = i32::from((libc::ETH_P_ALL as u16).to_be());
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: the call reads no memory.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, every) };
        ensure!(fd >= 0, "cannot create a packet socket: {}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new, and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Returns the Differentiated Services fields of the RDMA sends from `source` so far.
    fn sends_from(&self, source: IpAddr) -> Vec<u8> {
        let mut found = Vec::new();
        let mut packet = [0; 256];
        loop {
            // SAFETY: the buffer is ours, and has this length.
            let length = unsafe {
                libc::recv(
                    self.0.as_raw_fd(),
                    packet.as_mut_ptr().cast(),
                    packet.len(),
                    libc::MSG_TRUNC,
                )
            };
            let Ok(length) = usize::try_from(length) else {
                return found;
            };
            found.extend(rdma_send(&packet[..length.min(packet.len())], source));
        }
    }
}

/// Returns the Differentiated Services field of a packet from `source` if it is RoCE's "send only".
fn rdma_send(packet: &[u8], source: IpAddr) -> Option<u8> {
    const ROCE: [u8; 2] = 4791_u16.to_be_bytes();
    const SEND_ONLY: u8 = 0x04;
    let (service, sender, udp) = match packet.first()? >> 4 {
        4 => {
            let sender: [u8; 4] = *packet.get(12..)?.first_chunk()?;
            let header = usize::from(packet[0] & 0xf) * 4;
            (*packet.get(1)?, IpAddr::from(sender), packet.get(header..)?)
        }
        6 => {
            let sender: [u8; 16] = *packet.get(8..)?.first_chunk()?;
            let service = (packet[0] << 4) | (packet.get(1)? >> 4);
            (service, IpAddr::from(sender), packet.get(40..)?)
        }
        _ => return None,
    };
    let is_send = udp.get(2..4)? == ROCE && *udp.get(8)? == SEND_ONLY;
    // The last two bits are for congestion control.
    (is_send && sender == source).then_some(service & 0xfc)
}

fn in_packets(context: &Context) -> Result<()> {
    let rxe = context.client.driver().as_deref() == Some("rxe");
    if context.settings.layout.hosts != Count::Two || !rxe {
        return skip("the test needs two hosts with soft-RoCE to see the packets");
    }
    let tap = context.server.inside(Tap::new)??;
    for (qos, field) in QUALITIES {
        transfer(context, qos)?;
        let mut fields = tap.sends_from(context.client.address);
        // A lost packet is sent again, with the same field.
        fields.dedup();
        same(&format!("{qos:?}"), fields, vec![field])?;
    }
    Ok(())
}
