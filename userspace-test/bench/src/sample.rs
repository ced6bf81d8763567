// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What one boot measured of one thing.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;

/// One figure; less is better.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub benchmark: String,
    pub name: String,
    pub unit: String,
    pub ours: f64,
    /// The other side of a comparison, if it is one.
    pub peer: Option<f64>,
    /// What the ratio of ours to the peer's may be, or ours where there is no peer. Without one the
    /// figure is only stated.
    pub limit: Option<f64>,
}

impl Sample {
    /// `figures`: ours, and what it is compared with.
    pub fn new(benchmark: &str, name: &str, unit: &str, figures: (f64, f64), limit: f64) -> Self {
        let (ours, peer) = figures;
        Self { peer: Some(peer), ..Self::alone(benchmark, name, unit, ours, Some(limit)) }
    }

    /// Compared with nothing but a limit, if there is one.
    pub fn alone(benchmark: &str, name: &str, unit: &str, ours: f64, limit: Option<f64>) -> Self {
        let (benchmark, name, unit) = (benchmark.into(), name.into(), unit.into());
        Self { benchmark, name, unit, ours, peer: None, limit }
    }

    pub fn print(&self) -> Result<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(std::io::stdout().flush()?)
    }
}

/// The samples of all boots, those of one boot together.
pub fn read(files: &[PathBuf]) -> Result<Vec<Vec<Sample>>> {
    let parse = |path: &PathBuf| -> Result<Vec<Sample>> {
        let text = std::fs::read_to_string(path)?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    };
    files.iter().map(|path| parse(path).with_context(|| path.display().to_string())).collect()
}
