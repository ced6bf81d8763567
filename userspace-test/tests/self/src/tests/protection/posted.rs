// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! LMRs that are freed while a DTO is posted.

use super::stage::{Scene, Stage, LOCAL};
use crate::context::Context;
use crate::end::Pair;
use crate::expect::{connection_over, dto, empty, same};
use crate::tests::dto_failure::SHORT;
use anyhow::{bail, ensure, Result};
use libkdapl::{CompletionFlags, DtoOperation, DtoStatus, Event, Segment};

/// Returns the statuses of a send whose receive has failed.
fn send_statuses(context: &Context) -> &'static [DtoStatus] {
    match (context.client.is_siw(), context.link_is_spoilt()) {
        // A short send is complete when TCP has it.
        (true, _) => &[DtoStatus::Success],
        (_, true) => &[DtoStatus::RemoteResponder, DtoStatus::Flushed],
        _ => &[DtoStatus::RemoteResponder],
    }
}

/// Frees the LMR of a posted receive; then its message arrives. DAT: the DTO fails, and with it the
/// connection. Soft-RoCE reports the receive as malformed, siw as one of a broken transport.
pub fn freed(stage: &Stage) -> Result<()> {
    let (scene, context) = (Scene::new(stage)?, stage.context);
    let Pair { client, server, .. } = &scene.pair;
    let made = scene.lmr(LOCAL)?;
    let segment = Segment { context: made.lmr_context, ..scene.part(0) };
    server.ep.post_recv(&[segment], 31, CompletionFlags::default())?;
    scene.free(&server.ia, made.handle)?;
    let before = scene.memory();
    client.send(0, SHORT, 32)?;
    let is_siw = context.server.is_siw();
    let received = if is_siw { DtoStatus::Transport } else { DtoStatus::LocalEp };
    let event = context.next(&server.recv)?;
    same("cookie", dto(&event, DtoOperation::Receive, received)?.cookie, 31)?;
    let event = context.next(&client.request)?;
    let Event::Dto(sent) = event else { bail!("expected a completion, got {event}") };
    same("send", (sent.operation, sent.cookie), (DtoOperation::Send, 32))?;
    let allowed = send_statuses(context);
    ensure!(allowed.contains(&sent.status), "expected one of {allowed:?}, got {event}");
    for end in [client, server] {
        connection_over(&context.next(&end.connect)?)?;
    }
    ensure!(scene.memory() == before, "bytes were moved");
    [&client.recv, &server.recv, &server.request].into_iter().try_for_each(empty)?;
    stage.others_go_on()
}
