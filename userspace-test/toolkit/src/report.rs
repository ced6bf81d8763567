// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Formatting of results.

use anyhow::Result;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Distribution of times in microseconds.
#[derive(Clone, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Latency {
    /// Shortest time.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Mean.
    pub mean: f64,
    /// Time that 99 % do not exceed.
    pub p99: f64,
    /// Time that 99.9 % do not exceed.
    pub p999: f64,
    /// Longest time.
    pub max: f64,
}

/// Maximum recorded time, an hour. Longer times are recorded as this.
const LONGEST_NS: u64 = 3600 * 1_000_000_000;

/// Histogram of times in nanoseconds, with three significant digits.
pub struct Times(pub(crate) Histogram<u64>);

impl Times {
    /// Makes an empty histogram.
    ///
    /// # Errors
    /// That of the library.
    pub fn new() -> Result<Self> {
        Ok(Self(Histogram::new_with_bounds(1, LONGEST_NS, 3)?))
    }

    /// Records a time.
    pub fn add(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the distribution.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let us = |ns: u64| ns as f64 / 1000.0;
        Latency {
            min: us(self.0.min()),
            median: us(self.0.value_at_quantile(0.5)),
            mean: self.0.mean() / 1000.0,
            p99: us(self.0.value_at_quantile(0.99)),
            p999: us(self.0.value_at_quantile(0.999)),
            max: us(self.0.max()),
        }
    }
}

/// Makes a table. The first row is the header; all columns but the first are right-aligned.
pub fn table(rows: &[Vec<String>]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    if let Some((head, body)) = rows.split_first() {
        table.set_header(head);
        table.add_rows(body);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Makes a table of distributions, one row for each.
pub fn latency_table(latencies: &[(&str, &Latency)]) -> Table {
    let mut rows =
        vec![["", "min", "median", "mean", "p99", "p99.9", "max"].map(String::from).to_vec()];
    for (name, latency) in latencies {
        let Latency { min, median, mean, p99, p999, max } = latency;
        let mut row = vec![(*name).to_string()];
        row.extend([min, median, mean, p99, p999, max].map(|value| us(*value)));
        rows.push(row);
    }
    table(&rows)
}

/// Makes a left-aligned table of text.
pub fn text_table(rows: &[Vec<String>]) -> Table {
    let mut table = table(rows);
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Left);
    }
    table
}

/// Formats `1234567` as `1 234 567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Formats a number of bytes with a unit.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 if bytes % 1024 == 0 => format!("{} KiB", bytes / 1024),
        1024..=1_048_575 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// Formats a time in microseconds.
pub fn us(value: f64) -> String {
    format!("{value:.1} us")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_out_as_they_went_in() {
        let mut times = Times::new().unwrap();
        (1..=100).for_each(|ms| times.add(Duration::from_millis(ms)));
        let latency = times.latency();
        let near = |got: f64, us: f64| assert!((got / us - 1.0).abs() < 0.002, "{got} for {us}");
        near(latency.min, 1000.0);
        near(latency.median, 50_000.0);
        near(latency.p99, 99_000.0);
        near(latency.max, 100_000.0);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(size(64), "64 B");
        assert_eq!(size(65_536), "64 KiB");
        assert_eq!(size(1500), "1.5 KiB");
        assert_eq!(size(3 << 20), "3.0 MiB");
    }
}
