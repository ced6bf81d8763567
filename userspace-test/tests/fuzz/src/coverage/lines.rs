// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Finds the source line of each branch with `addr2line`, even in inlined functions. A line may
//! have several branches, in several places.

use super::{Covered, Sites};
use anyhow::{ensure, Context as _, Result};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The section that `merge.lds` puts all code into.
const CODE: &str = ".ltext";
/// Folders of the module in the paths that the compiler stores.
const OURS: &[&str] =
    &["rust/chardev", "rust/dat", "rust/model", "rust/rdma", "rust/sys", "rust/kapi"];

/// Lines with branches of each file, and whether any branch of the line has run.
pub type Lines = BTreeMap<String, BTreeMap<u32, bool>>;

/// Looks up all branches that do not lead to a panic.
///
/// # Errors
/// If `addr2line` is missing.
pub fn lines(module: &Path, sites: &Sites, covered: &Covered) -> Result<Lines> {
    let counted = sites.0.iter().zip(&covered.0).filter(|(site, run)| **run || !site.panics);
    let counted: Vec<_> = counted.map(|(site, run)| (site.address, *run)).collect();
    let asked: Vec<_> = counted.iter().map(|(address, _)| format!("{address:#x}")).collect();
    let asked = asked.join("\n") + "\n";
    let mut command = Command::new("addr2line");
    command.args(["-a", "-i", "-j", CODE, "-e"]).arg(module);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().context("no pipe")?;
    // Writes in another thread, since addr2line answers meanwhile.
    let writer = std::thread::spawn(move || input.write_all(asked.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("the thread ends")?;
    ensure!(output.status.success(), "addr2line: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let mut answers = text.split("0x").skip(1);
    let mut lines = Lines::new();
    for (_, run) in counted {
        let answer = answers.next().context("addr2line has too few answers")?;
        if let Some((file, line)) = answer.lines().skip(1).find_map(place) {
            *lines.entry(file).or_default().entry(line).or_default() |= run;
        }
    }
    Ok(lines)
}

/// Returns the innermost frame in the module's own files.
fn place(frame: &str) -> Option<(String, u32)> {
    let (path, line) = frame.split_once(".rs:")?;
    let start = OURS.iter().filter_map(|folder| path.find(&format!("/{folder}"))).next()?;
    let digits = line.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((format!("{}.rs", &path[start + 1..]), digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn frames_are_of_files() {
        let frame = "/somewhere/rust/dat/ep.rs:12 (discriminator 3)";
        assert_eq!(place(frame), Some(("rust/dat/ep.rs".into(), 12)));
        assert_eq!(place("/somewhere/library/core/src/option.rs:12"), None);
        assert_eq!(place("??:0"), None);
    }
}
