// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Comments and prototypes of a header.

use crate::call::Call;
use anyhow::{Context, Result};

/// An article that is not about a call: a comment that begins with `DOC:`.
pub struct Article {
    pub name: String,
    pub section: String,
    pub brief: String,
    /// Paragraphs; one that ends with a colon and has one line is a heading.
    pub paragraphs: Vec<Vec<String>>,
}

impl Article {
    /// Returns the name of its file.
    pub fn file(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }

    fn parse(first: &str, lines: &[&str]) -> Result<Self> {
        let parsed = first.split_once(" - ").and_then(|(place, brief)| {
            let (name, section) = place.split_once('(')?;
            Some((name, section.trim_end_matches(')'), brief))
        });
        let (name, section, brief) =
            parsed.context("the first line is no 'NAME(SECTION) - TEXT'")?;
        let own = |line: &&str| (*line).to_owned();
        let paragraphs = lines.split(|line| line.is_empty());
        let paragraphs = paragraphs.map(|lines| lines.iter().map(own).collect::<Vec<_>>());
        Ok(Self {
            name: name.into(),
            section: section.into(),
            brief: brief.into(),
            paragraphs: paragraphs.filter(|lines| !lines.is_empty()).collect(),
        })
    }
}

/// Returns the comments `/** ... */` of several lines, each with the text after it.
fn comments(text: &str) -> impl Iterator<Item = (Vec<&str>, &str)> {
    text.split("/**\n").skip(1).filter_map(|part| {
        let (comment, after) = part.split_once(" */\n")?;
        let plain = |line: &'_ str| -> usize {
            if line.starts_with(" * ") {
                3
            } else {
                2
            }
        };
        let lines = comment.lines().map(|line| line.get(plain(line)..).unwrap_or("")).collect();
        Some((lines, after))
    })
}

/// Returns the calls of a header.
pub fn calls(text: &str) -> Result<Vec<Call>> {
    let of_call =
        |(lines, _): &(Vec<&str>, &str)| lines.first().is_some_and(|line| line.contains("() - "));
    let parse = |(lines, after): (Vec<&str>, &str)| {
        let name = lines[0];
        let prototype = prototype(after).with_context(|| format!("no prototype after '{name}'"))?;
        Call::parse(&lines, &prototype).with_context(|| format!("the comment '{name}'"))
    };
    comments(text).filter(of_call).map(parse).collect()
}

/// Returns the articles of a header.
pub fn articles(text: &str) -> Result<Vec<Article>> {
    let parse = |(lines, _): (Vec<&str>, &str)| {
        let (first, rest) = lines.split_first()?;
        Some(Article::parse(first.strip_prefix("DOC: ")?, rest))
    };
    comments(text).filter_map(parse).collect()
}

/// Returns the declaration at the beginning of the text, on one line and without macros.
fn prototype(text: &str) -> Option<String> {
    let (declaration, _) = text.split_once(';')?;
    let words: Vec<_> = declaration
        .split_whitespace()
        .filter(|word| !["DAT_EXPORT", "DAT_API"].contains(word))
        .collect();
    Some(words.join(" ") + ";")
}

/// Returns whether a header declares a name: as a macro, a constant, or a type.
pub fn declares(text: &str, name: &str) -> bool {
    text.lines().filter(|line| !line.starts_with(" *")).any(|line| {
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\
/**
 * dat_x() - Do
 * @one: a
 *
 * Errors:
 * * DAT_ABORT: never
 *
 * Example: x.c
 */
DAT_EXPORT DAT_RETURN DAT_API dat_x(DAT_HANDLE
				    one);
/**
 * DOC: kdat(7) - An article
 *
 * Heading:
 *
 * Text.
 */
enum { DAT_ABORT = 1 };
";

    #[test]
    fn calls_and_articles_are_found() {
        let calls = calls(HEADER).unwrap();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].prototype, "DAT_RETURN dat_x(DAT_HANDLE one);");
        let articles = articles(HEADER).unwrap();
        assert_eq!(articles[0].file(), "kdat.7");
        assert_eq!(articles[0].paragraphs, [["Heading:"], ["Text."]]);
    }

    #[test]
    fn a_name_in_a_comment_is_no_declaration() {
        assert!(declares(HEADER, "DAT_ABORT") && !declares(HEADER, "never"));
    }
}
