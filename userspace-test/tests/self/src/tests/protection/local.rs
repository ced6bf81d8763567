// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Rights of a post to memory of its own side, by context.

use super::remote::{self, Location, Open, Opened};
use super::stage::{Scene, Stage, LOCAL};
use crate::end::Pair;
use crate::expect::{connection, connection_over, done, dto, refused, refused_as, same};
use crate::tests::extensions::ATOMICS;
use crate::tests::rmr::scene::{bound, part, BOTH};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Error, Privileges, Segment, Subtype,
    Type,
};

/// Operation of a post. They are the columns of the tables, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Send,
    SendWithInvalidate,
    RdmaWrite,
    Receive,
    RdmaRead,
    RdmaReadToRmr,
    FetchAdd,
    CmpSwap,
}

const COLUMNS: [Column; 8] = [
    Column::Send,
    Column::SendWithInvalidate,
    Column::RdmaWrite,
    Column::Receive,
    Column::RdmaRead,
    Column::RdmaReadToRmr,
    Column::FetchAdd,
    Column::CmpSwap,
];

/// Result of a cell, by DAT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// The operation succeeds.
    May,
    /// PROTECTION_VIOLATION: the memory is not that of the context, or the context not of this PZ.
    Protection,
    /// PRIVILEGES_VIOLATION: the memory was opened without this privilege.
    Privilege,
    /// LENGTH_ERROR: there is no such operation.
    None,
    /// The DTO fails with LOCAL_PROTECTION, and breaks the connection: only the device knows.
    Fails,
}

pub struct Row {
    pub name: &'static str,
    pub open: Open,
    pub location: Location,
    pub cells: [Cell; 8],
}

macro_rules! own_rows {
    ($(#[$doc:meta])* $list:ident: $(
        $location:ident $name:literal $open:path: $($cell:ident)*;
    )*) => {
        $(#[$doc])*
        pub const $list: &[$crate::tests::protection::local::Row] =
            &[$($crate::tests::protection::local::Row {
            name: $name,
            open: $open,
            location: $crate::tests::protection::remote::Location::$location,
            cells: [$($cell),*],
        }),*];
    };
}
pub(super) use own_rows;

pub const Y: Cell = Cell::May;
pub const V: Cell = Cell::Protection;
const P: Cell = Cell::Privilege;
const O: Cell = Cell::None;
const F: Cell = Cell::Fails;

// The columns are: send, send with invalidate, RDMA write, receive, RDMA read, RDMA read to RMR,
// fetch and add, compare and swap. The first three read the memory, the others write to it.

own_rows! {
    /// LMR contexts (`dat_ep_post_send`, `_recv`, `_rdma_write`, `_rdma_read`): the LMR is in the
    /// PZ of the Endpoint, contains the segment, and has LOCAL_WRITE if it is written. DAT wants
    /// LOCAL_READ for reads, but existing programs send without it (`dtest`), and the verbs do not
    /// know it. An RDMA read to an RMR takes no LMR context. A segment of no bytes is not checked.
    LMRS:
    Inside  "all privileges"           remote::all_privileges:       Y Y Y Y Y V Y Y;
    Inside  "local privileges"         remote::local:                Y Y Y Y Y V Y Y;
    Inside  "LOCAL_READ"               local_read:                   Y Y Y P P V P P;
    Inside  "LOCAL_WRITE"              local_write:                  Y Y Y Y Y V Y Y;
    Inside  "remote privileges"        remote_only:                  Y Y Y P P V P P;
    Inside  "no privilege"             remote::none:                 Y Y Y P P V P P;
    Before  "one byte before the LMR"  remote::all_privileges:       V V V V V V V V;
    After   "one byte after the LMR"   remote::all_privileges:       V V V V V V V V;
    Nothing "no bytes of the LMR"      remote::none:                 Y Y Y Y Y Y O O;
    Nothing "no bytes of no LMR"       remote::unknown:              Y Y Y Y Y Y O O;
    Inside  "unknown context"          remote::unknown:              V V V V V V V V;
    Inside  "freed"                    remote::freed_lmr:            V V V V V V V V;
    Inside  "of another PZ"            remote::lmr_of_other_pz:      V V V V V V V V;
    Inside  "of another adapter"       remote::lmr_of_other_adapter: V V V V V V V V;
    Inside  "of another process"       remote::lmr_of_other_process: V V V V V V V V;
}

own_rows! {
    /// RMR contexts (`dat_ep_post_rdma_read_to_rmr`): the RMR is bound in the PZ of the Endpoint,
    /// to memory that contains the segment, with REMOTE_WRITE. The other calls take none.
    RMRS:
    Inside  "before a bind"                      remote::before_bind:          V V V V V V V V;
    Inside  "bound for reading and writing"      remote::bound_for_both:       V V V V V Y V V;
    Inside  "bound for reading"                  remote::bound_for_reading:    V V V V V P V V;
    Inside  "bound for writing"                  remote::bound_for_writing:    V V V V V Y V V;
    Inside  "bound for nothing"                  remote::bound_for_nothing:    V V V V V P V V;
    Inside  "bound again with fewer privileges"  remote::bound_again:          V V V V V P V V;
    Inside  "bound through another EP of the PZ" remote::bound_by_other_ep:    V V V V V Y V V;
    Inside  "old context after another bind"     remote::old_context:          V V V V V V V V;
    Inside  "unbound"                            remote::unbound:              V V V V V V V V;
    Inside  "freed"                              remote::freed_rmr:            V V V V V V V V;
    Inside  "freed with its LMR"                 remote::freed_with_lmr:       V V V V V V V V;
    Inside  "invalidated by a peer"              remote::invalidated:          V V V V V F V V;
    Before  "one byte before the bound part"     remote::bound_for_both:       V V V V V V V V;
    After   "one byte after the bound part"      remote::bound_for_both:       V V V V V V V V;
    Inside  "of another PZ"                      remote::rmr_of_other_pz:      V V V V V V V V;
    Inside  "of another adapter"                 remote::rmr_of_other_adapter: V V V V V V V V;
    Inside  "of another process"                 remote::rmr_of_other_process: V V V V V V V V;
}

fn local_read(scene: &Scene) -> Result<Opened> {
    remote::lmr(scene, Privileges::LOCAL_READ)
}

fn local_write(scene: &Scene) -> Result<Opened> {
    remote::lmr(scene, Privileges::LOCAL_WRITE)
}

fn remote_only(scene: &Scene) -> Result<Opened> {
    remote::lmr(scene, BOTH)
}

/// Offset of the client's memory in its region.
const AT: usize = 8192;
const POSTED: u64 = 91;
const TAKEN: u64 = 92;
const SUMMAND: u64 = 5;

/// A post of the server with its own memory. The client's memory is what it transfers from or to.
struct Post<'a> {
    scene: &'a Scene<'a>,
    column: Column,
    segment: Segment,
    /// An RMR context of the client, which a send may invalidate.
    theirs: u32,
}

impl Post<'_> {
    fn post(&self) -> Result<(), Error> {
        let Pair { client, server, .. } = &self.scene.pair;
        let (mine, ep, flags) = (self.segment, &server.ep, CompletionFlags::default());
        let peers = client.lmr.remote_segment(AT, mine.length as usize);
        match self.column {
            Column::Send => ep.post_send(&[mine], POSTED, flags),
            Column::SendWithInvalidate => {
                ep.post_send_with_invalidate(&[mine], self.theirs, POSTED, flags)
            }
            Column::RdmaWrite => ep.post_rdma_write(&[mine], peers, POSTED, flags),
            Column::Receive => ep.post_recv(&[mine], POSTED, flags),
            Column::RdmaRead => ep.post_rdma_read(&[mine], peers, POSTED, flags),
            Column::RdmaReadToRmr => ep.post_rdma_read_to_rmr(mine, peers, POSTED, flags),
            Column::FetchAdd => ep.post_fetch_and_add(SUMMAND, mine, peers, POSTED, flags),
            Column::CmpSwap => ep.post_cmp_and_swap(0, 0, mine, peers, POSTED, flags),
        }
    }

    /// Returns the subtypes of violations: of the protection, of the privileges.
    fn violations(&self) -> (Subtype, Subtype) {
        match self.column {
            Column::Send | Column::SendWithInvalidate | Column::RdmaWrite => {
                (Subtype::PROTECTION_READ, Subtype::PRIVILEGES_READ)
            }
            _ => (Subtype::PROTECTION_WRITE, Subtype::PRIVILEGES_WRITE),
        }
    }

    /// Returns the memory after the operation.
    fn effect(&self) -> [Vec<u8>; 3] {
        let [mut client, server, mut row] = self.scene.memory();
        let length = self.segment.length as usize;
        let start = self.scene.offset(self.segment);
        let (peers, mine) = (AT..AT + length, start..start + length);
        match self.column {
            Column::Send | Column::SendWithInvalidate | Column::RdmaWrite => {
                client[peers].copy_from_slice(&row[mine]);
            }
            Column::FetchAdd => {
                row[mine].copy_from_slice(&client[peers.clone()]);
                let old = client[AT..].first_chunk().copied().unwrap_or_default();
                let new = u64::from_ne_bytes(old).wrapping_add(SUMMAND);
                client[peers].copy_from_slice(&new.to_ne_bytes());
            }
            _ => row[mine].copy_from_slice(&client[peers]),
        }
        [client, server, row]
    }

    /// Carries the operation out.
    fn succeeds(&self) -> Result<()> {
        let (context, expected) = (self.scene.stage.context, self.effect());
        let Pair { client, server, .. } = &self.scene.pair;
        let length = self.segment.length as usize;
        let is_send = matches!(self.column, Column::Send | Column::SendWithInvalidate);
        if is_send {
            client.receive(AT, length, TAKEN)?;
        }
        self.post()?;
        let bytes = length as u64;
        match self.column {
            Column::Receive => {
                client.send(AT, length, TAKEN)?;
                done(&context.next(&server.recv)?, DtoOperation::Receive, bytes, POSTED)?;
                done(&context.next(&client.request)?, DtoOperation::Send, bytes, TAKEN)?;
            }
            _ => done(&context.next(&server.request)?, self.operation(), bytes, POSTED)?,
        }
        if is_send {
            let operation = match self.column {
                Column::Send => DtoOperation::Receive,
                _ => DtoOperation::ReceiveWithInvalidate,
            };
            done(&context.next(&client.recv)?, operation, bytes, TAKEN)?;
        }
        context.until("the bytes have arrived", || Ok(self.scene.memory() == expected))
    }

    fn is_read(&self) -> bool {
        matches!(self.column, Column::RdmaRead | Column::RdmaReadToRmr)
    }

    /// Checks that the DTO fails, that its connection breaks, and that no byte moves.
    fn fails(&self) -> Result<()> {
        let (context, before) = (self.scene.stage.context, self.scene.memory());
        let Pair { client, server, .. } = &self.scene.pair;
        self.post()?;
        let event = context.next(&server.request)?;
        let failed = dto(&event, self.operation(), DtoStatus::LocalProtection)?;
        same("cookie", failed.cookie, POSTED)?;
        for (end, last) in
            [(server, ConnectionEvent::Broken), (client, ConnectionEvent::Disconnected)]
        {
            let event = context.next(&end.connect)?;
            match self.scene.stage.context.server.is_siw() {
                // The report of an error races with the end of the stream.
                true => connection_over(&event)?,
                false => connection(&event, last)?,
            }
        }
        same("memory", self.scene.memory() == before, true)
    }

    /// Returns the operation of the completion of a request.
    fn operation(&self) -> DtoOperation {
        match self.column {
            Column::Send | Column::SendWithInvalidate => DtoOperation::Send,
            Column::RdmaWrite => DtoOperation::RdmaWrite,
            Column::Receive => DtoOperation::Receive,
            Column::RdmaRead | Column::RdmaReadToRmr => DtoOperation::RdmaRead,
            Column::FetchAdd => DtoOperation::FetchAdd,
            Column::CmpSwap => DtoOperation::CmpSwap,
        }
    }

    /// Checks that the post is refused, that nothing was posted, and that no byte has moved.
    fn is_refused(&self, cell: Cell) -> Result<()> {
        let before = self.scene.memory();
        let (protection, privilege) = self.violations();
        let posted = self.post();
        match cell {
            Cell::Protection => refused_as(posted, Type::PROTECTION_VIOLATION, protection)?,
            Cell::Privilege => refused_as(posted, Type::PRIVILEGES_VIOLATION, privilege)?,
            // Of all operations of no bytes, only reads are missing over siw.
            _ if self.is_read() => refused(posted, Type::MODEL_NOT_SUPPORTED)?,
            Cell::None | Cell::May | Cell::Fails => refused(posted, Type::LENGTH_ERROR)?,
        }
        let status = self.scene.pair.server.ep.status()?;
        ensure!(status.recv_idle && status.request_idle, "it was posted: {status:?}");
        same("memory", self.scene.memory() == before, true)
    }
}

/// Returns what a post names of `part`.
fn named(part: Segment, location: Location, column: Column) -> Segment {
    let end = part.address + u64::from(part.length);
    let length = match column {
        Column::FetchAdd | Column::CmpSwap => 8,
        _ => 100,
    };
    let (address, length) = match location {
        Location::Inside | Location::Last => (end - length, length),
        Location::First => (part.address, length),
        Location::Before => (part.address.wrapping_sub(1), length),
        Location::After => (end - length + 1, length),
        Location::Nothing => (part.address, 0),
    };
    Segment { address, length: length as u32, ..part }
}

/// Binds an RMR of the client, whose context the server's send invalidates.
fn clients_rmr(scene: &Scene) -> Result<u32> {
    let client = &scene.pair.client;
    let region = scene.keep(client.ia.register(&client.pz, scene.buffer.clone(), LOCAL)?);
    let rmr = scene.keep(client.ia.create_rmr(&client.pz)?);
    let part = part(&region, 0, 64, BOTH);
    let segment = rmr.bind(&client.ep, &part, 93, CompletionFlags::default())?;
    bound(scene.stage.context, client, &rmr, 93)?;
    Ok(segment.context)
}

/// Tries a cell that breaks its connection.
fn breaking_cell(stage: &Stage, row: &Row, column: Column) -> Result<()> {
    let scene = Scene::new(stage)?;
    let Opened { remote, own } = (row.open)(&scene)?;
    let segment = named(Segment { context: own, ..remote }, row.location, column);
    Post { scene: &scene, column, segment, theirs: 0 }.fails()?;
    stage.others_go_on()
}

/// Tries all cells of a row on one connection: no refusal disturbs it.
fn every_cell(stage: &Stage, row: &Row) -> Result<()> {
    let scene = Scene::new(stage)?;
    let theirs = clients_rmr(&scene)?;
    let Opened { remote, own } = (row.open)(&scene)?;
    let has_atomics = stage.client.query()?.extensions.contains(ATOMICS);
    for (column, cell) in COLUMNS.into_iter().zip(row.cells) {
        if matches!(column, Column::FetchAdd | Column::CmpSwap) && !has_atomics {
            continue;
        }
        let segment = named(Segment { context: own, ..remote }, row.location, column);
        let post = Post { scene: &scene, column, segment, theirs };
        let is_siw = stage.context.server.is_siw();
        let outcome = match cell {
            Cell::May if is_siw && post.is_read() && segment.length == 0 => {
                post.is_refused(Cell::None)
            }
            Cell::May => post.succeeds(),
            Cell::Fails => breaking_cell(stage, row, column),
            refusal => post.is_refused(refusal),
        };
        outcome.with_context(|| format!("{}: {column:?}", row.name))?;
    }
    scene.goes_on()?;
    stage.others_go_on()
}

/// Tries tables.
pub fn every_row(stage: &Stage, tables: &[&[Row]]) -> Result<()> {
    tables.iter().copied().flatten().try_for_each(|row| every_cell(stage, row))
}
