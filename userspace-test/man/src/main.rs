// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapl-man`: makes the manual pages of DAT's calls from the comments of `include/dat2`, and the
//! examples from `userspace-test/libkdat/examples`.
//!
//! ```text
//!   header.rs: comments and prototypes of a header
//!   call.rs:   the parts of a call's comment, and their check
//!   page.rs:   a page, in the language of man(7)
//! ```
//!
//! A comment that a page cannot be made of is an error: an argument without a description, a
//! constant that no header has, an example that does not make the call.

mod call;
mod header;
mod page;

use anyhow::{bail, ensure, Context, Result};
use call::Call;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Usage: kdapl-man CHECKOUT FOLDER

Writes the manual pages of DAT's calls to FOLDER/man3 and FOLDER/man7, from the headers and examples of
the checkout.
";

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [checkout, folder] = &arguments[..] else {
        eprint!("{HELP}");
        std::process::exit(2);
    };
    let sources = Sources::read(checkout)?;
    let pages = sources.pages()?;
    for (name, text) in &pages {
        let section = name.rsplit_once('.').context("a page has a section")?.1;
        let place = folder.join(format!("man{section}"));
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        let file = place.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Headers and examples.
struct Sources {
    headers: Vec<(PathBuf, String)>,
    examples: BTreeMap<String, String>,
}

/// Reads the files of a folder with this extension, in the order of their names.
fn files(folder: &Path, extension: &str) -> Result<Vec<(PathBuf, String)>> {
    let listed =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok((path, text))
    };
    paths.into_iter().map(read).collect()
}

impl Sources {
    fn read(checkout: &Path) -> Result<Self> {
        let headers = files(&checkout.join("include/dat2"), "h")?;
        let folder = checkout.join("userspace-test/libkdat/examples");
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let examples = files(&folder, "c")?.into_iter();
        let examples = examples.map(|(path, text)| (name(&path), text)).collect();
        Ok(Self { headers, examples })
    }

    /// Returns the text of each page by the name of its file.
    fn pages(&self) -> Result<BTreeMap<String, String>> {
        let mut pages = BTreeMap::new();
        let mut calls = Vec::new();
        for (path, text) in &self.headers {
            let what = || path.display().to_string();
            for article in header::articles(text).with_context(what)? {
                pages.insert(article.file(), page::of_article(&article));
            }
            calls.extend(header::calls(text).with_context(what)?);
        }
        ensure!(!calls.is_empty(), "the headers have no calls");
        for call in &calls {
            self.check(call, &calls).with_context(|| format!("the comment of {}", call.name))?;
            let example =
                self.example(call).with_context(|| format!("the example of {}", call.name))?;
            pages.insert(format!("{}.3", call.name), page::of_call(call, example));
        }
        // A macro, which has no comment of its own.
        let openv = pages.get("dat_ia_openv.3").context("there is no call dat_ia_openv")?;
        pages.insert("dat_ia_open.3".into(), openv.replacen("dat_ia_openv", "dat_ia_open", 1));
        Ok(pages)
    }

    /// Checks that each constant and each call that a comment names exists.
    fn check(&self, call: &Call, calls: &[Call]) -> Result<()> {
        for word in call.names() {
            let known = self.headers.iter().any(|(_, text)| header::declares(text, &word));
            ensure!(known, "no header declares {word}");
        }
        for other in &call.see {
            let known = calls.iter().any(|one| one.name == *other) || other == "dat_ia_open";
            ensure!(known, "there is no call {other}");
        }
        Ok(())
    }

    /// Returns the part of the example that the page shows, which makes the call.
    fn example(&self, call: &Call) -> Result<&str> {
        let text = self.examples.get(&call.example);
        let text = text.with_context(|| format!("there is no {}", call.example))?;
        let (_, shown) = text.split_once("/* --- */\n").context("it has no line /* --- */")?;
        let macros =
            [call.name.as_str(), if call.name == "dat_ia_openv" { "dat_ia_open" } else { "" }];
        // open_ia() and the like, which the examples share, are in no page.
        if !macros.iter().any(|name| !name.is_empty() && shown.contains(&format!("{name}("))) {
            bail!("{} does not call {}", call.example, call.name);
        }
        Ok(shown)
    }
}
