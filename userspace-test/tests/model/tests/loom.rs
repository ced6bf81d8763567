// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#![cfg(loom)]
#![expect(
    dead_code,
    unused_imports,
    reason = "these tests use the concurrent part of the model only"
)]

//! Explores every interleaving of the model's concurrent code with loom, and every value that a
//! load may return on a weakly ordered machine: the event ring, the wait protocol, upcalls, the
//! state of EVDs at a CNO (Consumer Notification Object), and the free slots of Rust consumers.
//!
//! Each guarantee also has tests that break one ordering or omit one step. loom has to find an
//! error in those, otherwise it proves nothing about the rest.

#[path = "../../../../rust"]
mod rust {
    pub(crate) mod model;
}

#[path = "../../../../rust/kdat"]
mod kdat {
    pub(crate) mod free_list;
}

#[path = "loom/allowance.rs"]
mod allowance;
#[path = "loom/bell.rs"]
mod bell;
#[path = "loom/cno.rs"]
mod cno;
#[path = "loom/cno_agent.rs"]
mod cno_agent;
#[path = "loom/command.rs"]
mod command;
#[path = "loom/direct_event.rs"]
mod direct_event;
#[path = "loom/free_list.rs"]
mod free_list;
#[path = "loom/grow.rs"]
mod grow;
#[path = "loom/mapped_posts.rs"]
mod mapped_posts;
#[path = "loom/mapped_ring.rs"]
mod mapped_ring;
#[path = "loom/pending.rs"]
mod pending;
#[path = "loom/queue.rs"]
mod queue;
#[path = "loom/quiet.rs"]
mod quiet;
#[path = "loom/recent_region.rs"]
mod recent_region;
#[path = "loom/ring.rs"]
mod ring;
#[path = "loom/shortest_delay.rs"]
mod shortest_delay;
#[path = "loom/upcall.rs"]
mod upcall;
#[path = "loom/wait.rs"]
mod wait;

/// Explores every interleaving of the threads that `test` spawns.
///
/// All concurrent code has to run in spawned threads: loom does not interleave the initial one.
fn explore(test: impl Fn() + Send + Sync + 'static) {
    loom::model::Builder::new().check(test);
}

/// Explores the interleavings with at most two preemptions, where all of them would take too long.
fn explore_some(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(test);
}
