// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Compares `include/dat2` with the headers of Debian's `libdapl-dev`, by what the C compiler makes
//! of both: the value of each constant, size and offsets of each struct, and each prototype.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const WRAPPER: &str = "\
#include <netinet/in.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
";

/// Parts of names that ours lack: those of operations that kDAPL does not have, and of macros that
/// say nothing about them.
const LEFT_OUT: [&str; 8] = [
    "COLL",
    "COUNTER",
    "DAT_IB_ADDR",
    "DAT_IB_ERR",
    "DAT_EXTENSIONS",
    "DAT_OPEN_EXT",
    "DAT_CLOSE_EXT",
    "DAT_HANDLE_EXTENDEDOP",
];

/// What a header declares: the text of a value, size or type by its name.
type Declared = BTreeMap<String, String>;

/// Translates the headers in a folder.
fn translated(include: &Path) -> Declared {
    let wrapper = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("headers.h");
    fs::write(&wrapper, WRAPPER).expect("the folder is writable");
    let text = bindgen::Builder::default()
        .header(wrapper.display().to_string())
        .clang_arg(format!("-I{}", include.display()))
        // Macros of 64 bits, which bindgen does not evaluate, become constants.
        .header_contents("masks.h", &masks(include))
        .allowlist_type("(DAT|dat)_.*")
        .allowlist_var("(DAT|MASK)_.*")
        .allowlist_function("dat_.*")
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(true)
        .generate()
        .expect("bindgen could not translate the headers")
        .to_string();
    declared(&text)
}

/// Returns a constant for each macro of a mask in the headers.
fn masks(include: &Path) -> String {
    let files = fs::read_dir(include.join("dat2")).expect("the folder of the headers");
    let mut text = String::from("#include <dat2/udat.h>\n");
    let mut names: Vec<String> = Vec::new();
    for file in files {
        let header = fs::read_to_string(file.expect("a file").path()).expect("a header");
        names.extend(header.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let first = words.next()? == "#define";
            let name = words.next()?.to_owned();
            (first && words.next()?.starts_with("UINT64_C(")).then_some(name)
        }));
    }
    names.sort();
    names.dedup();
    for name in names {
        text += &format!("static const unsigned long long MASK_{name} = {name};\n");
    }
    text
}

/// Collects constants, layouts and prototypes from bindgen's output.
fn declared(text: &str) -> Declared {
    let mut all = Declared::new();
    for line in text.lines().map(str::trim) {
        let constant = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": "));
        if let Some((name, rest)) = constant {
            let value = rest.split_once(" = ").map_or(rest, |(_, value)| value);
            all.insert(name.into(), value.into());
        }
    }
    // ["Size of x"][::std::mem::size_of::<x>() - 8usize], in one line or in two.
    for test in text.split("[\"").skip(1) {
        let number = test.split(';').next().and_then(|test| test.rsplit_once(" - "));
        if let (Some((name, _)), Some((_, number))) = (test.split_once("\"]"), number) {
            all.insert(name.into(), number.into());
        }
    }
    for part in text.split("pub fn ").skip(1) {
        let Some((name, rest)) = part.split_once('(') else { continue };
        let arguments = rest.split(';').next().unwrap_or_default();
        all.insert(name.into(), types(arguments));
    }
    all
}

/// Returns the types of a function without the names of its arguments.
fn types(signature: &str) -> String {
    let words = signature.split_whitespace().filter(|word| !word.ends_with(':'));
    let text = words.collect::<Vec<_>>().join(" ");
    // The end of a list depends on the length of the line.
    let text = text.replace(", )", ")").replace("... )", "...)");
    text.replace("DAT_EXTENDED_OP", "::std::os::raw::c_int")
}

#[test]
fn every_declaration_is_that_of_debians_headers() {
    let debian = PathBuf::from(env::var_os("DAT_INCLUDE").unwrap_or("/usr/include".into()));
    assert!(
        debian.join("dat2/udat.h").exists(),
        "there is no dat2/udat.h in {}: userspace-test/vm/prepare dat fetches libdapl-dev",
        debian.display()
    );
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let (ours, theirs) = (translated(&own), translated(&debian));
    let differ: Vec<_> = ours
        .iter()
        .filter_map(|(name, value)| {
            let other = theirs.get(name)?;
            (other != value).then(|| format!("{name}: {value} here, {other} there"))
        })
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");

    let ours_only: Vec<_> = ours.keys().filter(|name| !theirs.contains_key(*name)).collect();
    assert_eq!(ours_only, ["dat_ia_ha_related", "dat_provider_fini", "dat_provider_init"]);

    let missing: Vec<_> = theirs
        .keys()
        .filter(|name| !ours.contains_key(*name))
        .filter(|name| !LEFT_OUT.iter().any(|part| name.contains(part)))
        .filter(|name| {
            name.starts_with("DAT_") || name.starts_with("MASK_") || name.starts_with("dat_")
        })
        .collect();
    assert!(missing.is_empty(), "not in include/dat2: {missing:#?}");
    // Structs, constants and calls: the comparison is not an empty one.
    for kind in ["Size of", "Offset of", "DAT_", "MASK_", "dat_"] {
        let count = ours.keys().filter(|name| name.starts_with(kind)).count();
        assert!(count > 30, "{count} declarations '{kind}...'");
    }
}
