// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The tables of what a peer may do through a context.

use super::stage::{Scene, Stranger, LOCAL};
use crate::end::{every_privilege, Pair, Shape};
use crate::tests::rmr::scene::BOTH;
use anyhow::Result;
use libkdapl::sys::kdapl_lmr_create;
use libkdapl::{Privileges, Segment};
use std::rc::Rc;

/// Operation of a peer. They are the columns of the tables, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Read,
    Write,
    WriteImmed,
    FetchAdd,
    CmpSwap,
    Invalidate,
}

pub const COLUMNS: [Column; 6] = [
    Column::Read,
    Column::Write,
    Column::WriteImmed,
    Column::FetchAdd,
    Column::CmpSwap,
    Column::Invalidate,
];

/// Part of the memory that the peer names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// All that the context opens. Atomic operations: its last word.
    Inside,
    /// Its first byte. Atomic operations: its first word.
    First,
    /// Its last byte. Atomic operations: its last word.
    Last,
    /// A byte before it and its first byte. Atomic operations: the word before it.
    Before,
    /// Its last byte and the byte after it. Atomic operations: the word after it.
    After,
    /// No bytes. There are no atomic operations of no bytes.
    Nothing,
}

/// Result of a cell, by DAT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// The operation succeeds.
    May,
    /// The connection breaks, no byte moves, the operation is REMOTE_ACCESS.
    MayNot,
    /// The call is refused: there is no such operation.
    None,
}

/// Owner of a context.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// Of an LMR of the Endpoint's PZ, or of an RMR that is bound there.
    Live,
    /// Of an RMR that is bound in another PZ.
    Foreign,
    /// Of no memory, or of an LMR of another PZ.
    Dead,
}

/// Contexts of memory that a row has opened.
pub struct Opened {
    /// The part, as the peer names it.
    pub remote: Segment,
    /// Its context on its own side.
    pub own: u32,
}

impl From<Segment> for Opened {
    /// A context that is the same on both sides: of an RMR, or of no memory.
    fn from(remote: Segment) -> Self {
        Self { own: remote.context, remote }
    }
}

/// Opens memory of the server.
pub type Open = fn(&Scene) -> Result<Opened>;

/// A row: how the server opens the memory, and what its peer may do then.
pub struct Row {
    pub name: &'static str,
    pub open: Open,
    pub validity: Validity,
    pub location: Location,
    pub cells: [Cell; 6],
}

macro_rules! peer_rows {
    ($(#[$doc:meta])* $list:ident: $(
        $validity:ident $location:ident $name:literal $open:ident: $($cell:ident)*;
    )*) => {
        $(#[$doc])*
        pub const $list: &[$crate::tests::protection::remote::Row] =
            &[$($crate::tests::protection::remote::Row {
            name: $name,
            open: $open,
            validity: $crate::tests::protection::remote::Validity::$validity,
            location: $crate::tests::protection::remote::Location::$location,
            cells: [$($cell),*],
        }),*];
    };
}
pub(super) use peer_rows;

pub const Y: Cell = Cell::May;
pub const N: Cell = Cell::MayNot;
const O: Cell = Cell::None;

// The columns are: RDMA read, RDMA write, RDMA write with immediate data, fetch and add, compare
// and swap, send with invalidate.

peer_rows! {
    /// LMRs. A peer has the remote privileges that the LMR was created with (`dat_lmr_create`), in
    /// the PZ of its Endpoint, until the LMR is freed. A send invalidates RMR contexts only: the
    /// owner of an LMR decides how long it is registered. An operation of no bytes accesses no
    /// memory, so none is checked (InfiniBand: C9-88).
    LMRS:
    Live Inside  "all privileges"           all_privileges:       Y Y Y Y Y N;
    Live Inside  "REMOTE_READ"              remote_read:          Y N N N N N;
    Live Inside  "REMOTE_WRITE"             remote_write:         N Y Y N N N;
    Live Inside  "REMOTE_ATOMIC"            remote_atomic:        N N N Y Y N;
    Live Inside  "local privileges"         local:                N N N N N N;
    Live Inside  "no privilege"             none:                 N N N N N N;
    Live Before  "one byte before the LMR"  all_privileges:       N N N N N N;
    Live After   "one byte after the LMR"   all_privileges:       N N N N N N;
    Live Nothing "no bytes of the LMR"      local:                Y Y Y O O N;
    Dead Nothing "no bytes of no LMR"       unknown:              Y Y Y O O N;
    Dead Inside  "unknown context"          unknown:              N N N N N N;
    Dead Inside  "freed"                    freed_lmr:            N N N N N N;
    Dead Inside  "of another PZ"            lmr_of_other_pz:      N N N N N N;
    Dead Inside  "of another adapter"       lmr_of_other_adapter: N N N N N N;
    Dead Inside  "of another process"       lmr_of_other_process: N N N N N N;
}

peer_rows! {
    /// RMRs. A peer has the privileges of the last bind (`dat_rmr_bind`), from its completion until
    /// another bind, an unbind, a free, or an invalidation by a peer. The scope of an RMR is its
    /// PZ: the Endpoint of the bind does not matter. No bind gives the right of atomic operations.
    /// A context that a peer has invalidated may be invalidated again, until another bind.
    RMRS:
    Dead Inside  "before a bind"                       before_bind:          N N N N N N;
    Live Inside  "bound for reading and writing"       bound_for_both:       Y Y Y N N Y;
    Live Inside  "bound for reading"                   bound_for_reading:    Y N N N N Y;
    Live Inside  "bound for writing"                   bound_for_writing:    N Y Y N N Y;
    Live Inside  "bound for nothing"                   bound_for_nothing:    N N N N N Y;
    Live Inside  "bound again with fewer privileges"   bound_again:          Y N N N N Y;
    Live Inside  "bound through another EP of the PZ"  bound_by_other_ep:    Y Y Y N N Y;
    Dead Inside  "old context after another bind"      old_context:          N N N N N N;
    Dead Inside  "unbound"                             unbound:              N N N N N N;
    Dead Inside  "freed"                               freed_rmr:            N N N N N N;
    Dead Inside  "freed with its LMR"                  freed_with_lmr:       N N N N N N;
    Dead Inside  "invalidated by a peer"               invalidated:          N N N N N Y;
    Live Before  "one byte before the bound part"      bound_for_both:       N N N N N Y;
    Live After   "one byte after the bound part"       bound_for_both:       N N N N N Y;
    Live Nothing "no bytes of what is bound"           bound_for_nothing:    Y Y Y O O Y;
    Foreign Inside  "of another PZ"                       rmr_of_other_pz:      N N N N N N;
    Foreign Inside  "of another adapter"                  rmr_of_other_adapter: N N N N N N;
    Foreign Inside  "of another process"                  rmr_of_other_process: N N N N N N;
}

pub fn opened(scene: &Scene, made: &kdapl_lmr_create) -> Opened {
    Opened { remote: scene.part(made.rmr_context), own: made.lmr_context }
}

pub fn lmr(scene: &Scene, privileges: Privileges) -> Result<Opened> {
    Ok(opened(scene, &scene.lmr(privileges)?))
}

pub fn all_privileges(scene: &Scene) -> Result<Opened> {
    lmr(scene, every_privilege(&scene.stage.server)?)
}

pub fn remote_read(scene: &Scene) -> Result<Opened> {
    lmr(scene, LOCAL | Privileges::REMOTE_READ)
}

pub fn remote_write(scene: &Scene) -> Result<Opened> {
    lmr(scene, LOCAL | Privileges::REMOTE_WRITE)
}

/// Without atomic operations there is no such privilege.
pub fn remote_atomic(scene: &Scene) -> Result<Opened> {
    let atomic = every_privilege(&scene.stage.server)?.0 & Privileges::REMOTE_ATOMIC.0;
    lmr(scene, LOCAL | Privileges(atomic))
}

pub fn local(scene: &Scene) -> Result<Opened> {
    lmr(scene, LOCAL)
}

pub fn none(scene: &Scene) -> Result<Opened> {
    lmr(scene, Privileges(0))
}

/// Returns a context that was never used: the device counts them upwards.
pub fn unknown(scene: &Scene) -> Result<Opened> {
    let last = scene.lmr(Privileges::ALL)?.rmr_context;
    Ok(scene.part(last ^ 0x0040_0000).into())
}

pub fn freed_lmr(scene: &Scene) -> Result<Opened> {
    let made = scene.lmr(Privileges::ALL)?;
    scene.free(&scene.stage.server, made.handle)?;
    Ok(opened(scene, &made))
}

pub fn lmr_of_other_pz(scene: &Scene) -> Result<Opened> {
    let ia = &scene.stage.server;
    let pz = scene.keep(ia.create_pz()?);
    Ok(opened(scene, &scene.lmr_in(&pz, ia, every_privilege(ia)?)?))
}

pub fn lmr_of_other_adapter(scene: &Scene) -> Result<Opened> {
    let ia = scene.keep(scene.stage.context.open_server()?);
    let pz = scene.keep(ia.create_pz()?);
    Ok(opened(scene, &scene.lmr_in(&pz, &ia, every_privilege(&ia)?)?))
}

pub fn lmr_of_other_process(scene: &Scene) -> Result<Opened> {
    let Stranger { lmr, own, .. } = scene.stage.stranger;
    Ok(Opened { remote: lmr, own })
}

pub fn before_bind(scene: &Scene) -> Result<Opened> {
    let server = &scene.pair.server;
    let rmr = scene.keep(server.ia.create_rmr(&server.pz)?);
    Ok(scene.part(rmr.query()?.rmr_context).into())
}

pub fn bound_for_both(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind(BOTH)?.segment.into())
}

pub fn bound_for_reading(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind(Privileges::REMOTE_READ)?.segment.into())
}

pub fn bound_for_writing(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind(Privileges::REMOTE_WRITE)?.segment.into())
}

pub fn bound_for_nothing(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind(Privileges(0))?.segment.into())
}

pub fn bound_again(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind(BOTH)?.again(Privileges::REMOTE_READ)?.segment.into())
}

pub fn bound_by_other_ep(scene: &Scene) -> Result<Opened> {
    let ep = scene.another_ep()?;
    Ok(scene.bind_through(&scene.pair, &ep, BOTH)?.segment.into())
}

pub fn old_context(scene: &Scene) -> Result<Opened> {
    let bound = scene.bind(BOTH)?;
    let old = bound.segment;
    bound.again(BOTH)?;
    Ok(old.into())
}

pub fn unbound(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind(BOTH)?.unbind()?.segment.into())
}

pub fn freed_rmr(scene: &Scene) -> Result<Opened> {
    let bound = scene.bind(BOTH)?;
    bound.rmr.free()?;
    Ok(bound.segment.into())
}

pub fn freed_with_lmr(scene: &Scene) -> Result<Opened> {
    let bound = scene.bind(BOTH)?;
    bound.rmr.free()?;
    bound.lmr.free()?;
    Ok(bound.segment.into())
}

pub fn invalidated(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind(BOTH)?.invalidated()?.segment.into())
}

pub fn rmr_of_other_pz(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind_elsewhere()?.segment.into())
}

pub fn rmr_of_other_adapter(scene: &Scene) -> Result<Opened> {
    let pair = scene.keep(Rc::new(Pair::new(scene.stage.context, Shape::default())?));
    Ok(scene.bind_through(&pair, &pair.server.ep, BOTH)?.segment.into())
}

pub fn rmr_of_other_process(scene: &Scene) -> Result<Opened> {
    Ok(scene.stage.stranger.rmr.into())
}
