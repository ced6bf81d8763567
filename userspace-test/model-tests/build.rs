// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tells the model that it is not in a kernel.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=kdapl_host");
}
