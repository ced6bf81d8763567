// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Translates the ioctl header to Rust: the structs with bindgen, and each request number through a
//! constant that the C front end evaluates. (`_IOWR()` contains a `sizeof`, which bindgen does not
//! expand in a macro.)

use std::{env, fmt::Write, fs, path::PathBuf};

fn main() {
    let include = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../include/uapi");
    let header = include.join("rdma/kdapl.h");
    println!("cargo:rerun-if-changed={}", include.join("rdma").display());
    println!("cargo:rerun-if-changed=build.rs");

    let text = fs::read_to_string(&header)
        .unwrap_or_else(|e| panic!("cannot read the ioctl header {}: {e}", header.display()));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let wrapper = out.join("wrapper.h");
    fs::write(&wrapper, wrapper_text(&text)).expect("OUT_DIR is writable");

    bindgen::Builder::default()
        .header(wrapper.display().to_string())
        .clang_arg(format!("-I{}", include.display()))
        .allowlist_item("(KDAPL|kdapl|IOC_KDAPL)_.*")
        .derive_default(true)
        .no_default("kdapl_ep_attr")
        .layout_tests(true)
        .rust_target(bindgen::RustTarget::stable(82, 0).unwrap_or_default())
        .generate()
        .expect("bindgen could not translate include/uapi/rdma/kdapl.h")
        .write_to_file(out.join("uapi.rs"))
        .expect("OUT_DIR is writable");
}

/// Returns a C header that includes the ioctl header and defines a `static const` for each request
/// number.
fn wrapper_text(text: &str) -> String {
    let mut wrapper = String::from("#include <rdma/kdapl.h>\n");
    for line in text.lines().filter(|l| l.contains("_IOWR(KDAPL_IOC_MAGIC")) {
        let name = line.split_whitespace().nth(1).expect("#define NAME VALUE");
        writeln!(wrapper, "static const __u32 IOC_{name} = {name};").expect("a String");
    }
    wrapper
}
