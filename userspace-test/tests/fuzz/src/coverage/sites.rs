// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Finds the branches of a module's counters in its file.

use anyhow::{Context as _, Result};
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex, SymbolKind,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A branch with a counter.
#[derive(Clone, Debug)]
pub struct Site {
    /// The function that contains the branch after inlining.
    pub function: String,
    /// The file of that function, according to its modules.
    pub file: String,
    /// Address in its section.
    pub address: u64,
    /// Set if the branch leads only to a panic, which no program may reach.
    pub panics: bool,
}

/// All branches of a module, in the order of the counters.
#[derive(Clone, Debug)]
pub struct Sites(pub Vec<Site>);

/// Functions by section and start address: mangled name and end.
type Functions = BTreeMap<(usize, u64), (String, u64)>;

impl Sites {
    /// Reads the branches from `kdapl.ko`.
    ///
    /// # Errors
    /// If the file is no module with counters.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = object::File::parse(&*bytes)?;
        let table = file.section_by_name("__sancov_pcs");
        let table = table.with_context(|| format!("{} has no counters", path.display()))?;
        let functions = functions(&file);
        // Each counter has an address and a word of flags.
        let mut sites = vec![None; (table.size() / 16) as usize];
        for (at, relocation) in table.relocations() {
            let Some(slot) = sites.get_mut((at / 16) as usize) else { continue };
            let (section, base) = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol = file.symbol_by_index(index)?;
                    (symbol.section_index(), symbol.address())
                }
                RelocationTarget::Section(index) => (Some(index), 0),
                _ => continue,
            };
            let address = base.wrapping_add_signed(relocation.addend());
            let Some(section) = section else { continue };
            *slot = site(&functions, section, address).map(|site| ((section.0, address), site));
        }
        mark_panics(&file, &mut sites);
        let unknown = Site { function: "?".into(), file: "?".into(), address: 0, panics: false };
        Ok(Self(
            sites.into_iter().map(|site| site.map_or(unknown.clone(), |(_, site)| site)).collect(),
        ))
    }
}

/// A section, and an address in it.
type Address = (usize, u64);

/// Marks the last branch before each reference to a panic of the core crate.
fn mark_panics(file: &object::File<'_>, sites: &mut [Option<(Address, Site)>]) {
    let mut by_address = BTreeMap::new();
    for (slot, site) in sites.iter_mut().flatten() {
        by_address.insert(*slot, site);
    }
    for section in file.sections() {
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let name = file.symbol_by_index(symbol).and_then(|symbol| symbol.name());
            if !name.is_ok_and(is_panic) {
                continue;
            }
            let index = section.index().0;
            if let Some((_, site)) = by_address.range_mut((index, 0)..=(index, at)).next_back() {
                site.panics = true;
            }
        }
    }
}

/// Returns whether a function of the core crate always panics.
fn is_panic(mangled: &str) -> bool {
    let name = format!("{:#}", rustc_demangle::demangle(mangled));
    name.starts_with("core::panicking::")
        || name.starts_with("core::slice::index::") && name.ends_with("_fail")
        || name.starts_with("core::option::") && name.ends_with("_failed")
        || name.starts_with("core::result::") && name.ends_with("_failed")
}

fn functions(file: &object::File<'_>) -> Functions {
    let symbols = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
    symbols
        .filter_map(|symbol| {
            let section = symbol.section_index()?.0;
            let name = symbol.name().ok()?.to_string();
            Some(((section, symbol.address()), (name, symbol.address() + symbol.size())))
        })
        .collect()
}

fn site(functions: &Functions, section: SectionIndex, address: u64) -> Option<Site> {
    let (_, (name, end)) = functions.range((section.0, 0)..=(section.0, address)).next_back()?;
    let function = format!("{:#}", rustc_demangle::demangle(name));
    (address < *end).then(|| Site { function, file: file_of(name), address, panics: false })
}

/// Returns the file of a function: the modules after the crate in its mangled name.
fn file_of(mangled: &str) -> String {
    let Some(start) = mangled.find("5kdapl") else {
        let exported = mangled.starts_with("dat_");
        return if exported { "rust/kapi (exports)".into() } else { "(other crates)".into() };
    };
    let mut rest = &mangled[start + "5kdapl".len()..];
    let mut modules = Vec::new();
    while let Some((name, behind)) = identifier(rest) {
        modules.push(name);
        rest = behind;
    }
    // The name of an impl block has only modules before its type; that of a free function contains
    // the function too. A component with a capital letter is a type.
    let before = &mangled[..start];
    let in_impl =
        before.trim_start_matches("_RI").trim_start_matches("_R").trim_start_matches("Nv");
    let in_impl = in_impl.trim_start_matches("NC").trim_start_matches("Nv").starts_with(['M', 'X']);
    modules.retain(|name| name.starts_with(|c: char| c.is_lowercase()));
    if !in_impl && modules.len() > 1 {
        modules.pop();
    }
    format!("rust/{}.rs", if modules.is_empty() { "kdapl".into() } else { modules.join("/") })
}

/// Parses a length and so many characters.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let name = text[digits..].trim_start_matches('_');
    (length <= name.len()).then(|| name.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::file_of;

    #[test]
    fn functions_are_of_files() {
        let of = "_RNvMNtNtNtCscSR6FH4x5KH_5kdapl3dat2ep7connectNtB4_2Ep7connect";
        assert_eq!(file_of(of), "rust/dat/ep/connect.rs");
        let of = "_RNvNtNtCscSR6FH4x5KH_5kdapl3sys7debugfs6create";
        assert_eq!(file_of(of), "rust/sys/debugfs.rs");
        let of = "_RNvXs0_NtNtCscSR6FH4x5KH_5kdapl3dat3cspNtB5_3CspNtB7_4Face3new";
        assert_eq!(file_of(of), "rust/dat/csp.rs");
        assert_eq!(file_of("dat_ep_create"), "rust/kapi (exports)");
    }
}
