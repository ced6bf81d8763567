// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of the kernel for endpoints that were freed, and whose RMRs are still bound.

use super::rmr::scene::{bound, part, BOTH};
use super::tests;
use crate::cgroup::Cgroup;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::connection;
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, ConnectionEvent, EpAttr};

tests! {
    releases_slots, 120, "An endpoint that is freed releases the memory of its DTOs, even if an RMR was bound on it";
}

/// DTOs of an endpoint in each direction. Their slots take more than a megabyte.
const DTOS: u32 = 16_000;
const ROUNDS: usize = 24;
/// Largest growth of the kernel's memory, less than half a megabyte for each endpoint.
const GROWTH: u64 = (ROUNDS as u64) << 19;

fn releases_slots(context: &Context) -> Result<()> {
    let cgroup = Cgroup::enter("memory", "memory.max", "max")?;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let (client, server) =
        (End::new(&client_ia, Shape::default())?, End::new(&server_ia, Shape::default())?);
    let mut rmrs = Vec::new();
    let mut before = 0;
    for round in 0..=ROUNDS {
        let attr = EpAttr { max_recv_dtos: DTOS, max_request_dtos: DTOS, ..EpAttr::default() };
        let (evds, pz) = ((&client.recv, &client.request, &client.connect), &client.pz);
        let ep = client.ia.create_ep(pz, evds.0, evds.1, evds.2, Some(attr))?;
        let peer = server.another_ep()?;
        ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
        listener.request(context)?.accept(&peer, &[])?;
        for end in [&client, &server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
        let rmr = client.ia.create_rmr(&client.pz)?;
        let part = part(&client.lmr, 0, 64, BOTH);
        rmr.bind(&ep, &part, 1, CompletionFlags::default())?;
        bound(context, &client, &rmr, 1)?;
        rmrs.push(rmr);
        ep.free()?;
        context.next(&server.connect)?;
        // The first round makes the completion queues, which stay.
        if round == 0 {
            before = cgroup.kernel_memory()?;
        }
    }
    let growth = cgroup.kernel_memory()?.saturating_sub(before);
    println!("{growth} bytes in {ROUNDS} rounds");
    ensure!(growth < GROWTH, "the kernel's memory has grown by {growth} bytes");
    Ok(())
}
