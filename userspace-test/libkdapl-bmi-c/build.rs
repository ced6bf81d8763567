// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Translates the types and numbers of `include/bmi/bmi.h`, so that the header is the only place
//! that has them.

use std::path::{Path, PathBuf};
use std::{env, fmt::Write, fs};

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
    let wrapper = out.join("wrapper.h");
    fs::write(&wrapper, wrapper_text(&header)).expect("OUT_DIR is writable");
    bindgen::Builder::default()
        .header(wrapper.display().to_string())
        .allowlist_type("BMI_unexpected_info")
        .allowlist_var("(NUMBER_OF_)?BMI_.*")
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(false)
        .generate()
        .expect("bindgen could not translate include/bmi/bmi.h")
        .write_to_file(out.join("header.rs"))
        .expect("OUT_DIR is writable");
}

/// Returns a C header that includes `bmi.h` and defines a `static const` for each number of an
/// error: bindgen does not expand the macros in them.
fn wrapper_text(header: &Path) -> String {
    let text = fs::read_to_string(header)
        .unwrap_or_else(|e| panic!("cannot read {}: {e}", header.display()));
    let mut wrapper = format!("#include \"{}\"\n", header.display());
    for line in text.lines().filter(|line| line.starts_with("#define BMI_E")) {
        let name = line.split_whitespace().nth(1).expect("#define NAME VALUE");
        writeln!(wrapper, "static const int NUMBER_OF_{name} = {name};").expect("a String");
    }
    wrapper
}
