// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Result of a measurement in one boot.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;

/// A measured figure; less is better.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub benchmark: String,
    pub name: String,
    pub unit: String,
    pub ours: f64,
    /// Value of the program compared with, if any.
    pub peer: Option<f64>,
    /// Maximum of the ratio of kDAPL's value to the peer's, or of kDAPL's value without a peer.
    /// `None` if the figure has no limit.
    pub limit: Option<f64>,
}

impl Sample {
    /// Makes a sample of a comparison; `figures` are kDAPL's value and the peer's.
    pub fn new(benchmark: &str, name: &str, unit: &str, figures: (f64, f64), limit: f64) -> Self {
        let (ours, peer) = figures;
        Self { peer: Some(peer), ..Self::alone(benchmark, name, unit, ours, Some(limit)) }
    }

    /// Makes a sample without a comparison.
    pub fn alone(benchmark: &str, name: &str, unit: &str, ours: f64, limit: Option<f64>) -> Self {
        let (benchmark, name, unit) = (benchmark.into(), name.into(), unit.into());
        Self { benchmark, name, unit, ours, peer: None, limit }
    }

    pub fn print(&self) -> Result<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(std::io::stdout().flush()?)
    }
}

/// Reads the samples of all boots, grouped by boot.
pub fn read(files: &[PathBuf]) -> Result<Vec<Vec<Sample>>> {
    let parse = |path: &PathBuf| -> Result<Vec<Sample>> {
        let text = std::fs::read_to_string(path)?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    };
    files.iter().map(|path| parse(path).with_context(|| path.display().to_string())).collect()
}
