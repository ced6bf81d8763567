// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#![cfg(loom)]
#![expect(
    dead_code,
    unused_imports,
    reason = "only what is concurrent is tested here"
)]

//! Every interleaving of the event ring, of the wait protocol, of upcalls and of what is around a CNO, and every
//! value that a load may see on a weakly ordered machine.
//!
//! Each promise has a counterpart that breaks one ordering or leaves out one step: if loom does not
//! find fault with those, it proves nothing about the rest.

#[path = "../../../rust"]
mod rust {
    pub(crate) mod model;
}

#[path = "loom/allowance.rs"]
mod allowance;
#[path = "loom/cno.rs"]
mod cno;
#[path = "loom/due.rs"]
mod due;
#[path = "loom/grow.rs"]
mod grow;
#[path = "loom/hand.rs"]
mod hand;
#[path = "loom/queue.rs"]
mod queue;
#[path = "loom/quiet.rs"]
mod quiet;
#[path = "loom/ring.rs"]
mod ring;
#[path = "loom/upcall.rs"]
mod upcall;
#[path = "loom/wait.rs"]
mod wait;

/// Tries every interleaving of the threads that `test` spawns.
///
/// It has to spawn all that race: loom does not interleave the thread that it starts with.
fn explore(test: impl Fn() + Send + Sync + 'static) {
    loom::model::Builder::new().check(test);
}

/// Tries the interleavings with at most two preemptions, where every one would be too many.
fn explore_some(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(test);
}
