// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A deterministic simulation: engines on nodes, and a network between them.
//!
//! Each connection delivers in order, and completes requests in order. All else is in random order:
//! which connection delivers next, when a completion is reported, when memory is exposed. A seed
//! determines a run.
//!
//! The simulation checks what no engine may do: access memory that is not exposed, use the buffers
//! of a complete operation, overflow a send queue, or send a message for which no receive is
//! posted.

mod connections;
mod endings;
mod home;
mod memory;
mod network;
mod node;
mod world;

pub use self::{
    home::{
        Request,
        SimHome, //
    },
    memory::Buffers,
    network::EndState,
    node::{
        accesses,
        Node,
        Settings,
        SMALL, //
    },
    world::World, //
};
