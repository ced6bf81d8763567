// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Sets `cfg(kdapl_host)`: the model is compiled for the host.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=kdapl_host");
}
