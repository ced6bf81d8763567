// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The module's `model/`, compiled on the host: the same files, tested without a kernel.
//!
//! * `cargo test -p model-tests`: tables, edge cases and properties;
//! * `RUSTFLAGS='--cfg loom' cargo test -p model-tests --test loom --release`: every interleaving
//!   of the event ring and of the wait protocol;
//! * `model-tests/mutants`: whether a test notices when a line of the model changes.
#![cfg_attr(not(test), no_std)]
#![expect(
    dead_code,
    reason = "what the kernel uses is for the kernel's build to say"
)]
#![cfg_attr(
    not(all(test, not(loom))),
    expect(unused_imports, reason = "nobody is here to use them")
)]

// An inline module with a path is a folder to the compiler, so that `model.rs` finds `model/`
// as it does in the kernel.
#[path = "../../../rust"]
mod rust {
    pub(crate) mod model;
}

#[cfg(all(test, not(loom)))]
mod tests;
