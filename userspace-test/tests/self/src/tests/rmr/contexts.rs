// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Contexts of RMRs: when they begin and end, for whom, and which numbers they are.

use super::scene::{bound, part, Scene, BOTH};
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection_over, done, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, CompletionFlags, DtoOperation, EpState, Segment};
use std::collections::HashSet;

/// End of a context by a call of the side that has bound it.
type Ends = fn(&Context, &Scene) -> Result<()>;

const UNBIND: Ends = |context, scene| {
    scene.rmr.unbind(&scene.pair.server.ep, 8, CompletionFlags::default())?;
    bound(context, &scene.pair.server, &scene.rmr, 8)
};
const BIND_AGAIN: Ends = |context, scene| scene.bind(context, BOTH).map(drop);
const FREE: Ends = |_, scene| Ok(scene.rmr.free()?);

/// Binds the RMR, and checks that the peer may write. Returns the segment.
fn bound_and_written(context: &Context, scene: &Scene) -> Result<Segment> {
    let segment = scene.bind(context, BOTH)?;
    scene.access(context, true, segment, true)?;
    Ok(segment)
}

pub fn context_ends(context: &Context) -> Result<()> {
    for end in [UNBIND, BIND_AGAIN, FREE] {
        let scene = Scene::new(context)?;
        let segment = bound_and_written(context, &scene)?;
        end(context, &scene)?;
        scene.denied(context, true, segment)?;
    }
    ends_by_close(context)
}

/// A close ends the connection, too. So other peers try the context: of an adapter that was open
/// before, and of one that is opened afterwards.
fn ends_by_close(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let segment = bound_and_written(context, &scene)?;
    let before = [of_other_adapter(context, &scene)?, of_other_adapter(context, &scene)?];
    scene.pair.server.ia.close(Close::Abrupt)?;
    connection_over(&context.next(&scene.pair.client.connect)?)?;
    let after = [of_other_adapter(context, &scene)?, of_other_adapter(context, &scene)?];
    for [writes, reads] in [before, after] {
        with_pair(&scene, writes).denied(context, true, segment)?;
        with_pair(&scene, reads).denied(context, false, segment)?;
    }
    Ok(())
}

/// Connects another peer to the side that binds.
type Connects = fn(&Context, &Scene) -> Result<Pair>;

fn of_other_adapter(context: &Context, _scene: &Scene) -> Result<Pair> {
    Pair::new(context, Shape::default())
}

fn of_other_zone(context: &Context, scene: &Scene) -> Result<Pair> {
    let Pair { client, server, .. } = &scene.pair;
    Pair::between(context, &client.ia, &server.ia, Shape::default())
}

fn of_same_zone(context: &Context, scene: &Scene) -> Result<Pair> {
    let Pair { client, server, .. } = &scene.pair;
    let pair = Pair {
        client: End::new(&client.ia, Shape::default())?,
        server: End::in_zone(&server.ia, server.pz.clone(), Shape::default())?,
        listener: Listener::new(context, &server.ia)?,
    };
    pair.connect(context)?;
    Ok(pair)
}

/// Returns the scene with another peer.
fn with_pair(scene: &Scene, pair: Pair) -> Scene {
    Scene { pair, lmr: scene.lmr.clone(), rmr: scene.rmr.clone() }
}

pub fn context_ends_for_all(context: &Context) -> Result<()> {
    let peers: [(&str, Connects); 3] = [
        ("of the same zone", of_same_zone),
        ("of another zone", of_other_zone),
        ("of another adapter", of_other_adapter),
    ];
    for end in [UNBIND, BIND_AGAIN, FREE] {
        let scene = Scene::new(context)?;
        let segment = bound_and_written(context, &scene)?;
        let with = with_pair(&scene, of_same_zone(context, &scene)?);
        with.access(context, true, segment, true).context("a live context of the same zone")?;
        drop(with);
        end(context, &scene)?;
        for (peer, connect) in peers {
            for write in [true, false] {
                let other = with_pair(&scene, connect(context, &scene)?);
                other.denied(context, write, segment).context(peer)?;
            }
        }
        same("state", scene.pair.client.ep.status()?.state, EpState::Connected)?;
    }
    Ok(())
}

pub fn contexts_differ(context: &Context) -> Result<()> {
    const LIVE: usize = 8;
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    let rmrs =
        (0..LIVE).map(|_| server.ia.create_rmr(&server.pz)).collect::<Result<Vec<_>, _>>()?;
    let part = part(&scene.lmr, 0, 100, BOTH);
    let mut live = [0; LIVE];
    let mut all = HashSet::new();
    for round in 0..context.count(2_000).max(300) {
        let number = context.rng().usize(0..LIVE);
        let segment = rmrs[number].bind(&server.ep, &part, round, CompletionFlags::default())?;
        bound(context, server, &rmrs[number], round)?;
        let new = segment.context;
        ensure!(new != 0 && !live.contains(&new), "round {round}: {new:#x} is that of a live bind");
        live[number] = new;
        // siw draws its keys at random.
        let is_new = all.insert(new) || context.server.is_siw();
        ensure!(is_new, "round {round}: {new:#x} was that of an earlier bind");
    }
    Ok(())
}

/// Place of the message with the context, and of the memory that the peer reads.
const MESSAGE: usize = 0;
const READ: usize = 4096;

pub fn used_behind_bind(context: &Context) -> Result<()> {
    const BYTES: usize = 64;
    let scene = Scene::new(context)?;
    let (client, server) = (&scene.pair.client, &scene.pair.server);
    let part = part(&scene.lmr, 3601, BYTES, BOTH);
    for round in 0..context.count(1_000).max(100) {
        client.receive(MESSAGE, 4, 1)?;
        let segment = scene.rmr.bind(&server.ep, &part, 2, CompletionFlags::default())?;
        server.lmr.buffer().write(MESSAGE, &segment.context.to_le_bytes());
        server.send(MESSAGE, 4, 3)?;
        done(&context.next(&client.recv)?, DtoOperation::Receive, 4, 1)?;
        let mut told = [0; 4];
        client.lmr.buffer().read(MESSAGE, &mut told);
        let remote = Segment { context: u32::from_le_bytes(told), ..segment };
        let written = [round as u8; BYTES];
        client.lmr.buffer().write(READ, &written);
        client.write(READ, BYTES, remote, 4)?;
        done(&context.next(&client.request)?, DtoOperation::RdmaWrite, BYTES as u64, 4)
            .with_context(|| format!("round {round}"))?;
        client.lmr.buffer().fill(READ, BYTES, !(round as u8));
        // A read follows the write that precedes it.
        client.read(READ, BYTES, remote, 5)?;
        done(&context.next(&client.request)?, DtoOperation::RdmaRead, BYTES as u64, 5)
            .with_context(|| format!("round {round}"))?;
        same("bytes", client.lmr.buffer().to_vec(READ, BYTES), written.to_vec())?;
        bound(context, server, &scene.rmr, 2)?;
        done(&context.next(&server.request)?, DtoOperation::Send, 4, 3)?;
    }
    Ok(())
}
