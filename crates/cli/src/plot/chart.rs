//! The layout of a plot in SVG and PNG.
//!
//! ```text
//! +--------------------------------------+
//! | title                                |
//! | subtitle                             |
//! | == label   == label   == label       |   legend, if there is more than one line
//! | m/s                               kW |   units, if they are known
//! |  60 +----------------------------+ 9 |   right axis, if there are two units
//! |  40 |                            |   |
//! |  20 +--------+--------+----------+ 0 |
//! |     Jan     Feb      Mar             |
//! +--------------------------------------+
//! ```

use super::scale::{TimeScale, ValueScale};
use super::{Axes, Extent, Figure, Line, Side, distance};
use crate::output::printable;
use crate::time::Nanos;

/// A colour, as red, green and blue.
pub(crate) type Color = [u8; 3];

/// The alignment of a text relative to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// The text begins at its position.
    Start,
    /// The text is centred at its position.
    Middle,
    /// The text ends at its position.
    End,
}

/// A surface to draw on. The unit of coordinates is one pixel at normal resolution, and the origin is the top left
/// corner.
pub(crate) trait Canvas {
    /// Draws a filled rectangle.
    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, color: Color);
    /// Draws a connected line with round ends; a single point becomes a dot.
    fn polyline(&mut self, points: &[(f64, f64)], width: f64, color: Color);
    /// Draws translucent boxes side by side, from left to right, each given as left, top, width and height.
    fn veil(&mut self, boxes: &[(f64, f64, f64, f64)], color: Color);
    /// Draws one line of text at `x`; `y` is the base line of the text.
    fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, color: Color, text: &str);
}

/// Width of every character, as a fraction of the font size.
pub(crate) const CHARACTER_WIDTH: f64 = 0.6;

const BACKGROUND: Color = [255, 255, 255];
const INK: Color = [32, 36, 44];
const FAINT_INK: Color = [98, 106, 120];
const GRID: Color = [230, 233, 238];
const AXIS: Color = [150, 158, 170];

/// Colours of the lines, which can be distinguished with red-green colour blindness, too.
const LINES: [Color; 8] = [
    [31, 111, 180],
    [222, 120, 20],
    [130, 70, 170],
    [20, 145, 110],
    [190, 45, 60],
    [110, 90, 60],
    [230, 120, 190],
    [110, 120, 130],
];

const TITLE_SIZE: f64 = 17.0;
const TEXT_SIZE: f64 = 12.5;
const MARGIN: f64 = 18.0;
const LEGEND_ROW: f64 = 20.0;

/// Height of the space between the title and legend and the plot.
const HEAD_GAP: f64 = 18.0;

/// Distance of the units from the plot below them.
const UNIT_GAP: f64 = 6.0;

/// Height of the space below the plot, for the labels of the times.
const FOOT: f64 = MARGIN + TEXT_SIZE + 8.0;

/// Minimum fraction of the picture's height for the plot: if there is less room, the legend, the subtitle and the title
/// are omitted, in this order.
const PLOT_SHARE: f64 = 0.4;

/// Minimum fraction of the picture's width for the plot: if there is less room, the labels of the values are omitted.
const PLOT_SHARE_ACROSS: f64 = 0.5;

/// Width and height in pixels of the smallest picture that has room for a plot: 33 of 90 pixel rows are left between
/// the margin and the foot.
pub(crate) const SIZE_MIN: (u32, u32) = (160, 90);

/// Maximum number of points of a line at which each point gets a dot.
const DOTTED_MAX: usize = 60;

/// Maximum number of lines that are named in the legend; further lines are only counted.
pub(crate) const LEGEND_MAX: usize = 24;

/// Draws the figure on a canvas of this size.
pub(crate) fn draw(figure: &Figure, width: f64, height: f64, canvas: &mut impl Canvas) {
    canvas.rect(0.0, 0.0, width, height, BACKGROUND);
    let top = head(figure, width, height, canvas);
    let plot = Plot::new(figure, width, top, height - FOOT);
    plot.value_axis(canvas);
    plot.time_axis(width, canvas);
    let axes = figure.axes();
    units(&axes, width, top, canvas);
    for (index, line) in figure.lines.iter().enumerate() {
        plot.band(line, axes.side(line), LINES[index % LINES.len()], canvas);
    }
    for (index, line) in figure.lines.iter().enumerate() {
        plot.line(line, axes.side(line), LINES[index % LINES.len()], canvas);
    }
}

/// Draws the units above their axes.
fn units(axes: &Axes<'_>, width: f64, top: f64, canvas: &mut impl Canvas) {
    let y = top - UNIT_GAP;
    let mut unit = |x: f64, anchor, unit: &str| {
        if !unit.is_empty() {
            let text = fitting(unit, TEXT_SIZE, width / 2.0);
            canvas.text(x, y, TEXT_SIZE, anchor, FAINT_INK, &text);
        }
    };
    unit(MARGIN, Anchor::Start, axes.left);
    unit(width - MARGIN, Anchor::End, axes.right.unwrap_or_default());
}

/// The framed area of the picture in which values are drawn.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    values: ValueScale,
    /// The scale of the right axis, if there is one.
    second: Option<ValueScale>,
    times: TimeScale,
}

impl Plot {
    fn new(figure: &Figure, width: f64, top: f64, bottom: f64) -> Self {
        let scale = |side| {
            let (low, high) = figure.value_span(side);
            ValueScale::over(low, high, ticks_in(bottom - top, 44.0))
        };
        let mut values = scale(Side::Left);
        let mut second = figure.axes().right.map(|_| scale(Side::Right));
        let label_width = |scale: &ValueScale| {
            let widths = scale.ticks.iter();
            let widths = widths.map(|(_, text)| text_width(text, TEXT_SIZE));
            widths.fold(0.0, f64::max) + 8.0
        };
        let mut left = MARGIN + label_width(&values);
        let mut right = width - MARGIN - second.as_ref().map_or(0.0, label_width);
        if right - left < width * PLOT_SHARE_ACROSS {
            (left, right) = (MARGIN, width - MARGIN);
            for scale in [Some(&mut values), second.as_mut()].into_iter().flatten() {
                scale.ticks.iter_mut().for_each(|(_, label)| label.clear());
            }
        }
        let (from, to) = figure.time_span();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, small"
        )]
        let room = ((right - left).max(1.0) / (TEXT_SIZE * CHARACTER_WIDTH)) as usize;
        let times = TimeScale::fitting(from, to, room, &figure.zone);
        Self {
            left,
            right,
            top,
            bottom,
            values,
            second,
            times,
        }
    }

    fn x_of(&self, time: Nanos) -> f64 {
        self.left + self.times.place(time) * (self.right - self.left)
    }

    fn y_of(&self, value: f64, side: Side) -> f64 {
        let scale = match side {
            Side::Left => &self.values,
            Side::Right => self.second.as_ref().unwrap_or(&self.values),
        };
        self.bottom - scale.place(value) * (self.bottom - self.top)
    }

    fn value_axis(&self, canvas: &mut impl Canvas) {
        for (value, label) in &self.values.ticks {
            let y = self.y_of(*value, Side::Left);
            canvas.polyline(&[(self.left, y), (self.right, y)], 1.0, GRID);
            let (x, y) = (self.left - 8.0, y + TEXT_SIZE * 0.35);
            canvas.text(x, y, TEXT_SIZE, Anchor::End, FAINT_INK, label);
        }
        let Some(second) = &self.second else {
            return;
        };
        // Only the left axis has lines across the plot, because the lines of two axes would not meet.
        let (top, bottom) = ((self.right, self.top), (self.right, self.bottom));
        canvas.polyline(&[top, bottom], 1.0, AXIS);
        for (value, label) in &second.ticks {
            let y = self.y_of(*value, Side::Right);
            canvas.polyline(&[(self.right, y), (self.right + 4.0, y)], 1.0, AXIS);
            let (x, y) = (self.right + 8.0, y + TEXT_SIZE * 0.35);
            canvas.text(x, y, TEXT_SIZE, Anchor::Start, FAINT_INK, label);
        }
    }

    fn time_axis(&self, width: f64, canvas: &mut impl Canvas) {
        let mut free_from = f64::NEG_INFINITY;
        for (time, label) in &self.times.ticks {
            let x = self.x_of(*time);
            canvas.polyline(&[(x, self.top), (x, self.bottom)], 1.0, GRID);
            canvas.polyline(&[(x, self.bottom), (x, self.bottom + 4.0)], 1.0, AXIS);
            let half = text_width(label, TEXT_SIZE) / 2.0;
            let center = x.max(half).min(width - MARGIN / 2.0 - half);
            // A label may be wider than the picture; then it is omitted.
            if center - half < free_from.max(0.0) {
                continue;
            }
            let y = self.bottom + TEXT_SIZE + 8.0;
            canvas.text(center, y, TEXT_SIZE, Anchor::Middle, FAINT_INK, label);
            free_from = center + half + 8.0;
        }
        canvas.polyline(
            &[(self.left, self.bottom), (self.right, self.bottom)],
            1.0,
            AXIS,
        );
    }

    fn band(&self, line: &Line, side: Side, color: Color, canvas: &mut impl Canvas) {
        let boxed = |extent: &Extent| {
            let (left, right) = (self.x_of(extent.times.0), self.x_of(extent.times.1));
            let (bottom, top) = (
                self.y_of(extent.values.0, side),
                self.y_of(extent.values.1, side),
            );
            (left, top, (right - left).max(0.5), (bottom - top).max(0.5))
        };
        let boxes: Vec<_> = line.band.iter().map(boxed).collect();
        if !boxes.is_empty() {
            canvas.veil(&boxes, color);
        }
    }

    fn line(&self, line: &Line, side: Side, color: Color, canvas: &mut impl Canvas) {
        let pixel = distance(self.times.from, self.times.to) / (self.right - self.left).max(1.0);
        let dots = line.points.len() <= DOTTED_MAX;
        for segment in line.segments(pixel) {
            let points: Vec<(f64, f64)> = segment
                .iter()
                .map(|point| (self.x_of(point.time), self.y_of(point.value, side)))
                .collect();
            if points.len() > 1 {
                canvas.polyline(&points, 1.6, color);
            }
            if dots || points.len() == 1 {
                for point in &points {
                    canvas.polyline(&[*point], 5.0, color);
                }
            }
        }
    }
}

/// Draws the title and the legend if the plot keeps its minimum height; returns the top of the plot.
fn head(figure: &Figure, width: f64, height: f64, canvas: &mut impl Canvas) -> f64 {
    let top_max = height - FOOT - height * PLOT_SHARE;
    let mut y = MARGIN + TITLE_SIZE * 0.8;
    if y + HEAD_GAP > top_max {
        return MARGIN;
    }
    let title = fitting(&figure.title, TITLE_SIZE, width);
    canvas.text(MARGIN, y, TITLE_SIZE, Anchor::Start, INK, &title);
    if !figure.subtitle.is_empty() && y + TEXT_SIZE * 1.5 + HEAD_GAP <= top_max {
        y += TEXT_SIZE * 1.5;
        let subtitle = fitting(&figure.subtitle, TEXT_SIZE, width);
        canvas.text(MARGIN, y, TEXT_SIZE, Anchor::Start, FAINT_INK, &subtitle);
    }
    let rows = if top_max > y + HEAD_GAP {
        ((top_max - y - HEAD_GAP) / LEGEND_ROW) as usize
    } else {
        0
    };
    if figure.lines.len() > 1 && rows > 0 {
        y = legend(figure, width, (y, rows), canvas);
    }
    y + HEAD_GAP
}

/// Draws the names of the lines from `y` downward, in at most `rows_max` rows; returns the lower end of the legend.
fn legend(
    figure: &Figure,
    width: f64,
    (y, rows_max): (f64, usize),
    canvas: &mut impl Canvas,
) -> f64 {
    let axes = figure.axes();
    let mut rows: Vec<Vec<(f64, usize, String)>> = Vec::new();
    let mut x = MARGIN;
    for (index, line) in figure.lines.iter().take(LEGEND_MAX).enumerate() {
        let label = fitting(&axes.named(line), TEXT_SIZE, width - 28.0);
        let entry = 28.0 + text_width(&label, TEXT_SIZE);
        if x > MARGIN && x + entry > width - MARGIN || rows.is_empty() {
            x = MARGIN;
            rows.push(Vec::new());
        }
        if let Some(row) = rows.last_mut() {
            row.push((x, index, label));
        }
        x += entry + 16.0;
    }
    // The last row of the legend says how many lines are not named.
    if rows.len() > rows_max || rows.len() == rows_max && figure.lines.len() > LEGEND_MAX {
        rows.truncate(rows_max - 1);
    }
    let mut y = y;
    for row in &rows {
        y += LEGEND_ROW;
        for (x, index, label) in row {
            let middle = y - TEXT_SIZE * 0.35;
            canvas.polyline(
                &[(x + 2.0, middle), (x + 18.0, middle)],
                3.0,
                LINES[index % LINES.len()],
            );
            canvas.text(x + 24.0, y, TEXT_SIZE, Anchor::Start, INK, label);
        }
    }
    let named: usize = rows.iter().map(Vec::len).sum();
    let more = figure.lines.len() - named;
    if more > 0 {
        y += LEGEND_ROW;
        let text = match named {
            0 => format!("{more} series"),
            _ => format!("and {more} more"),
        };
        canvas.text(MARGIN, y, TEXT_SIZE, Anchor::Start, FAINT_INK, &text);
    }
    y
}

fn ticks_in(length: f64, room: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "2..=30"
    )]
    let ticks = (length / room).clamp(2.0, 30.0) as usize;
    ticks
}

fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * CHARACTER_WIDTH
}

/// The text, shortened with an ellipsis if it is wider than `width`.
fn fitting(text: &str, size: f64, width: f64) -> String {
    let text = printable(text);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates at 1"
    )]
    let room = ((width - 2.0 * MARGIN) / (size * CHARACTER_WIDTH)).max(1.0) as usize;
    if text.chars().count() <= room {
        return text;
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::tests::points;

    /// A canvas for tests, which checks that everything is drawn within the picture.
    struct Bounds {
        width: f64,
        height: f64,
        texts: Vec<String>,
    }

    impl Bounds {
        fn check(&self, x: f64, y: f64, what: &str) {
            let across = (-0.5..=self.width + 0.5).contains(&x);
            let down = (-0.5..=self.height + 0.5).contains(&y);
            assert!(
                across && down,
                "{what} at {x} {y} of {} {}",
                self.width,
                self.height
            );
        }
    }

    impl Canvas for Bounds {
        fn rect(&mut self, _: f64, _: f64, _: f64, _: f64, _: Color) {}

        fn polyline(&mut self, points: &[(f64, f64)], _: f64, _: Color) {
            points
                .iter()
                .for_each(|(x, y)| self.check(*x, *y, "a line"));
        }

        fn veil(&mut self, _: &[(f64, f64, f64, f64)], _: Color) {}

        fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, _: Color, text: &str) {
            let width = text_width(text, size);
            let left = match anchor {
                Anchor::Start => x,
                Anchor::Middle => x - width / 2.0,
                Anchor::End => x - width,
            };
            self.check(left, y - size * 0.8, text);
            self.check(left + width, y, text);
            self.texts.push(text.to_owned());
        }
    }

    fn figure(lines: usize, values: &[f64]) -> Figure {
        let line = |number| Line {
            label: format!("Temperature{{region=\"north\",state=\"VIC\",station=\"{number}\"}}"),
            points: points(values),
            ..Line::default()
        };
        Figure {
            title: "Temperature".to_owned(),
            subtitle: "345 points, 2014-01-14T00:00:00Z to 2014-01-17T23:30:00Z".to_owned(),
            lines: (0..lines).map(line).collect(),
            zone: jiff::tz::TimeZone::UTC,
        }
    }

    #[test]
    fn every_size_has_room_for_its_plot() {
        for lines in [1, 2, 5, 24, 25, 300] {
            for values in [&[20.0, 40.0, 30.0][..], &[-1.234_567e-300, 1e-300], &[5.0]] {
                let figure = figure(lines, values);
                for width in [160.0, 161.5, 300.0, 450.0, 960.0, 4000.0] {
                    for height in [90.0, 100.0, 130.0, 200.0, 400.0, 480.0, 2000.0] {
                        let mut figure = figure.clone();
                        // With units, which take an axis more if there are two.
                        for (line, unit) in figure.lines.iter_mut().zip(["kW", "m/s"]) {
                            line.unit = unit.repeat(if width < 300.0 { 1 } else { 40 });
                        }
                        let mut canvas = Bounds {
                            width,
                            height,
                            texts: Vec::new(),
                        };
                        draw(&figure, width, height, &mut canvas);
                        let top = head(&figure, width, height, &mut canvas);
                        let plot = Plot::new(&figure, width, top, height - FOOT);
                        assert!(plot.bottom - plot.top >= 30.0, "{lines} {width} {height}");
                        assert!(
                            plot.bottom - plot.top >= height * 0.35,
                            "{lines} {width} {height}"
                        );
                        assert!(
                            plot.right - plot.left >= width * 0.5,
                            "{lines} {width} {height}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn lines_without_room_in_the_legend_are_counted() {
        let texts = |lines, height| {
            let mut canvas = Bounds {
                width: 450.0,
                height,
                texts: Vec::new(),
            };
            draw(&figure(lines, &[1.0, 2.0]), 450.0, height, &mut canvas);
            canvas.texts
        };
        let has = |texts: &[String], text: &str| texts.iter().any(|own| own == text);
        assert!(has(&texts(5, 250.0), "and 4 more"), "{:?}", texts(5, 250.0));
        // At some height between 180 and 250, exactly one row of the legend fits.
        let counted = |height: u32| has(&texts(5, f64::from(height)), "5 series");
        assert!((180..250).any(counted));
        assert!(!has(&texts(5, 180.0), "5 series"));
        assert!(!texts(5, 400.0).iter().any(|text| text.ends_with("more")));
        let beyond = format!("and {} more", 30 - LEGEND_MAX);
        let many = texts(30, 2000.0);
        assert!(has(&many, &beyond), "{many:?}");
    }

    #[test]
    fn units_stand_above_their_axes() {
        let mut two = figure(2, &[1.0, 2.0]);
        two.lines[0].unit = "m/s".into();
        two.lines[1].unit = "kW".into();
        two.lines[1].points = points(&[1000.0, 2000.0]);
        let mut canvas = Bounds {
            width: 960.0,
            height: 480.0,
            texts: Vec::new(),
        };
        draw(&two, 960.0, 480.0, &mut canvas);
        let has = |text: &str| canvas.texts.iter().any(|own| own == text);
        assert!(has("m/s") && has("kW"), "{:?}", canvas.texts);
        // Each axis has the values of its own lines.
        assert!(
            has("1.2") && has("1200") && !has("500"),
            "{:?}",
            canvas.texts
        );
        assert!(
            canvas
                .texts
                .iter()
                .any(|text| text.ends_with("[kW, right]"))
        );
        let plot = Plot::new(&two, 960.0, 60.0, 440.0);
        let [left, right] = [(1.5, Side::Left), (1500.0, Side::Right)];
        assert!((plot.y_of(left.0, left.1) - plot.y_of(right.0, right.1)).abs() < 1e-9);
    }
}
