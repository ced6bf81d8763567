// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Figures from the samples of several boots.

use crate::sample::Sample;
use anyhow::{ensure, Context, Result};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::path::Path;

/// A figure: medians over the boots. Less is better.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub name: String,
    pub unit: String,
    pub ours: f64,
    pub peer: Option<f64>,
    /// kDAPL's value divided by the peer's.
    pub ratio: Option<f64>,
    /// Maximum of the ratio, or of kDAPL's value without a peer. `None` if the figure has no limit.
    pub limit: Option<f64>,
    /// Smallest and largest value of a boot: ratios, or kDAPL's values without a peer.
    pub min: f64,
    pub max: f64,
    pub boots: usize,
}

impl Figure {
    /// Returns whether the limit is kept. Without a peer the limit applies to each boot, with one
    /// to the median.
    pub fn kept(&self) -> bool {
        self.limit.is_none_or(|limit| self.ratio.unwrap_or(self.max) <= limit)
    }

    /// Returns the difference between the boots as a part of the figure.
    pub fn spread(&self) -> f64 {
        if self.max == self.min {
            return 0.0;
        }
        (self.max - self.min) / self.ratio.unwrap_or(self.ours)
    }
}

/// Makes a figure for each name and unit, in the order of the first boot.
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
    let ours = median_of(&|sample| sample.ours);
    let compared = of.peer.is_some();
    let ratios = median_of(&|sample| sample.ours / sample.peer.unwrap_or(1.0));
    let (judged, min, max) = if compared { ratios } else { ours };
    Ok(Figure {
        name: format!("{}: {}", of.benchmark, of.name),
        unit: of.unit.clone(),
        ours: ours.0,
        peer: compared.then(|| median_of(&|sample| sample.peer.unwrap_or(f64::NAN)).0),
        ratio: compared.then_some(judged),
        limit: of.limit,
        min,
        max,
        boots: boots.len(),
    })
}

pub fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header(["", "unit", "kDAPL", "beside", "ratio", "limit", "spread", ""]);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for figure in figures {
        let verdict = match figure.limit {
            None => "stated",
            Some(_) if figure.kept() => "kept",
            Some(_) => "MISSED",
        };
        table.add_row([
            figure.name.clone(),
            figure.unit.clone(),
            number(figure.ours),
            or_none(figure.peer.map(number)),
            or_none(figure.ratio.map(|ratio| format!("{ratio:.3}"))),
            or_none(figure.limit.map(|limit| format!("{limit:.2}"))),
            format!("{:.1} %", 100.0 * figure.spread()),
            verdict.into(),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Formats a number with its significant digits.
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.1}")
    }
}

pub fn write_json(figures: &[Figure], path: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(figures)? + "\n";
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(ours: f64, peer: Option<f64>) -> Vec<Sample> {
        let (benchmark, name, unit) = ("b".into(), "n".into(), "us".into());
        vec![Sample { benchmark, name, unit, ours, peer, limit: Some(0.5) }]
    }

    #[test]
    fn figures_are_medians_of_the_boots() {
        let boots = [4.0, 6.0, 5.0].map(|ours| boot(ours, Some(10.0)));
        let figure = &figures(&boots).unwrap()[0];
        assert_eq!((figure.ours, figure.peer, figure.boots), (5.0, Some(10.0), 3));
        assert_eq!((figure.ratio, figure.min, figure.max), (Some(0.5), 0.4, 0.6));
        assert!(figure.kept());
        assert!((figure.spread() - 0.4).abs() < 1e-9);
    }

    #[test]
    fn without_a_peer_the_limit_is_for_the_figure_itself() {
        let boots = [4.0, 1.0, 2.0].map(|ours| boot(ours, None));
        let figure = &figures(&boots).unwrap()[0];
        assert_eq!((figure.ours, figure.peer, figure.ratio), (2.0, None, None));
        assert!(!figure.kept());
        assert!((figure.spread() - 1.5).abs() < 1e-9);
        assert!(table(std::slice::from_ref(figure)).to_string().contains("MISSED"));
        let stated = Figure { limit: None, ..figure.clone() };
        assert!(stated.kept());
        assert!(table(&[stated]).to_string().contains("stated"));
        let none = Figure { ours: 0.0, min: 0.0, max: 0.0, limit: Some(0.0), ..figure.clone() };
        assert!(none.kept() && none.spread() == 0.0);
    }

    #[test]
    fn a_boot_that_lacks_a_figure_is_an_error() {
        assert!(super::figures(&[boot(1.0, Some(2.0)), vec![]]).is_err());
        assert!(super::figures(&[]).is_err());
    }
}
