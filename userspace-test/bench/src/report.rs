// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The samples of several boots as figures.

use crate::sample::Sample;
use anyhow::{ensure, Context, Result};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::path::Path;

/// One comparison: medians over the boots.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub name: String,
    pub unit: String,
    pub ours: f64,
    pub peer: f64,
    /// Ours to the peer's; less is better.
    pub ratio: f64,
    /// What the ratio may be.
    pub limit: f64,
    /// The least and the largest ratio of a boot.
    pub ratio_min: f64,
    pub ratio_max: f64,
    pub boots: usize,
}

impl Figure {
    pub fn kept(&self) -> bool {
        self.ratio <= self.limit
    }

    /// How far the boots are apart, of the ratio.
    pub fn spread(&self) -> f64 {
        (self.ratio_max - self.ratio_min) / self.ratio
    }
}

/// One figure for each name and unit, in the order of the first boot.
pub fn figures(boots: &[Vec<Sample>]) -> Result<Vec<Figure>> {
    let first = boots.first().context("no boot measured anything")?;
    ensure!(!first.is_empty(), "the first boot measured nothing");
    first.iter().map(|sample| figure(sample, boots)).collect()
}

fn figure(of: &Sample, boots: &[Vec<Sample>]) -> Result<Figure> {
    let same = |sample: &&Sample| {
        (&sample.benchmark, &sample.name, &sample.unit) == (&of.benchmark, &of.name, &of.unit)
    };
    let samples: Vec<_> = boots.iter().filter_map(|boot| boot.iter().find(same)).collect();
    let all = samples.len() == boots.len();
    ensure!(all, "'{}: {}' is missing from a boot", of.benchmark, of.name);
    let median_of = |value: &dyn Fn(&Sample) -> f64| {
        let mut values: Vec<_> = samples.iter().map(|sample| value(sample)).collect();
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[0], values[values.len() - 1])
    };
    let (ratio, ratio_min, ratio_max) = median_of(&|sample| sample.ours / sample.peer);
    Ok(Figure {
        name: format!("{}: {}", of.benchmark, of.name),
        unit: of.unit.clone(),
        ours: median_of(&|sample| sample.ours).0,
        peer: median_of(&|sample| sample.peer).0,
        ratio,
        limit: of.limit,
        ratio_min,
        ratio_max,
        boots: boots.len(),
    })
}

pub fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header(["", "unit", "kDAPL", "peer", "ratio", "limit", "spread", ""]);
    for figure in figures {
        table.add_row([
            figure.name.clone(),
            figure.unit.clone(),
            format!("{:.1}", figure.ours),
            format!("{:.1}", figure.peer),
            format!("{:.3}", figure.ratio),
            format!("{:.2}", figure.limit),
            format!("{:.1} %", 100.0 * figure.spread()),
            if figure.kept() { "kept" } else { "MISSED" }.into(),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

pub fn write_json(figures: &[Figure], path: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(figures)? + "\n";
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(ours: f64, peer: f64) -> Vec<Sample> {
        vec![Sample {
            benchmark: "b".into(),
            name: "n".into(),
            unit: "us".into(),
            ours,
            peer,
            limit: 0.5,
        }]
    }

    #[test]
    fn figures_are_medians_of_the_boots() {
        let figures = figures(&[boot(4.0, 10.0), boot(6.0, 10.0), boot(5.0, 10.0)]).unwrap();
        let figure = &figures[0];
        assert_eq!((figure.ours, figure.peer, figure.boots), (5.0, 10.0, 3));
        assert_eq!((figure.ratio, figure.ratio_min, figure.ratio_max), (0.5, 0.4, 0.6));
        assert!(figure.kept());
        assert!((figure.spread() - 0.4).abs() < 1e-9);
    }

    #[test]
    fn a_boot_that_lacks_a_figure_is_an_error() {
        assert!(super::figures(&[boot(1.0, 2.0), vec![]]).is_err());
        assert!(super::figures(&[]).is_err());
    }
}
