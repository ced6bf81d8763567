// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Plots of results as SVG files. Their horizontal axis is logarithmic.

use crate::histogram::Bucket;
use anyhow::{anyhow, Context, Result};
use plotters::prelude::*;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Size of a plot in pixels.
const SIZE: (u32, u32) = (900, 540);

/// Points that a line connects.
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points in the order of their x.
    pub points: Vec<(f64, f64)>,
}

/// Texts of a plot.
pub struct Texts<'a> {
    /// Title above the plot.
    pub title: &'a str,
    /// Description of the x axis.
    pub x: &'a str,
    /// Description of the y axis.
    pub y: &'a str,
    /// Formats a value of the x axis.
    pub format_x: fn(f64) -> String,
}

/// SVG file to which a plot will be written.
pub struct Svg {
    path: PathBuf,
    file: File,
}

impl Svg {
    /// Creates an empty file, so that a wrong path is an error before the measurement.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let file =
            File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Draws lines.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn lines(self, texts: &Texts<'_>, lines: &[Line]) -> Result<()> {
        self.write(draw_lines(texts, lines)?)
    }

    /// Draws a histogram.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn histogram(self, texts: &Texts<'_>, buckets: &[Bucket]) -> Result<()> {
        self.write(draw_histogram(texts, buckets)?)
    }

    fn write(mut self, svg: String) -> Result<()> {
        let written = self.file.write_all(svg.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Axes = Cartesian2d<
    plotters::coord::combinators::LogCoord<f64>,
    plotters::coord::types::RangedCoordf64,
>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Axes>;

fn draw_lines(texts: &Texts<'_>, lines: &[Line]) -> Result<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (x, y) = (span(points().map(|point| point.0)), top(points().map(|point| point.1)));
    drawn(|area| {
        let mut chart = axes(area, texts, x, y)?;
        for (index, line) in lines.iter().enumerate() {
            let style = Palette99::pick(index).stroke_width(2);
            let series = LineSeries::new(line.points.iter().copied(), style).point_size(3);
            chart
                .draw_series(series)
                .map_err(failed)?
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
        }
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::UpperLeft);
        legend.background_style(WHITE).border_style(BLACK).draw().map_err(failed)
    })
}

fn draw_histogram(texts: &Texts<'_>, buckets: &[Bucket]) -> Result<String> {
    let ends = buckets.iter().flat_map(|bucket| [bucket.from_us, bucket.up_to_us]);
    let (x, y) = (span(ends), top(buckets.iter().map(|bucket| bucket.count as f64)));
    drawn(|area| {
        let mut chart = axes(area, texts, x, y)?;
        let bars = buckets.iter().map(|bucket| {
            let corners = [(bucket.from_us, 0.0), (bucket.up_to_us, bucket.count as f64)];
            Rectangle::new(corners, Palette99::pick(0).filled())
        });
        chart.draw_series(bars).map_err(failed).map(drop)
    })
}

/// Makes an SVG of what `draw` draws.
fn drawn(draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        draw(&area)?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Draws the axes.
fn axes<'a, 'b>(
    area: &'a Area<'b>,
    texts: &Texts<'_>,
    x: Range<f64>,
    top: f64,
) -> Result<Chart<'a, 'b>> {
    let mut builder = ChartBuilder::on(area);
    builder.caption(texts.title, ("sans-serif", 20)).margin(16);
    builder.x_label_area_size(48).y_label_area_size(80);
    let mut chart =
        builder.build_cartesian_2d(x.log_scale().base(2.0), 0.0..top).map_err(failed)?;
    let format_x = |value: &f64| (texts.format_x)(*value);
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(texts.x).y_desc(texts.y).x_label_formatter(&format_x).max_light_lines(1);
    mesh.draw().map_err(failed)?;
    Ok(chart)
}

/// Returns the ends of an axis for these values, which are above 0.
fn span(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.fold(0.0, f64::max);
    if most <= 0.0 {
        return 1.0..2.0;
    }
    // A logarithmic axis of a single value has no length.
    let (least, most) = (least.max(f64::MIN_POSITIVE), most.max(least * 1.01));
    least..most
}

/// Returns the upper end of an axis that begins at 0.
fn top(values: impl Iterator<Item = f64>) -> f64 {
    match values.fold(0.0, f64::max) {
        0.0 => 1.0,
        most => most * 1.05,
    }
}

fn failed(error: impl Display) -> anyhow::Error {
    anyhow!("cannot draw the plot: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: Texts<'static> =
        Texts { title: "Bandwidth of rxe0", x: "bytes", y: "MiB/s", format_x: |x| format!("{x}") };

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        Line { name: name.into(), points: points.to_vec() }
    }

    #[test]
    fn a_plot_has_its_texts_and_a_line_for_each_name() {
        let points = [(64.0, 1.0), (128.0, 2.0), (256.0, 4.0)];
        let svg =
            draw_lines(&TEXTS, &[line("send", &points), line("RDMA write", &points)]).unwrap();
        for text in ["<svg", "Bandwidth of rxe0", "bytes", "MiB/s", "send", "RDMA write"] {
            assert!(svg.contains(text), "{text} is missing: {svg}");
        }
        // A line, and its sample in the legend.
        assert_eq!(svg.matches("<polyline").count() % 2, 0, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 6, "{svg}");
    }

    #[test]
    fn one_point_and_none_can_be_drawn() {
        for points in [&[][..], &[(64.0, 0.0)], &[(64.0, 3.0)]] {
            let svg = draw_lines(&TEXTS, &[line("send", points)]).unwrap();
            assert_eq!(svg.matches("<circle").count(), points.len(), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        assert!(draw_lines(&TEXTS, &[]).unwrap().contains("<svg"));
    }

    #[test]
    fn a_histogram_has_a_bar_for_each_bucket() {
        let bucket = |up_to_us, count| Bucket { from_us: up_to_us / 2.0, up_to_us, count };
        let bars = |buckets: &[Bucket]| {
            let svg = draw_histogram(&TEXTS, buckets).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            // And the background.
            svg.matches("<rect").count() - 1
        };
        assert_eq!(bars(&[bucket(10.0, 1), bucket(20.0, 0), bucket(40.0, 7)]), 3);
        assert_eq!(bars(&[bucket(10.0, 1)]), 1);
        assert_eq!(bars(&[]), 0);
    }

    #[test]
    fn a_file_that_cannot_be_created_is_named() {
        let error = Svg::create(Path::new("/nonexistent/plot.svg")).err().unwrap();
        assert!(error.to_string().contains("/nonexistent/plot.svg"), "{error}");
    }
}
