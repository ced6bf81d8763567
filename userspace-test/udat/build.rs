// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Translates the headers of `include/dat2` to Rust: every struct, with a test of each offset, and
//! every call with its documentation.

use std::{env, fs, path::PathBuf};

const WRAPPER: &str = "\
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
";

fn main() {
    let include =
        PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../include");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", include.join("dat2").display());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let wrapper = out.join("dat.h");
    fs::write(&wrapper, WRAPPER).expect("OUT_DIR is writable");

    bindgen::Builder::default()
        .header(wrapper.display().to_string())
        .clang_arg(format!("-I{}", include.display()))
        .allowlist_type("(DAT|dat)_.*")
        .allowlist_var("DAT_.*")
        .allowlist_function("dat_.*")
        .blocklist_type("sockaddr")
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(true)
        .rust_target(bindgen::RustTarget::stable(82, 0).unwrap_or_default())
        .generate()
        .expect("bindgen could not translate include/dat2")
        .write_to_file(out.join("dat.rs"))
        .expect("OUT_DIR is writable");
}
