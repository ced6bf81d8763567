// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! LMRs that are freed while a DTO is posted.

use super::stage::{Scene, Stage, LOCAL, PART};
use crate::end::Pair;
use crate::expect::{connection, connection_over, dto, empty, same};
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Segment};

/// Frees the LMR of a posted receive; then its message arrives. DAT: the DTO fails, and with it the
/// connection. Soft-RoCE reports the receive as malformed, not as one without protection.
pub fn freed(stage: &Stage) -> Result<()> {
    let (scene, context) = (Scene::new(stage)?, stage.context);
    let Pair { client, server, .. } = &scene.pair;
    let made = scene.lmr(LOCAL)?;
    let segment = Segment { context: made.lmr_context, ..scene.part(0) };
    server.ep.post_recv(&[segment], 31, CompletionFlags::default())?;
    scene.free(&server.ia, made.handle)?;
    let before = scene.memory();
    client.send(0, PART, 32)?;
    let event = context.next(&server.recv)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::LocalEp)?.cookie, 31)?;
    let event = context.next(&client.request)?;
    same("cookie", dto(&event, DtoOperation::Send, DtoStatus::RemoteResponder)?.cookie, 32)?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Broken)?;
    connection_over(&context.next(&server.connect)?)?;
    ensure!(scene.memory() == before, "bytes were moved");
    [&client.recv, &server.recv, &server.request].into_iter().try_for_each(empty)?;
    stage.others_go_on()
}
