// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A manual page, in the language of `man(7)`.

use crate::call::{Call, Item};
use crate::header::Article;
use roff::{bold, italic, roman, Inline, Roff};

/// Longest line of a synopsis.
const WIDTH: usize = 76;

fn page(name: &str, section: &str, brief: &str) -> Roff {
    let mut roff = Roff::new();
    // The date is empty: a page changes with its header.
    roff.control("TH", [name, section, "\"\"", "kDAPL", "DAT 2.0"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {brief}"))]);
    roff
}

/// Prints names of arguments in italics, and names of calls and constants in bold.
fn styled(text: &str) -> Vec<Inline> {
    let mut parts = Vec::new();
    for word in text.split_inclusive(' ') {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '@');
        let begin = word.find(bare).unwrap_or(0);
        let (before, rest) = word.split_at(begin);
        let (inner, after) = rest.split_at(bare.len());
        parts.push(roman(before));
        parts.push(match inner.strip_prefix('@') {
            Some(argument) => italic(argument),
            None if inner.starts_with("DAT_") || inner.starts_with("dat_") => bold(inner),
            None => roman(inner),
        });
        parts.push(roman(after));
    }
    parts.retain(|part| *part != roman(""));
    parts
}

/// Adds a list of items with their heads.
fn list(roff: &mut Roff, heading: &str, items: &[Item]) {
    if items.is_empty() {
        return;
    }
    roff.control("SH", [heading]);
    for (place, item) in items.iter().enumerate() {
        if item.head.is_empty() {
            if place > 0 {
                roff.control("PP", []);
            }
        } else {
            roff.control("TP", []);
            let head =
                if heading == "ARGUMENTS" { vec![italic(&item.head)] } else { styled(&item.head) };
            roff.text(head);
        }
        roff.text(styled(&item.text));
    }
}

/// Adds lines as they are.
fn verbatim<'a>(roff: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    roff.control("nf", []);
    for line in lines {
        if line.is_empty() {
            roff.control("sp", []);
        } else {
            roff.text([roman(line.replace('\t', "    "))]);
        }
    }
    roff.control("fi", []);
}

/// Breaks a prototype after its arguments.
fn broken(prototype: &str) -> Vec<String> {
    let indent = prototype.find('(').map_or(4, |place| (place + 1).min(32));
    let mut lines = vec![String::new()];
    for word in prototype.split_inclusive(", ") {
        let last = lines.last().map_or(0, String::len);
        if last + word.trim_end().len() > WIDTH {
            lines.push(" ".repeat(indent));
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Returns the page of a call.
pub fn of_call(call: &Call, example: &str) -> String {
    let mut roff = page(&call.name, "3", &call.brief);
    roff.control("SH", ["LIBRARY"]);
    roff.text([roman("libkdat (-lkdat, pkg-config kdat)")]);
    roff.control("SH", ["SYNOPSIS"]);
    let extension = call.name == "dat_extension_op";
    let header = if extension { "dat2/dat_ib_extensions.h" } else { "dat2/udat.h" };
    let include = format!("#include <{header}>");
    let prototype = broken(&call.prototype);
    let lines = [include.as_str(), ""].into_iter().chain(prototype.iter().map(String::as_str));
    verbatim(&mut roff, lines);
    list(&mut roff, "ARGUMENTS", &call.arguments);
    if !call.paragraphs.is_empty() {
        roff.control("SH", ["DESCRIPTION"]);
    }
    for (place, paragraph) in call.paragraphs.iter().enumerate() {
        if place > 0 {
            roff.control("PP", []);
        }
        roff.text(styled(paragraph));
    }
    roff.control("SH", ["RETURN VALUE"]);
    roff.text(styled(
        "DAT_SUCCESS, or an error of the class DAT_CLASS_ERROR: see dat_return(3), which also has the \
         errors that any call may return. Nothing was done then, and no event follows.",
    ));
    list(&mut roff, "ERRORS", &call.errors);
    list(&mut roff, "EVENTS", &call.events);
    roff.control("SH", ["EXAMPLE"]);
    roff.text(styled(
        "OK(), CHECK() and REFUSED() end the program unless a call succeeds, a condition holds, a call \
         returns this type of error.",
    ));
    roff.control("PP", []);
    verbatim(&mut roff, example.lines());
    roff.control("SH", ["SEE ALSO"]);
    let names = call.see.iter().map(|name| format!("{name}(3)"));
    let see: Vec<_> = names.chain(["dat_return(3)".into(), "kdat(7)".into()]).collect();
    roff.text(styled(&see.join(", ")));
    roff.render()
}

/// Returns the page of an article.
pub fn of_article(article: &Article) -> String {
    let mut roff = page(&article.name, &article.section, &article.brief);
    let mut fresh = false;
    for lines in &article.paragraphs {
        match &lines[..] {
            [heading] if heading.ends_with(':') => {
                let heading = heading.trim_end_matches(':').to_uppercase();
                let heading = if heading == "SEE" { "SEE ALSO".to_owned() } else { heading };
                roff.control("SH", [heading.as_str()]);
                fresh = true;
                continue;
            }
            _ if !fresh => {
                roff.control("PP", []);
            }
            _ => {}
        }
        fresh = false;
        if lines.iter().all(|line| line.starts_with("  ")) {
            verbatim(&mut roff, lines.iter().map(String::as_str));
        } else {
            roff.text(styled(&lines.join(" ")));
        }
    }
    roff.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_prototype_is_broken_after_commas() {
        let prototype = format!("DAT_RETURN dat_x({});", ["DAT_HANDLE handle"; 9].join(", "));
        let lines = broken(&prototype);
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= WIDTH), "{lines:#?}");
    }

    #[test]
    fn a_word_is_styled_by_what_it_names() {
        let parts = styled("the @cno, DAT_ABORT.");
        assert_eq!(
            parts,
            [roman("the"), roman(" "), italic("cno"), roman(", "), bold("DAT_ABORT"), roman(".")]
        );
    }
}
