// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Values of an option of which each is measured, as in `--size 64,4096` and `--size 64..65536`.

use std::ops::RangeInclusive;

/// One or more values, in the order of their measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep(Vec<u32>);

impl Sweep {
    /// Decodes a list of numbers and ranges. A range `A..B` has A, twice A, four times A and so on,
    /// up to B.
    ///
    /// # Errors
    /// If a part is not a number or a range, or a number is not within `limits`.
    pub fn parse(text: &str, limits: RangeInclusive<u32>) -> Result<Self, String> {
        let mut values = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                None => values.push(number(part, &limits)?),
                Some((first, last)) => {
                    let (first, last) = (number(first, &limits)?, number(last, &limits)?);
                    if first > last || first == 0 {
                        return Err(format!(
                            "'{part}' must have a number above 0, and a larger one"
                        ));
                    }
                    values.extend(Self::doubling(first, last).0);
                }
            }
        }
        Ok(Self(values))
    }

    /// Makes a sweep of `first`, which is above 0, and of its doubles up to `last`.
    pub fn doubling(first: u32, last: u32) -> Self {
        let double = |value: &u32| value.checked_mul(2);
        let values = std::iter::successors(Some(first), double);
        Self(values.take_while(|value| *value <= last).collect())
    }

    /// Returns the values.
    pub fn values(&self) -> &[u32] {
        &self.0
    }
}

fn number(text: &str, limits: &RangeInclusive<u32>) -> Result<u32, String> {
    let number = text.trim().parse();
    let number = number.map_err(|_| format!("'{text}' is neither a number nor a range A..B"))?;
    if limits.contains(&number) {
        return Ok(number);
    }
    Err(format!("{number} is not in {}..={}", limits.start(), limits.end()))
}

#[cfg(test)]
mod tests {
    use super::Sweep;

    fn parsed(text: &str) -> Result<Vec<u32>, String> {
        Sweep::parse(text, 1..=1024).map(|sweep| sweep.values().to_vec())
    }

    #[test]
    fn lists_and_ranges_have_their_values_in_order() {
        assert_eq!(parsed("7").unwrap(), [7]);
        assert_eq!(parsed("64, 8,64").unwrap(), [64, 8, 64]);
        assert_eq!(parsed("1..8").unwrap(), [1, 2, 4, 8]);
        assert_eq!(parsed("3..20,1024..1024").unwrap(), [3, 6, 12, 1024]);
        let all = Sweep::parse("1..4294967295", 0..=u32::MAX).unwrap();
        assert_eq!(all.values().len(), 32);
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, named) in [
            ("", "''"),
            ("4k", "'4k'"),
            ("1,,2", "''"),
            ("8..4", "'8..4'"),
            ("..4", "''"),
            ("0", "1..=1024"),
            ("1..2048", "2048"),
            ("-1", "'-1'"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
        assert!(Sweep::parse("0..4", 0..=4).unwrap_err().contains("above 0"));
    }
}
