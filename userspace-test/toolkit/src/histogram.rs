// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Histogram of measured times, for the terminal, JSON and a plot.

use crate::report::{grouped, table, us, Times};
use comfy_table::{CellAlignment, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of buckets between the shortest and the longest time.
const BUCKETS: f64 = 20.0;
/// Length of the longest bar in characters.
const BAR: f64 = 40.0;

/// Number of times in an interval.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Bucket {
    /// Shortest time in microseconds, or longest of the previous interval.
    pub from_us: f64,
    /// Longest time of the interval in microseconds.
    pub up_to_us: f64,
    /// Number of times in the interval.
    pub count: u64,
}

impl Times {
    /// Returns the number of times in each of about twenty intervals. The longest time of each is
    /// the same factor above that of the previous one.
    #[must_use]
    pub fn histogram(&self) -> Vec<Bucket> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let (min, max) = (self.0.min().max(1), self.0.max().max(1));
        let factor = (max as f64 / min as f64).powf(1.0 / BUCKETS).max(1.01);
        let us = |ns: u64| ns as f64 / 1000.0;
        let first = (min as f64 * factor).ceil() as u64;
        let mut from_us = us(min);
        let mut bucket = |up_to_us, count| {
            let from_us = std::mem::replace(&mut from_us, up_to_us);
            Bucket { from_us, up_to_us, count }
        };
        let steps = self.0.iter_log(first, factor);
        steps
            .map(|step| bucket(us(step.value_iterated_to()), step.count_since_last_iteration()))
            .collect()
    }
}

/// Draws a histogram, a row with a bar for each bucket.
pub fn histogram_table(buckets: &[Bucket]) -> Table {
    let total: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0).max(1);
    let mut rows = vec![["up to", "number", "of all", ""].map(String::from).to_vec()];
    let mut sum = 0;
    rows.extend(buckets.iter().map(|bucket| {
        sum += bucket.count;
        vec![
            us(bucket.up_to_us),
            grouped(bucket.count),
            format!("{:.2} %", 100.0 * sum as f64 / total as f64),
            bar(bucket.count as f64 / most as f64),
        ]
    }));
    let mut table = table(&rows);
    if let Some(bars) = table.column_mut(3) {
        bars.set_cell_alignment(CellAlignment::Left);
    }
    if let Some(ends) = table.column_mut(0) {
        ends.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Draws a bar for a part of the longest one. A part above 0 is visible.
fn bar(part: f64) -> String {
    match (part * BAR).round() as usize {
        0 if part > 0.0 => "▏".into(),
        length => "█".repeat(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn of(us: impl IntoIterator<Item = u64>) -> Vec<Bucket> {
        let mut times = Times::new().unwrap();
        us.into_iter().for_each(|us| times.add(Duration::from_micros(us)));
        times.histogram()
    }

    #[test]
    fn each_time_is_in_the_bucket_of_its_interval() {
        let buckets = of(1..=1000);
        assert!((15..=25).contains(&buckets.len()), "{}", buckets.len());
        let (mut sum, mut previous) = (0, 0.0);
        for bucket in &buckets {
            sum += bucket.count;
            assert!(bucket.up_to_us > previous, "{bucket:?} follows {previous}");
            assert!(previous == 0.0 || bucket.from_us == previous, "{bucket:?}");
            // The times are 1, 2, 3 and so on, so the sum is the longest of them.
            let longest = bucket.up_to_us.min(1000.0);
            assert!((sum as f64 - longest).abs() <= 1.0 + longest / 500.0, "{bucket:?}, {sum}");
            previous = bucket.up_to_us;
        }
        assert_eq!(sum, 1000);
    }

    #[test]
    fn no_time_and_equal_times_have_their_buckets() {
        assert_eq!(of([]), []);
        let buckets = of([7; 3]);
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 3);
        assert_eq!(buckets.len(), 1, "{buckets:?}");
    }

    #[test]
    fn the_longest_bar_is_that_of_the_most() {
        let bucket = |up_to_us, count| Bucket { from_us: up_to_us / 2.0, up_to_us, count };
        let text = histogram_table(&[bucket(10.0, 1000), bucket(20.0, 500), bucket(40.0, 1)]);
        let text = text.to_string();
        let bars = |line: &str| line.chars().filter(|char| *char == '█').count();
        let lines: Vec<_> = text.lines().filter(|line| line.contains("us")).collect();
        assert_eq!(lines.iter().map(|line| bars(line)).collect::<Vec<_>>(), [40, 20, 0]);
        assert!(lines[2].contains('▏') && lines[2].contains("100.00 %"), "{text}");
    }
}
