// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tries a cell of a table of peers: one operation of the client on a new connection.

use super::remote::{Cell, Column, Location, Row, Validity};
use super::stage::{Scene, Stage};
use crate::context::Context;
use crate::expect::{connection, connection_over, done, empty, refused, same};
use crate::machine::has_kasan;
use crate::tests::dto_failure::SHORT;
use crate::tests::extensions::ATOMICS;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Error, Event, Extensions, Segment,
    Type,
};

/// Offset of the client's own memory in its region.
const AT: usize = 8192;
const RECEIVED: u64 = 80;
const POSTED: u64 = 81;
const IMMED: u32 = 0x0102_0304;
const SUMMAND: u64 = 3;
const SWAPPED: u64 = 0x1111_2222_3333_4444;

impl Column {
    /// Returns the operation of the client's completion.
    fn operation(self) -> DtoOperation {
        match self {
            Self::Read => DtoOperation::RdmaRead,
            Self::Write => DtoOperation::RdmaWrite,
            Self::WriteImmed => DtoOperation::RdmaWriteImmed,
            Self::FetchAdd => DtoOperation::FetchAdd,
            Self::CmpSwap => DtoOperation::CmpSwap,
            Self::Invalidate => DtoOperation::Send,
        }
    }

    fn is_atomic(self) -> bool {
        matches!(self, Self::FetchAdd | Self::CmpSwap)
    }

    /// Returns the operation of the server's receive, if the operation takes one.
    fn receive(self) -> Option<DtoOperation> {
        match self {
            Self::WriteImmed => Some(DtoOperation::RecvImmed),
            Self::Invalidate => Some(DtoOperation::ReceiveWithInvalidate),
            _ => None,
        }
    }

    /// Checks whether the adapter has the operation.
    pub fn is_in(self, extensions: Extensions) -> bool {
        match self {
            Self::WriteImmed => extensions.contains(Extensions::IMMED_DATA),
            Self::FetchAdd | Self::CmpSwap => extensions.contains(ATOMICS),
            Self::Read | Self::Write | Self::Invalidate => true,
        }
    }
}

/// Returns what the peer names of `part`.
fn named(part: Segment, location: Location, column: Column) -> Segment {
    let (start, end) = (part.address, part.address + u64::from(part.length));
    let (address, length) = match (location, column.is_atomic()) {
        (Location::Inside, false) => (start, part.length),
        (Location::Inside, true) => (end - 8, 8),
        (Location::First, false) => (start, 1),
        (Location::First, true) => (start, 8),
        (Location::Last, false) => (end - 1, 1),
        (Location::Last, true) => (end - 8, 8),
        (Location::Before, false) => (start.wrapping_sub(1), 2),
        (Location::Before, true) => (start.wrapping_sub(8), 8),
        (Location::After, false) => (end - 1, 2),
        (Location::After, true) => (end, 8),
        (Location::Nothing, _) => (start, 0),
    };
    Segment { address, length, ..part }
}

/// An operation of the client.
struct Access<'a> {
    scene: &'a Scene<'a>,
    column: Column,
    remote: Segment,
}

impl Access<'_> {
    fn post(&self) -> Result<(), Error> {
        let (client, remote) = (&self.scene.pair.client, self.remote);
        let local = client.lmr.segment(AT, remote.length as usize);
        let (ep, flags) = (&client.ep, CompletionFlags::default());
        match self.column {
            Column::Read => ep.post_rdma_read(&[local], remote, POSTED, flags),
            Column::Write => ep.post_rdma_write(&[local], remote, POSTED, flags),
            Column::WriteImmed => ep.post_rdma_write_immed(&[local], remote, IMMED, POSTED, flags),
            Column::FetchAdd => ep.post_fetch_and_add(SUMMAND, local, remote, POSTED, flags),
            Column::CmpSwap => {
                ep.post_cmp_and_swap(self.word(), SWAPPED, local, remote, POSTED, flags)
            }
            Column::Invalidate => ep.post_send_with_invalidate(&[], remote.context, POSTED, flags),
        }
    }

    /// Returns the offset of the named memory in the memory of the row.
    fn offset(&self) -> usize {
        self.scene.offset(self.remote)
    }

    /// Returns the word of an atomic operation, if it is in the memory of the row.
    fn word(&self) -> u64 {
        let at = self.offset();
        let bytes = self.scene.memory()[2].get(at..).and_then(|rest| rest.first_chunk().copied());
        bytes.map_or(0, u64::from_ne_bytes)
    }

    /// Returns the memory after the operation.
    fn effect(&self, before: &[Vec<u8>; 3]) -> [Vec<u8>; 3] {
        let [mut client, server, mut opened] = before.clone();
        let length = self.remote.length as usize;
        let (mine, theirs) = (AT..AT + length, self.offset()..self.offset() + length);
        match self.column {
            Column::Read => client[mine].copy_from_slice(&opened[theirs]),
            Column::Write | Column::WriteImmed => opened[theirs].copy_from_slice(&client[mine]),
            Column::FetchAdd | Column::CmpSwap => {
                let old = self.word();
                let new = match self.column {
                    Column::FetchAdd => old.wrapping_add(SUMMAND),
                    _ => SWAPPED,
                };
                client[mine].copy_from_slice(&old.to_ne_bytes());
                opened[theirs].copy_from_slice(&new.to_ne_bytes());
            }
            Column::Invalidate => {}
        }
        [client, server, opened]
    }

    /// Returns the number of bytes of the completion.
    fn length(&self) -> u64 {
        match self.column {
            Column::Invalidate => 0,
            _ => self.remote.length.into(),
        }
    }

    /// Checks that the operation succeeds.
    fn succeeds(&self, expected: &[Vec<u8>; 3]) -> Result<()> {
        let (context, pair) = (self.scene.stage.context, &self.scene.pair);
        let event = context.next(&pair.client.request)?;
        done(&event, self.column.operation(), self.length(), POSTED)?;
        if let Some(operation) = self.column.receive() {
            let event = context.next(&pair.server.recv)?;
            done(&event, operation, self.length(), RECEIVED)?;
            let Event::Dto(dto) = event else { bail!("{event}") };
            match self.column {
                Column::Invalidate => same("context", dto.rmr_context, self.remote.context)?,
                _ => same("immediate data", dto.immed_data, Some(IMMED))?,
            }
        }
        // Over iWARP a write may still be on its way.
        context.until("the bytes have arrived", || Ok(self.scene.memory() == *expected))?;
        self.scene.goes_on()
    }

    /// Checks that the connection breaks, and that nothing else has happened.
    fn breaks(&self, before: &[Vec<u8>; 3]) -> Result<()> {
        let (context, pair) = (self.scene.stage.context, &self.scene.pair);
        let event = context.next(&pair.client.request)?;
        let Event::Dto(dto) = event else { bail!("expected a completion, got {event}") };
        same("operation", dto.operation, self.column.operation())?;
        same("cookie", dto.cookie, POSTED)?;
        let allowed = self.failures();
        ensure!(allowed.contains(&dto.status), "expected one of {allowed:?}, got {event}");
        self.connection_breaks()?;
        if self.column.receive().is_some() {
            self.receive_fails()?;
        }
        ensure!(self.scene.memory() == *before, "bytes were moved");
        [&pair.client.request, &pair.client.recv, &pair.server.request, &pair.server.recv]
            .into_iter()
            .try_for_each(empty)
    }

    /// Checks the last events of the connection. An end whose queue pair has failed has BROKEN, and
    /// its peer has DISCONNECTED. When a peer's access is refused both fail: the client's with the
    /// refusal, the server's by a timer, unless the client's disconnect arrives before. Over TCP,
    /// and if the refusal is lost or late, either end may be the first.
    fn connection_breaks(&self) -> Result<()> {
        let (context, pair) = (self.scene.stage.context, &self.scene.pair);
        let client = context.next(&pair.client.connect)?;
        let server = context.next(&pair.server.connect)?;
        if context.client.is_siw() || refusal_may_be_late(context) {
            connection_over(&client)?;
            return connection_over(&server);
        }
        match self.column {
            Column::Invalidate => {
                connection(&server, ConnectionEvent::Broken)?;
                connection(&client, ConnectionEvent::Disconnected)
            }
            _ => {
                connection(&client, ConnectionEvent::Broken)?;
                connection_over(&server)
            }
        }
    }

    /// Returns the statuses of a completion that the peer does not allow.
    fn failures(&self) -> &'static [DtoStatus] {
        let context = self.scene.stage.context;
        let is_siw = context.client.is_siw();
        match self.column {
            // The message itself arrives: soft-RoCE and siw acknowledge it.
            Column::Invalidate => &[DtoStatus::Success],
            // A short write is complete when TCP has it.
            Column::Write if is_siw => &[DtoStatus::Success],
            // siw ends the stream, and does not report the reason to the reader.
            Column::Read if is_siw => &[DtoStatus::Flushed],
            // The server disconnects 20 ms after its refusal. If the refusal is lost, or processed
            // later, then the disconnect ends the operation.
            _ if refusal_may_be_late(context) => &[DtoStatus::RemoteAccess, DtoStatus::Flushed],
            _ => &[DtoStatus::RemoteAccess],
        }
    }

    /// Checks that the server's receive has failed.
    fn receive_fails(&self) -> Result<()> {
        let event = self.scene.stage.context.next(&self.scene.pair.server.recv)?;
        let status = match self.column {
            Column::Invalidate => DtoStatus::RemoteResponder,
            _ => DtoStatus::RemoteAccess,
        };
        match event {
            Event::Dto(dto) if dto.status == status && dto.cookie == RECEIVED => Ok(()),
            other => bail!("expected a receive with {status}, got {other}"),
        }
    }
}

/// Returns whether the server's disconnect may be processed before its refusal.
fn refusal_may_be_late(context: &Context) -> bool {
    context.link_is_spoilt() || has_kasan()
}

/// Returns what happens in a cell: what DAT says, except for what the drivers do not check. See
/// `docs/security.md`.
fn fact(stage: &Stage, row: &Row, column: Column) -> Cell {
    let said = row.cells[column as usize];
    let (siw, live) = (stage.context.server.is_siw(), row.validity == Validity::Live);
    match column {
        // siw answers no read of no bytes.
        Column::Read if siw && row.location == Location::Nothing => Cell::None,
        // `siw_qp_sq_proc_tx()` checks the context, its PD and its range, and no right to read.
        Column::Read if siw && live && row.location == Location::Inside => Cell::May,
        // `siw_invalidate_stag()` invalidates every region of the PD.
        Column::Invalidate if siw && live => Cell::May,
        // `rxe_invalidate_mr()` does not compare the PD.
        Column::Invalidate if !siw && row.validity == Validity::Foreign => Cell::May,
        _ => said,
    }
}

/// Tries a cell, on a new connection.
fn cell(stage: &Stage, row: &Row, column: Column) -> Result<()> {
    let scene = Scene::new(stage)?;
    let part = (row.open)(&scene)?.remote;
    if column.receive().is_some() {
        scene.pair.server.receive(0, 0, RECEIVED)?;
    }
    let mut remote = named(part, row.location, column);
    let before = scene.memory();
    let effect = fact(stage, row, column);
    if effect == Cell::MayNot && stage.context.client.is_siw() {
        remote.length = remote.length.min(SHORT as u32);
    }
    let access = Access { scene: &scene, column, remote };
    let expected = if effect == Cell::May { access.effect(&before) } else { before };
    let posted = access.post();
    match effect {
        Cell::May => posted.map_err(Into::into).and_then(|()| access.succeeds(&expected)),
        Cell::MayNot => posted.map_err(Into::into).and_then(|()| access.breaks(&expected)),
        Cell::None => {
            let error = match column {
                Column::Read => Type::MODEL_NOT_SUPPORTED,
                _ => Type::LENGTH_ERROR,
            };
            refused(posted, error)?;
            ensure!(scene.memory() == expected, "bytes were moved");
            scene.goes_on()
        }
    }?;
    stage.others_go_on()
}

/// Tries all cells of a table.
pub fn every_cell(stage: &Stage, table: &[Row]) -> Result<()> {
    let extensions = stage.client.query()?.extensions;
    for row in table {
        for column in super::remote::COLUMNS.into_iter().filter(|column| column.is_in(extensions)) {
            cell(stage, row, column).with_context(|| format!("{}: {column:?}", row.name))?;
        }
    }
    Ok(())
}
