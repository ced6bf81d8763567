// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Options of the linker.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // `libdat2` unloads the provider when the last adapter is closed. The library stays in memory:
    // another thread may still be returning from a call, and the program may still hold pointers to
    // the function table.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
