// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Rights to a zero-based LMR, and to an RMR of one.

use super::access;
use super::local::{self, own_rows, V};
use super::remote::{opened, peer_rows, Opened, N, Y};
use super::stage::{Scene, Stage, PART};
use crate::end::every_privilege;
use crate::expect::refused;
use crate::raw;
use anyhow::Result;
use libkdapl::raw::call;
use libkdapl::sys::{kdapl_lmr_create, KDAPL_VA_TYPE_ZB};
use libkdapl::{Buffer, Segment, Type};

/// Offset of the region in the memory of the row. A zero-based LMR begins at a page boundary.
const START: usize = 4096;

peer_rows! {
    /// What a peer may do. The columns are those of the other tables of peers. A byte before
    /// address 0 is the last one of all.
    PEERS:
    Live Inside "all of the LMR"                 zero_based:         Y Y Y Y Y N;
    Live First  "its first byte"                 zero_based:         Y Y Y Y Y N;
    Live Last   "its last byte"                  zero_based:         Y Y Y Y Y N;
    Live Before "one byte before the LMR"        zero_based:         N N N N N N;
    Live After  "one byte after the LMR"         zero_based:         N N N N N N;
    Live Inside "the address in the process"     address_in_process: N N N N N N;
    Dead First  "freed"                          freed:              N N N N N N;
    Live Inside "RMR of the LMR"                 bound:              Y Y Y N N Y;
    Live Before "one byte before the bound part" bound:              N N N N N Y;
    Live After  "one byte after the bound part"  bound:              N N N N N Y;
}

mod own {
    use super::*;
    use crate::tests::protection::local::Y;

    own_rows! {
        /// What a post of this side may do. The columns are those of the other tables of posts.
        OWN:
        First  "first bytes of the LMR"         zero_based:         Y Y Y Y Y V Y Y;
        Last   "last bytes of the LMR"          zero_based:         Y Y Y Y Y V Y Y;
        Before "one byte before the LMR"        zero_based:         V V V V V V V V;
        After  "one byte after the LMR"         zero_based:         V V V V V V V V;
        Inside "the address in the process"     address_in_process: V V V V V V V V;
        First  "freed"                          freed:              V V V V V V V V;
        Inside "RMR of the LMR"                 bound:              V V V V V Y V V;
        Before "one byte before the bound part" bound:              V V V V V V V V;
        After  "one byte after the bound part"  bound:              V V V V V V V V;
    }
}

fn register(scene: &Scene) -> Result<kdapl_lmr_create, libkdapl::Error> {
    let ia = &scene.stage.server;
    let mut message = kdapl_lmr_create {
        pz: scene.pair.server.pz.handle().0,
        address: scene.buffer.address(START),
        length: PART as u64,
        privileges: every_privilege(ia).map_or(0, |all| all.0),
        va_type: KDAPL_VA_TYPE_ZB,
        ..Default::default()
    };
    raw::call(ia.device(), call::LMR_CREATE, &mut message)?;
    Ok(message)
}

fn zero_based(scene: &Scene) -> Result<Opened> {
    let made = register(scene)?;
    scene.origin.set(0_u64.wrapping_sub(START as u64));
    let part = Opened::from(Segment { address: 0, ..scene.part(made.rmr_context) });
    Ok(Opened { own: made.lmr_context, ..part })
}

fn address_in_process(scene: &Scene) -> Result<Opened> {
    Ok(opened(scene, &register(scene)?))
}

fn freed(scene: &Scene) -> Result<Opened> {
    let made = register(scene)?;
    scene.free(&scene.stage.server, made.handle)?;
    let part = Opened::from(Segment { address: 0, ..scene.part(made.rmr_context) });
    Ok(Opened { own: made.lmr_context, ..part })
}

fn bound(scene: &Scene) -> Result<Opened> {
    Ok(scene.bind_zero_based()?.segment.into())
}

/// Tries both tables. siw knows the addresses of the process only.
pub fn every_cell(stage: &Stage) -> Result<()> {
    if stage.context.server.is_siw() {
        let pz = stage.server.create_pz()?;
        let made = stage.server.register_zero_based(&pz, Buffer::new(START)?, super::stage::LOCAL);
        return refused(made, Type::MODEL_NOT_SUPPORTED);
    }
    access::every_cell(stage, PEERS)?;
    local::every_row(stage, &[own::OWN])
}
