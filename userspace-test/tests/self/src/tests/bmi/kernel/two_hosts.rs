// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl_bmi.ko` on one host, and processes on another.

use super::rails::{options, FOUR};
use super::{end_amid, serve_kernel, talk_to, tests, Loaded, Server};
use crate::context::Context;
use crate::hosts::{Host, KernelLink};
use anyhow::Result;
use std::net::SocketAddr;

tests! {
    #[Hosts, Link]
    user_client, 120, "Processes of another host talk to kdapl_bmi.ko, over one connection and over four";
    #[Hosts, Link]
    user_server, 120, "kdapl_bmi.ko talks to a process of another host, over one connection and over four";
    #[Hosts, Link]
    client_gone, 120, "kdapl_bmi.ko forgets a process of another host that ends amid its messages on four connections, and serves others";
}

/// Returns the address of a server on a port of its own.
fn address(context: &Context, host: &Host) -> String {
    format!("kdapl://{}", SocketAddr::new(host.address, context.port() as u16))
}

fn user_client(context: &Context) -> Result<()> {
    let link = KernelLink::new(context)?;
    for (more, count) in [("", 1), (FOUR, 4)] {
        let server = Server::on(&link.kernel.device, address(context, &link.kernel), more)?;
        talk_to(context, (&link.user, count), &server, (1, &[1000, 300_000]))?;
        server.end()?;
    }
    Ok(())
}

fn user_server(context: &Context) -> Result<()> {
    let link = KernelLink::new(context)?;
    let bmi = Loaded::new("kdapl_bmi", "")?;
    let place = address(context, &link.user);
    for (count, length) in [(1, (5000, "Y")), (4, (200_000, "N"))] {
        let device = &*link.kernel.device;
        serve_kernel(context, (device, &place), &link.user, (count, &[length]))?;
    }
    bmi.unload()
}

fn client_gone(context: &Context) -> Result<()> {
    let link = KernelLink::new(context)?;
    let server = Server::on(&link.kernel.device, address(context, &link.kernel), FOUR)?;
    end_amid(context, &link.user, &server, &options(4, true))?;
    server.end()
}
