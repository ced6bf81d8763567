// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The comment of a call, by its parts.

use anyhow::{bail, ensure, Context, Result};

/// A line of a list: a code with its cause, or an event with its meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct Item {
    pub head: String,
    pub text: String,
}

/// A call of a header.
#[derive(Debug, Default)]
pub struct Call {
    pub name: String,
    pub brief: String,
    /// Declaration as in the header, without the macros before the type.
    pub prototype: String,
    /// Names of the arguments in the order of the prototype, and their descriptions.
    pub arguments: Vec<Item>,
    pub paragraphs: Vec<String>,
    pub errors: Vec<Item>,
    pub events: Vec<Item>,
    pub example: String,
    pub see: Vec<String>,
}

/// Part of a comment that the next line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Arguments,
    Paragraphs,
    Errors,
    Events,
}

impl Call {
    /// Parses the lines of a comment, without the marks at their beginnings.
    pub fn parse(comment: &[&str], prototype: &str) -> Result<Self> {
        let (first, rest) = comment.split_first().context("the comment is empty")?;
        let (name, brief) =
            first.split_once("() - ").context("the first line is no 'NAME() - TEXT'")?;
        let mut call = Self {
            name: name.into(),
            brief: brief.into(),
            prototype: prototype.into(),
            ..Default::default()
        };
        let mut part = Part::Arguments;
        for line in rest {
            part = call.add(part, line).with_context(|| format!("the line '{line}'"))?;
        }
        call.check()?;
        Ok(call)
    }

    /// Adds a line to its part. Returns the part of the next one.
    fn add(&mut self, part: Part, line: &str) -> Result<Part> {
        if let Some(rest) = line.strip_prefix("Example: ") {
            self.example = rest.into();
        } else if let Some(rest) = line.strip_prefix("See: ") {
            self.see = rest.split(", ").map(|name| name.trim_end_matches("()").into()).collect();
        } else if line == "Errors:" {
            return Ok(Part::Errors);
        } else if line == "Events:" {
            return Ok(Part::Events);
        } else if line.is_empty() {
            if part == Part::Arguments || part == Part::Paragraphs {
                self.paragraphs.push(String::new());
                return Ok(Part::Paragraphs);
            }
        } else {
            self.add_text(part, line)?;
        }
        Ok(part)
    }

    fn add_text(&mut self, part: Part, line: &str) -> Result<()> {
        let list = match part {
            Part::Arguments => &mut self.arguments,
            Part::Errors => &mut self.errors,
            Part::Events => &mut self.events,
            Part::Paragraphs => {
                let last = self.paragraphs.last_mut().context("a paragraph has begun")?;
                append(last, line);
                return Ok(());
            }
        };
        let begins = if part == Part::Arguments { "@" } else { "* " };
        if let Some(rest) = line.strip_prefix(begins) {
            let (head, text) = match rest.split_once(": ") {
                Some((head, text)) => (head, text),
                None if part != Part::Arguments => ("", rest),
                None => bail!("an argument has no description"),
            };
            list.push(Item { head: head.into(), text: text.into() });
            return Ok(());
        }
        let last = list.last_mut().context("a list begins with an item")?;
        append(&mut last.text, line.trim_start());
        // A head that was broken before its colon.
        if last.head.is_empty() {
            if let Some((head, text)) = last.text.clone().split_once(": ") {
                if head.starts_with("DAT_") {
                    (last.head, last.text) = (head.into(), text.into());
                }
            }
        }
        Ok(())
    }

    /// Checks that the arguments are those of the prototype, and that there is an example.
    fn check(&mut self) -> Result<()> {
        self.paragraphs.retain(|paragraph| !paragraph.is_empty());
        ensure!(!self.example.is_empty(), "it has no example");
        ensure!(!self.errors.is_empty(), "it has no errors");
        let declared = arguments(&self.prototype);
        let described: Vec<_> = self.arguments.iter().map(|item| item.head.as_str()).collect();
        ensure!(declared == described, "the prototype has {declared:?}, the comment {described:?}");
        Ok(())
    }

    /// Returns all constants that the comment names.
    pub fn names(&self) -> Vec<String> {
        let items = self.arguments.iter().chain(&self.errors).chain(&self.events);
        let texts = items.flat_map(|item| [&item.head, &item.text]).chain(&self.paragraphs);
        let words =
            texts.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        let constant = |word: &&str| word.starts_with("DAT_") && !word.ends_with('_');
        words.filter(constant).map(str::to_owned).collect()
    }
}

/// Appends a line with a blank in between.
fn append(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(line);
}

/// Returns the names of the arguments of a prototype.
fn arguments(prototype: &str) -> Vec<&str> {
    let list = prototype.split_once('(').map_or("", |(_, rest)| rest);
    let list = list.trim_end_matches([';', ')']);
    let name = |argument: &'_ str| -> Option<(usize, usize)> {
        let end = argument.trim_end_matches(['[', ']', ')']).len();
        let begin = argument[..end].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')? + 1;
        (begin < end).then_some((begin, end))
    };
    list.split(',').filter_map(|one| name(one).map(|(begin, end)| &one[begin..end])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMENT: [&str; 12] = [
        "dat_x() - Do a thing",
        "@one: first,",
        "      which goes on",
        "@two: second",
        "",
        "A paragraph of",
        "two lines.",
        "",
        "Errors:",
        "* DAT_INVALID_STATE (DAT_INVALID_STATE_CNO_IN_USE,",
        "  DAT_INVALID_STATE_CNO_DEAD): a cause",
        "Example: x.c",
    ];

    #[test]
    fn a_comment_has_its_parts() {
        let prototype = "DAT_RETURN dat_x(DAT_HANDLE one, DAT_PROVIDER_INFO *(two[]));";
        let call = Call::parse(&COMMENT, prototype).unwrap();
        assert_eq!((call.name.as_str(), call.brief.as_str()), ("dat_x", "Do a thing"));
        assert_eq!(call.arguments[0].text, "first, which goes on");
        assert_eq!(call.paragraphs, ["A paragraph of two lines."]);
        assert_eq!(
            call.errors,
            [Item {
                head:
                    "DAT_INVALID_STATE (DAT_INVALID_STATE_CNO_IN_USE, DAT_INVALID_STATE_CNO_DEAD)"
                        .into(),
                text: "a cause".into()
            }]
        );
        assert_eq!(call.names().len(), 3);
    }

    #[test]
    fn an_argument_that_is_not_described_is_an_error() {
        let prototype = "DAT_RETURN dat_x(DAT_HANDLE one, int two, int three);";
        let error = Call::parse(&COMMENT, prototype).unwrap_err();
        assert!(error.to_string().contains("three"), "{error:#}");
    }
}
