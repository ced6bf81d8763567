// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Translates the types and numbers of `include/bmi/bmi.h`, so that the header is the only place
//! that has them.

use std::{env, path::PathBuf};

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let header = manifest.join("../../include/bmi/bmi.h");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", header.display());
    println!(
        "cargo:rustc-cdylib-link-arg=-Wl,-soname,libkdapl_bmi.so.{}",
        env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it")
    );
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    bindgen::Builder::default()
        .header(header.display().to_string())
        .allowlist_type("BMI_unexpected_info")
        .allowlist_var("BMI_.*")
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(false)
        .generate()
        .expect("bindgen could not translate include/bmi/bmi.h")
        .write_to_file(out.join("header.rs"))
        .expect("OUT_DIR is writable");
}
