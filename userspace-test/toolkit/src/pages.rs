// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Completions for shells, and manual pages, which clap makes from a command line.

use crate::output;
use anyhow::{Context, Result};
use clap::Args;

/// Arguments of a command that prints completions.
#[derive(Args)]
pub struct CompletionsArgs {
    /// Shell for which to print them
    pub shell: clap_complete::Shell,
}

/// Arguments of a command that writes manual pages.
#[derive(Args)]
pub struct ManArgs {
    /// Folder to write them to
    pub folder: std::path::PathBuf,
}

/// Prints completions of a program.
///
/// # Errors
/// That of the output.
pub fn completions(mut program: clap::Command, args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    output::say(String::from_utf8_lossy(&script).trim_end())
}

/// Writes a page for a program and for each of its commands.
///
/// # Errors
/// If the folder or a page cannot be written.
pub fn man(program: clap::Command, args: &ManArgs) -> Result<()> {
    let folder = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("cannot create {folder}"))?;
    clap_mangen::generate_to(program, &args.folder)
        .with_context(|| format!("cannot write the pages to {folder}"))
}
