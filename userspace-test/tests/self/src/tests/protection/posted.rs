// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! LMRs that are freed while a DTO is posted.

use super::stage::{Scene, Stage, LOCAL, PART};
use crate::end::Pair;
use crate::expect::{connection_over, dto, empty, same};
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, DtoOperation, DtoStatus, Segment};

/// Frees the LMR of a posted receive; then its message arrives. DAT: the DTO fails, and with it the
/// connection. Soft-RoCE reports the receive as malformed, siw as
/// one of a broken transport.
pub fn freed(stage: &Stage) -> Result<()> {
    let (scene, context) = (Scene::new(stage)?, stage.context);
    let Pair { client, server, .. } = &scene.pair;
    let made = scene.lmr(LOCAL)?;
    let segment = Segment { context: made.lmr_context, ..scene.part(0) };
    server.ep.post_recv(&[segment], 31, CompletionFlags::default())?;
    scene.free(&server.ia, made.handle)?;
    let before = scene.memory();
    client.send(0, PART, 32)?;
    let is_siw = context.server.is_siw();
    // Over iWARP a send is complete when TCP has it.
    let (received, sent) = match is_siw {
        true => (DtoStatus::Transport, DtoStatus::Success),
        false => (DtoStatus::LocalEp, DtoStatus::RemoteResponder),
    };
    let event = context.next(&server.recv)?;
    same("cookie", dto(&event, DtoOperation::Receive, received)?.cookie, 31)?;
    let event = context.next(&client.request)?;
    same("cookie", dto(&event, DtoOperation::Send, sent)?.cookie, 32)?;
    for end in [client, server] {
        connection_over(&context.next(&end.connect)?)?;
    }
    ensure!(scene.memory() == before, "bytes were moved");
    [&client.recv, &server.recv, &server.request].into_iter().try_for_each(empty)?;
    stage.others_go_on()
}
