// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The figures as a picture: for each the peer's bar as 100 %, ours below it, and the limit.

use crate::report::Figure;
use anyhow::{Context, Result};
use std::path::Path;
use svg::node::element::{Element, Group, Line, Rectangle, Text};
use svg::Document;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 20.0;
/// Of a bar of 100 %.
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
        .add(text(LEFT, 28.0, 18, "Cost of kDAPL (coloured) beside the same without it (grey)"))
        .add(text(LEFT, 50.0, 12, &how(figures)));
    for (index, figure) in figures.iter().enumerate() {
        document = document.add(row(figure, TOP + ROW * index as f64));
    }
    svg::save(path, &document).with_context(|| path.display().to_string())
}

fn how(figures: &[Figure]) -> String {
    let boots = figures.first().map_or(0, |figure| figure.boots);
    format!(
        "Shorter is better. Medians of {boots} boots, both sides in the same boot; the thin line \
         spans the boots, the dashed one is the limit."
    )
}

/// A name, two bars, the limit, the span of the boots.
fn row(figure: &Figure, top: f64) -> Group {
    // A bar that would leave the picture is cut; its number tells.
    let x = |ratio: f64| LEFT + FULL * ratio.min(1.3);
    let (upper, lower) = (top + 20.0, top + 22.0 + BAR);
    let colour = if figure.kept() { KEPT } else { MISSED };
    let line = |x1: f64, y1: f64, x2: f64, y2: f64| {
        let line = Line::new().set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2);
        line.set("stroke", INK)
    };
    let middle = lower + BAR / 2.0;
    let ours = format!("{:.1} {}: {:.0} %", figure.ours, figure.unit, 100.0 * figure.ratio);
    let after = x(figure.ratio_max.max(figure.ratio)).max(x(figure.limit)) + 8.0;
    Group::new()
        .add(text(LEFT, top + 13.0, 14, &figure.name))
        .add(bar(upper, FULL, PEER))
        .add(bar(lower, x(figure.ratio) - LEFT, colour))
        .add(line(x(figure.ratio_min), middle, x(figure.ratio_max), middle))
        .add(
            line(x(figure.limit), upper - 3.0, x(figure.limit), lower + BAR + 3.0)
                .set("stroke-dasharray", "4 3"),
        )
        .add(text(
            x(1.0_f64.max(figure.limit)) + 8.0,
            upper + 13.0,
            13,
            &format!("{:.1} {}", figure.peer, figure.unit),
        ))
        .add(text(after, lower + 13.0, 13, &ours))
}

fn bar(top: f64, width: f64, colour: &str) -> Rectangle {
    let place = Rectangle::new().set("x", LEFT).set("y", top).set("rx", 2);
    place.set("width", width.max(1.0)).set("height", BAR).set("fill", colour)
}

fn text(x: f64, y: f64, size: u32, what: &str) -> Element {
    let text = Text::new(what).set("x", x).set("y", y).set("font-size", size).set("fill", INK);
    text.into()
}
