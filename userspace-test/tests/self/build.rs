// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tells the model, which one test runs beside the kernel, that it is not in a kernel.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(kdapl_host)");
    println!("cargo::rustc-check-cfg=cfg(kdapl_kernel_atomics)");
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rustc-cfg=kdapl_host");
}
