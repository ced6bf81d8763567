// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Translates the headers of Debian's `libdapl-dev` to Rust: every struct of the provider
//! interface, with a test of each offset.

use std::{env, fs, path::PathBuf};

/// Headers of the provider interface. The C library defines the socket addresses.
const WRAPPER: &str = "\
#include <netinet/in.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DAT_INCLUDE");
    // `libdat2` unloads the provider when the last adapter is closed. The library stays in memory:
    // another thread may still be returning from a call, and the program may still hold pointers to
    // the function table.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");

    let include = PathBuf::from(env::var_os("DAT_INCLUDE").unwrap_or("/usr/include".into()));
    assert!(
        include.join("dat2/udat.h").exists(),
        "there is no dat2/udat.h in {}: install libdapl-dev, or let DAT_INCLUDE name the folder \
         that its headers were unpacked to (userspace-test/vm/prepare dat fetches them)",
        include.display()
    );
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let wrapper = out.join("dat.h");
    fs::write(&wrapper, WRAPPER).expect("OUT_DIR is writable");

    bindgen::Builder::default()
        .header(wrapper.display().to_string())
        .clang_arg(format!("-I{}", include.display()))
        .allowlist_type("(DAT|dat)_.*")
        .allowlist_var("DAT_.*")
        .blocklist_type("sockaddr")
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(true)
        .rust_target(bindgen::RustTarget::stable(82, 0).unwrap_or_default())
        .generate()
        .expect("bindgen could not translate the headers of libdapl-dev")
        .write_to_file(out.join("dat.rs"))
        .expect("OUT_DIR is writable");
}
