// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Chart of the figures: kDAPL's bar below that of the program compared with, which is 100 %;
//! without one, as a part of its limit.

use crate::report::{number, Figure};
use anyhow::{Context, Result};
use std::path::Path;
use svg::node::element::{Element, Group, Line, Rectangle, Text};
use svg::Document;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 20.0;
/// Length of a bar of 100 %.
const FULL: f64 = 560.0;
const TOP: f64 = 70.0;
const ROW: f64 = 74.0;
const BAR: f64 = 16.0;
const PEER: &str = "#9aa5b1";
const KEPT: &str = "#2f855a";
const MISSED: &str = "#c53030";
const INK: &str = "#1a202c";

pub fn write(figures: &[Figure], path: &Path) -> Result<()> {
    let height = TOP + ROW * figures.len() as f64 + 10.0;
    let mut document = Document::new()
        .set("viewBox", (0.0, 0.0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("font-family", "sans-serif")
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(text(LEFT, 28.0, 18, "Cost of kDAPL (coloured), compared with (grey)"))
        .add(text(LEFT, 50.0, 12, &how(figures)));
    for (index, figure) in figures.iter().enumerate() {
        document = document.add(row(figure, TOP + ROW * index as f64));
    }
    svg::save(path, &document).with_context(|| path.display().to_string())
}

fn how(figures: &[Figure]) -> String {
    let boots = figures.first().map_or(0, |figure| figure.boots);
    format!(
        "Shorter is better. Medians of {boots} boots; thin: their range; dashed: the limit, \
         which is 100 % without a comparison."
    )
}

/// Draws the name of a figure, and its bars if there is a comparison or a limit.
fn row(figure: &Figure, top: f64) -> Group {
    let group = Group::new().add(text(LEFT, top + 13.0, 14, &figure.name));
    let ours = format!("{} {}", number(figure.ours), figure.unit);
    match (figure.peer, figure.ratio, figure.limit) {
        (Some(peer), Some(ratio), limit) => compared(group, figure, top, (peer, ratio, limit)),
        (_, _, Some(limit)) if limit > 0.0 => {
            let scaled = |value: f64| value / limit;
            let span = (scaled(figure.min), scaled(figure.max));
            bars(group, top + 20.0, (scaled(figure.ours), span, Some(1.0)), figure, &ours)
        }
        (_, _, Some(_)) => {
            let (colour, verdict) =
                if figure.kept() { (KEPT, "as required") } else { (MISSED, "must be 0") };
            let what = format!("{ours}, {verdict}");
            group.add(bar(top + 20.0, 1.0, colour)).add(text(
                LEFT + 12.0,
                top + 20.0 + 13.0,
                13,
                &what,
            ))
        }
        _ => group.add(text(LEFT + 12.0, top + 20.0 + 13.0, 13, &ours)),
    }
}

/// Draws the peer's bar as 100 %, and kDAPL's below it.
fn compared(group: Group, figure: &Figure, top: f64, of: (f64, f64, Option<f64>)) -> Group {
    let (peer, ratio, limit) = of;
    let upper = top + 20.0;
    let ours = format!("{} {}: {:.0} %", number(figure.ours), figure.unit, 100.0 * ratio);
    let after = x(1.0_f64.max(limit.unwrap_or(0.0))) + 8.0;
    let group = group.add(bar(upper, FULL, PEER)).add(text(
        after,
        upper + 13.0,
        13,
        &format!("{} {}", number(peer), figure.unit),
    ));
    bars(group, upper + 2.0 + BAR, (ratio, (figure.min, figure.max), limit), figure, &ours)
}

/// Draws kDAPL's bar with the range of the boots, the limit, and a label.
fn bars(
    group: Group,
    top: f64,
    (value, (min, max), limit): (f64, (f64, f64), Option<f64>),
    figure: &Figure,
    says: &str,
) -> Group {
    let colour = if figure.kept() { KEPT } else { MISSED };
    let line = |x1: f64, y1: f64, x2: f64, y2: f64| {
        let line = Line::new().set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2);
        line.set("stroke", INK)
    };
    let middle = top + BAR / 2.0;
    let after = x(max.max(value)).max(limit.map_or(0.0, x)) + 8.0;
    let group = group
        .add(bar(top, x(value) - LEFT, colour))
        .add(line(x(min), middle, x(max), middle))
        .add(text(after, top + 13.0, 13, says));
    match limit {
        Some(limit) => {
            let above = if figure.peer.is_some() { 5.0 + BAR } else { 3.0 };
            let limit = line(x(limit), top - above, x(limit), top + BAR + 3.0);
            group.add(limit.set("stroke-dasharray", "4 3"))
        }
        None => group,
    }
}

/// Returns the end of a bar of this part of a full one. A bar that is too long for the chart is
/// cut; its label has the number.
fn x(part: f64) -> f64 {
    LEFT + FULL * part.min(1.3)
}

fn bar(top: f64, width: f64, colour: &str) -> Rectangle {
    let place = Rectangle::new().set("x", LEFT).set("y", top).set("rx", 2);
    place.set("width", width.max(1.0)).set("height", BAR).set("fill", colour)
}

fn text(x: f64, y: f64, size: u32, what: &str) -> Element {
    let text = Text::new(what).set("x", x).set("y", y).set("font-size", size).set("fill", INK);
    text.into()
}
