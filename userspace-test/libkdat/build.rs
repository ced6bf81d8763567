// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Makes the exported functions from the prototypes in `include/dat2`, and the table of the names
//! of codes. So the header is the only place that has a call's signature and a code's name.

use std::{env, fmt::Write, fs, path::PathBuf};

/// Calls that `src/` defines itself.
const OWN: [&str; 6] = [
    "dat_ia_openv",
    "dat_extension_op",
    "dat_ia_ha_related",
    "dat_registry_list_providers",
    "dat_registry_providers_related",
    "dat_strerror",
];

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let include = manifest.join("../../include");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", include.join("dat2").display());
    println!(
        "cargo:rustc-cdylib-link-arg=-Wl,-soname,libkdat.so.{}",
        env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it")
    );
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let translated = bindgen::Builder::default()
        .header(include.join("dat2/udat.h").display().to_string())
        .clang_arg(format!("-I{}", include.display()))
        .allowlist_function("dat_.*")
        .allowlist_type("dat_return_(sub)?type")
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(false)
        .generate()
        .expect("bindgen could not translate include/dat2")
        .to_string();
    fs::write(out.join("exports.rs"), exports(&translated)).expect("OUT_DIR is writable");
    fs::write(out.join("names.rs"), names(&translated)).expect("OUT_DIR is writable");
}

/// Returns a function for each prototype, which calls that of `udat` with the same name.
fn exports(translated: &str) -> String {
    let mut text = String::new();
    for part in translated.split("pub fn ").skip(1) {
        let (name, rest) = part.split_once('(').expect("a function has arguments");
        let (arguments, _) = rest.split_once(") ->").expect("every call returns a code");
        if OWN.contains(&name) {
            continue;
        }
        let arguments = arguments.split_whitespace().collect::<Vec<_>>().join(" ");
        let passed: Vec<_> = arguments
            .split(',')
            .filter_map(|argument| argument.split_once(':'))
            .map(|(argument, _)| argument.trim())
            .collect();
        let passed = passed.join(", ");
        writeln!(
            text,
            "#[no_mangle]\npub extern \"C\" fn {name}({arguments}) -> DAT_RETURN {{\n    \
             udat::calls::{name}({passed})\n}}\n"
        )
        .expect("a String");
    }
    text
}

/// Returns two tables of names: of the types and of the subtypes of codes.
fn names(translated: &str) -> String {
    let mut text = String::new();
    for (table, kind) in [("TYPES", "dat_return_type"), ("SUBTYPES", "dat_return_subtype")] {
        writeln!(text, "const {table}: &[(u32, &CStr)] = &[").expect("a String");
        for line in translated.lines() {
            let constant = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": "));
            let Some((name, rest)) = constant else { continue };
            let value = rest.strip_prefix(kind).and_then(|rest| rest.strip_prefix(" = "));
            if let Some(value) = value.and_then(|value| value.strip_suffix(';')) {
                writeln!(text, "    ({value}, c\"{name}\"),").expect("a String");
            }
        }
        text.push_str("];\n");
    }
    text
}
