//! Plots of series, drawn in the terminal, as SVG or as PNG.
//!
//! ```text
//! mod       the figure: lines of points, and their reduction to the resolution
//! scale     ticks and their labels
//! terminal  braille dots, two by four in a character
//! chart     the layout of SVG and PNG, drawn on a canvas
//! svg       a canvas that writes text
//! raster    a canvas of pixels, with its font
//! png       writes pixels to a file
//! ```

pub(crate) mod chart;
pub(crate) mod png;
pub(crate) mod raster;
pub(crate) mod scale;
pub(crate) mod svg;
pub(crate) mod terminal;

use crate::time::Nanos;
use jiff::tz::TimeZone;

/// A line is interrupted at a gap that is longer than this many usual steps between its points.
const GAP_STEPS: f64 = 5.0;

/// A point of a line: a value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Time of the point, in nanoseconds since 1970.
    pub time: Nanos,
    /// Value of the point. If it is not finite, the line is interrupted here.
    pub value: f64,
}

/// The lowest and the highest value in a range of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    /// First and last time of the range, in nanoseconds since 1970.
    pub times: (Nanos, Nanos),
    /// Lowest and highest value, both finite.
    pub values: (f64, f64),
}

/// A line of the figure, for one series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// Name of the line in the legend.
    pub label: String,
    /// Unit of the values; empty if it is unknown.
    pub unit: String,
    /// Points of the line, in ascending order of time.
    pub points: Vec<Point>,
    /// The lowest and highest values by range of times, which are drawn pale behind the points if the points are means.
    pub band: Vec<Extent>,
}

/// The side of a figure at which the axis of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Every figure has this axis.
    Left,
    /// The axis of the second unit.
    Right,
}

/// The units of the value axes. Lines of two units have an axis each; with more units all lines share one axis, and
/// only the legend shows the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axes<'a> {
    /// Unit of the left axis; empty if it is unknown, or if lines of several units share the axis.
    pub left: &'a str,
    /// Unit of the right axis, if there is one.
    pub right: Option<&'a str>,
    mixed: bool,
}

impl Axes<'_> {
    /// The side of the axis of a line.
    pub(crate) fn side(&self, line: &Line) -> Side {
        match self.right {
            Some(unit) if unit == line.unit => Side::Right,
            _ => Side::Left,
        }
    }

    /// The text for a line in the legend.
    pub(crate) fn named(&self, line: &Line) -> String {
        let (label, unit) = (&line.label, &line.unit);
        match (self.side(line), unit.is_empty()) {
            (Side::Right, true) => format!("{label} [right]"),
            (Side::Right, false) => format!("{label} [{unit}, right]"),
            (Side::Left, false) if self.mixed || self.right.is_some() => {
                format!("{label} [{unit}]")
            }
            (Side::Left, _) => label.clone(),
        }
    }
}

/// A figure: the input of a renderer.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Text above the picture.
    pub title: String,
    /// Smaller text below the title.
    pub subtitle: String,
    /// Lines of the figure: at least one, each with at least one finite value.
    pub lines: Vec<Line>,
    /// Time zone for the labels of the times.
    pub zone: TimeZone,
}

impl Figure {
    /// First and last time of all lines, in nanoseconds since 1970.
    pub(crate) fn time_span(&self) -> (Nanos, Nanos) {
        let times = || {
            let points = self.lines.iter().flat_map(|line| &line.points);
            let bands = self.lines.iter().flat_map(|line| &line.band);
            points
                .map(|point| point.time)
                .chain(bands.flat_map(|extent| [extent.times.0, extent.times.1]))
        };
        (times().min().unwrap_or(0), times().max().unwrap_or(0))
    }

    /// The value axes.
    pub(crate) fn axes(&self) -> Axes<'_> {
        let mut units: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !units.contains(&line.unit.as_str()) {
                units.push(&line.unit);
            }
        }
        let (left, right) = match units[..] {
            [] => ("", None),
            [unit] => (unit, None),
            [left, right] => (left, Some(right)),
            _ => ("", None),
        };
        let mixed = units.len() > 2;
        Axes { left, right, mixed }
    }

    /// Smallest and largest finite value of all lines at this side.
    pub(crate) fn value_span(&self, side: Side) -> (f64, f64) {
        let axes = self.axes();
        let finite = || {
            let lines = || self.lines.iter().filter(|line| axes.side(line) == side);
            let points = lines().flat_map(|line| &line.points);
            let bands = lines().flat_map(|line| &line.band);
            points
                .map(|point| point.value)
                .chain(bands.flat_map(|extent| [extent.values.0, extent.values.1]))
                .filter(|value| value.is_finite())
        };
        let low = finite().fold(f64::INFINITY, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        if low <= high { (low, high) } else { (0.0, 1.0) }
    }
}

impl Line {
    /// Divides the line into connected parts: a missing value, or a gap far longer than the usual step, interrupts the
    /// line. `pixel` is the time that one pixel covers; a gap that is shorter is not visible.
    pub(crate) fn segments(&self, pixel: f64) -> Vec<Vec<Point>> {
        let gap = (self.usual_step() * GAP_STEPS).max(pixel * 1.5);
        let mut segments = Vec::new();
        let mut current: Vec<Point> = Vec::new();
        for point in &self.points {
            let far = current
                .last()
                .is_some_and(|last| distance(last.time, point.time) > gap);
            if (far || !point.value.is_finite()) && !current.is_empty() {
                segments.push(std::mem::take(&mut current));
            }
            if point.value.is_finite() {
                current.push(*point);
            }
        }
        if !current.is_empty() {
            segments.push(current);
        }
        segments
    }

    /// The median distance between neighbouring points in time.
    fn usual_step(&self) -> f64 {
        let mut steps: Vec<f64> = self
            .points
            .windows(2)
            .map(|pair| distance(pair[0].time, pair[1].time))
            .filter(|step| *step > 0.0)
            .collect();
        if steps.is_empty() {
            return f64::INFINITY;
        }
        let middle = steps.len() / 2;
        *steps.select_nth_unstable_by(middle, f64::total_cmp).1
    }
}

#[expect(clippy::cast_precision_loss, reason = "positions in a picture")]
pub(crate) fn distance(from: Nanos, to: Nanos) -> f64 {
    (to - from) as f64
}

/// Keeps only the first, lowest, highest and last point of every pixel column. The picture is the same, pixel by pixel,
/// for any number of points.
pub(crate) fn reduce(points: &[Point], columns: usize) -> Vec<Point> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    if points.len() <= columns.saturating_mul(4) {
        return points.to_vec();
    }
    let span = (last.time - first.time).max(1);
    let column_of = |point: &Point| (point.time - first.time) * columns as i128 / (span + 1);
    let mut kept = Vec::with_capacity(columns * 4);
    for bucket in points.chunk_by(|a, b| column_of(a) == column_of(b)) {
        // The bucket has at least one point, because `chunk_by` never returns an empty slice.
        let by_value = |wanted: std::cmp::Ordering| {
            let mut best = 0;
            for (index, point) in bucket.iter().enumerate() {
                if point.value.partial_cmp(&bucket[best].value) == Some(wanted)
                    || (!bucket[best].value.is_finite() && point.value.is_finite())
                {
                    best = index;
                }
            }
            best
        };
        let mut picks = [
            0,
            by_value(std::cmp::Ordering::Less),
            by_value(std::cmp::Ordering::Greater),
            bucket.len() - 1,
        ];
        picks.sort_unstable();
        let mut previous = None;
        for pick in picks {
            if previous != Some(pick) {
                kept.push(bucket[pick]);
            }
            previous = Some(pick);
        }
    }
    kept
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn points(values: &[f64]) -> Vec<Point> {
        let at = |index: usize| index as i128 * 1_000_000_000;
        values
            .iter()
            .enumerate()
            .map(|(i, &value)| Point { time: at(i), value })
            .collect()
    }

    #[test]
    fn reduction_keeps_the_extremes() {
        let values: Vec<f64> = (0..10_000)
            .map(|i| if i == 4321 { 99.0 } else { f64::from(i % 7) })
            .collect();
        let kept = reduce(&points(&values), 100);
        assert!(kept.len() <= 400);
        assert!(kept.iter().any(|point| point.value == 99.0));
        assert!(kept.is_sorted_by_key(|point| point.time));
        assert_eq!(kept.last().unwrap().time, 9_999_000_000_000);
        assert_eq!(reduce(&points(&[1.0, 2.0]), 100).len(), 2);
        assert!(reduce(&[], 10).is_empty());
    }

    #[test]
    fn lines_break_at_gaps_and_missing_values() {
        let mut all = points(&[1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0]);
        all.push(Point {
            time: 60_000_000_000,
            value: 6.0,
        });
        let line = Line {
            label: "a".into(),
            points: all,
            ..Line::default()
        };
        let lengths: Vec<usize> = line.segments(1.0).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 3, 1]);
        // A gap shorter than a pixel is not visible.
        assert_eq!(line.segments(1e12).len(), 2);
    }

    #[test]
    fn two_units_have_two_axes() {
        let line = |unit: &str, values: &[f64]| Line {
            label: "a".into(),
            unit: unit.into(),
            points: points(values),
            ..Line::default()
        };
        let figure = |units: &[&str]| Figure {
            title: String::new(),
            subtitle: String::new(),
            lines: units
                .iter()
                .zip(1..)
                .map(|(unit, n)| line(unit, &[f64::from(n), f64::from(n * 100)]))
                .collect(),
            zone: TimeZone::UTC,
        };
        for (units, left, right, names) in [
            (&["", ""][..], "", None, ["a", "a"]),
            (&["m/s", "m/s"], "m/s", None, ["a", "a"]),
            (
                &["m/s", "kW"],
                "m/s",
                Some("kW"),
                ["a [m/s]", "a [kW, right]"],
            ),
            (&["", "kW"], "", Some("kW"), ["a", "a [kW, right]"]),
            (&["kW", ""], "kW", Some(""), ["a [kW]", "a [right]"]),
            (&["m/s", "kW", "K"], "", None, ["a [m/s]", "a [kW]"]),
        ] {
            let figure = figure(units);
            let axes = figure.axes();
            assert_eq!((axes.left, axes.right), (left, right), "{units:?}");
            for (line, name) in figure.lines.iter().zip(names) {
                assert_eq!(axes.named(line), name, "{units:?}");
            }
            let spans = [Side::Left, Side::Right].map(|side| figure.value_span(side));
            match (units.len(), right) {
                (2, None) => assert_eq!(spans, [(1.0, 200.0), (0.0, 1.0)]),
                (2, Some(_)) => assert_eq!(spans, [(1.0, 100.0), (2.0, 200.0)]),
                _ => assert_eq!(spans[0], (1.0, 300.0)),
            }
        }
    }
}
