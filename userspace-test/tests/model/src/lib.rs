// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests of the module's `model/` on the host, from the same source files and without a kernel.
//!
//! * `cargo test -p model-tests` runs unit tests and property tests.
//! * `RUSTFLAGS='--cfg loom' cargo test -p model-tests --test loom --release` explores every
//!   interleaving of the concurrent code.
//! * `tests/model/mutants` runs mutation tests: it checks that a test fails if a line of the model
//!   changes.
#![cfg_attr(not(test), no_std)]
#![expect(dead_code, reason = "the kernel's build reports unused code")]
#![cfg_attr(
    not(all(test, not(loom))),
    expect(unused_imports, reason = "only the tests use them")
)]

// For an inline module, the path names a folder, so `model.rs` finds `model/` as in the kernel.
#[path = "../../../../rust"]
mod rust {
    pub(crate) mod model;
}

// The pure part of the crate for consumers in the kernel.
#[path = "../../../../rust/kdat"]
mod kdat {
    pub(crate) mod free_list;
}

// The pure parts of the NVMe transports.
#[path = "../../../../nvme"]
mod nvme {
    pub(crate) mod target {
        pub(crate) mod slots;
    }
    pub(crate) mod wire;
}

#[cfg(all(test, not(loom)))]
mod tests;
