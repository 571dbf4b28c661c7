//! Plots with braille characters in the terminal: every character is a cell of two by four dots.
//!
//! ```text
//! bit of a dot in a cell      0 3
//! (Unicode U+2800 + bits)     1 4
//!                             2 5
//!                             6 7
//! ```

use super::chart::LEGEND_MAX;
use super::scale::{TimeScale, ValueScale};
use super::{Axes, Figure, Line, Side, distance};
use crate::output::printable;
use crate::style::Palette;
use std::fmt::Write;

/// Number of dots per cell, across and down.
const DOTS: (usize, usize) = (2, 4);

/// Number of the bit in a braille character for each dot of a cell, by row and column.
const BITS: [[u8; 2]; 4] = [[0, 3], [1, 4], [2, 5], [6, 7]];

/// Size of the picture in characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Width of the picture, labels included.
    pub columns: usize,
    /// Height of the plot, without title and labels.
    pub rows: usize,
}

struct Cell {
    bits: u8,
    line: usize,
}

struct Grid {
    columns: usize,
    rows: usize,
    cells: Vec<Cell>,
}

impl Grid {
    fn new(columns: usize, rows: usize) -> Self {
        let cells = (0..columns * rows)
            .map(|_| Cell { bits: 0, line: 0 })
            .collect();
        Self {
            columns,
            rows,
            cells,
        }
    }

    fn dots(&self) -> (usize, usize) {
        (self.columns * DOTS.0, self.rows * DOTS.1)
    }

    fn dot(&mut self, x: i64, y: i64, line: usize) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else {
            return;
        };
        let (across, down) = self.dots();
        if x >= across || y >= down {
            return;
        }
        let cell = &mut self.cells[y / DOTS.1 * self.columns + x / DOTS.0];
        cell.bits |= 1 << BITS[y % DOTS.1][x % DOTS.0];
        cell.line = line;
    }

    /// Draws a line with Bresenham's algorithm.
    fn stroke(&mut self, from: (i64, i64), to: (i64, i64), line: usize) {
        let (mut x, mut y) = from;
        let (dx, dy) = ((to.0 - x).abs(), -(to.1 - y).abs());
        let (step_x, step_y) = ((to.0 - x).signum(), (to.1 - y).signum());
        let mut error = dx + dy;
        loop {
            self.dot(x, y, line);
            if (x, y) == to {
                return;
            }
            let twice = 2 * error;
            if twice >= dy {
                error += dy;
                x += step_x;
            }
            if twice <= dx {
                error += dx;
                y += step_y;
            }
        }
    }

    fn draw(&mut self, index: usize, line: &Line, times: &TimeScale, values: &ValueScale) {
        let (across, down) = self.dots();
        let pixel = distance(times.from, times.to) / across as f64;
        #[expect(clippy::cast_possible_truncation, reason = "0..=dots of a terminal")]
        let place = |point: &super::Point| {
            let x = times.place(point.time) * (across - 1) as f64;
            let y = (1.0 - values.place(point.value)) * (down - 1) as f64;
            (x.round() as i64, y.round() as i64)
        };
        for segment in line.segments(pixel) {
            let mut previous = None;
            for point in &segment {
                let here = place(point);
                self.stroke(previous.unwrap_or(here), here, index);
                previous = Some(here);
            }
        }
    }
}

/// Draws the figure as lines of text.
pub(crate) fn render(figure: &Figure, size: Size, palette: Palette) -> String {
    let rows = size.rows.max(3);
    let axes = figure.axes();
    let scale = |side| {
        let (low, high) = figure.value_span(side);
        ValueScale::over(low, high, (rows / 3).clamp(2, 10))
    };
    let values = scale(Side::Left);
    let second = axes.right.map(|_| scale(Side::Right));
    let width_of = |scale: &ValueScale| {
        let widths = scale.ticks.iter();
        widths.map(|(_, text)| text.chars().count()).max()
    };
    let label_width = width_of(&values).unwrap_or(1);
    // The width that is left for the plot, without the labels, a space and an axis at each side that has them.
    let at_right = second
        .as_ref()
        .and_then(width_of)
        .map_or(0, |width| width + 2);
    let columns = size.columns.saturating_sub(label_width + 2 + at_right);
    let columns = columns.max(10);
    let (from, to) = figure.time_span();
    let times = TimeScale::fitting(from, to, columns, &figure.zone);

    let mut grid = Grid::new(columns, rows);
    for (index, line) in figure.lines.iter().enumerate() {
        let own = match axes.side(line) {
            Side::Left => &values,
            Side::Right => second.as_ref().unwrap_or(&values),
        };
        grid.draw(index, line, &times, own);
    }

    let mut text = String::new();
    head(figure, palette, label_width, &mut text);
    units(&axes, label_width, columns, palette, &mut text);
    let row_of = |values: &ValueScale, value: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0..rows"
        )]
        let row = ((1.0 - values.place(value)) * (rows * DOTS.1 - 1) as f64).round() as usize;
        row / DOTS.1
    };
    let labels_of = |values: &ValueScale| {
        let mut labels = vec![None; rows];
        for (value, label) in &values.ticks {
            labels[row_of(values, *value)] = Some(label.clone());
        }
        labels
    };
    let labels = labels_of(&values);
    let labels_right = second.as_ref().map(labels_of);
    for (row, label) in labels.iter().enumerate() {
        let label = label.as_deref();
        let axis = if label.is_some() { '┤' } else { '│' };
        let shown = format!("{:>label_width$} ", label.unwrap_or_default());
        text.push_str(&shown);
        text.push_str(&palette.dim(axis));
        let cells = &grid.cells[row * columns..(row + 1) * columns];
        let used = body(cells, label.is_some(), palette, &mut text);
        if let Some(labels) = &labels_right {
            text.push_str(&" ".repeat(columns - used));
            let (axis, label) = match &labels[row] {
                Some(label) => ('├', format!(" {label}")),
                None => ('│', String::new()),
            };
            text.push_str(&palette.dim(axis));
            text.push_str(&label);
        }
        text.push('\n');
    }
    foot(&times, columns, label_width, palette, &mut text);
    text
}

fn head(figure: &Figure, palette: Palette, indent: usize, text: &mut String) {
    let indent = " ".repeat(indent + 2);
    let _ = writeln!(text, "{indent}{}", palette.bold(printable(&figure.title)));
    if !figure.subtitle.is_empty() {
        let _ = writeln!(text, "{indent}{}", palette.dim(printable(&figure.subtitle)));
    }
    if figure.lines.len() > 1 {
        let axes = figure.axes();
        for (index, line) in figure.lines.iter().take(LEGEND_MAX).enumerate() {
            let mark = palette.line(index, "⣤⣤");
            let _ = writeln!(text, "{indent}{mark} {}", printable(&axes.named(line)));
        }
        let more = figure.lines.len().saturating_sub(LEGEND_MAX);
        if more > 0 {
            let _ = writeln!(text, "{indent}{}", palette.dim(format!("and {more} more")));
        }
    }
}

/// Writes the units above their axes, if they are known.
fn units(axes: &Axes<'_>, label_width: usize, columns: usize, palette: Palette, text: &mut String) {
    let (left, right) = (axes.left, axes.right.unwrap_or_default());
    if left.is_empty() && right.is_empty() {
        return;
    }
    let left = format!("{:>label_width$}", printable(left));
    // The right unit begins at the right axis.
    let gap = (label_width + 2 + columns).saturating_sub(left.chars().count());
    let line = match right {
        "" => left,
        right => format!("{left}{:gap$}{}", "", printable(right)),
    };
    let _ = writeln!(text, "{}", palette.dim(line));
}

/// Writes one row of cells and returns how many are written: those up to the last one that is not empty. Neighbouring
/// cells of one colour are painted together, with a single escape sequence.
fn body(cells: &[Cell], grid_line: bool, palette: Palette, text: &mut String) -> usize {
    let used = cells
        .iter()
        .rposition(|cell| cell.bits != 0 || grid_line)
        .map_or(0, |last| last + 1);
    let kind = |cell: &Cell| {
        if cell.bits == 0 {
            usize::MAX
        } else {
            cell.line
        }
    };
    for run in cells[..used].chunk_by(|a, b| kind(a) == kind(b)) {
        if run[0].bits == 0 {
            let blank = if grid_line { "┈" } else { " " };
            text.push_str(&palette.dim(blank.repeat(run.len())));
            continue;
        }
        let dots: String = run
            .iter()
            .map(|cell| char::from_u32(0x2800 + u32::from(cell.bits)).unwrap_or(' '))
            .collect();
        text.push_str(&palette.line(run[0].line, dots));
    }
    used
}

fn foot(times: &TimeScale, columns: usize, indent: usize, palette: Palette, text: &mut String) {
    let mut axis = vec!['─'; columns];
    let mut labels = vec![' '; columns + indent + 2];
    let mut free_from = 0;
    for (time, label) in &times.ticks {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0..columns"
        )]
        let column = (times.place(*time).clamp(0.0, 1.0) * (columns - 1) as f64).round() as usize;
        axis[column] = '┬';
        let length = label.chars().count();
        let start = (indent + 2 + column).saturating_sub(length / 2);
        let start = start.min(labels.len().saturating_sub(length));
        if start < free_from || start + length > labels.len() {
            continue;
        }
        for (slot, c) in labels[start..].iter_mut().zip(label.chars()) {
            *slot = c;
        }
        free_from = start + length + 1;
    }
    let axis: String = axis.into_iter().collect();
    let labels: String = labels.into_iter().collect();
    let _ = writeln!(
        text,
        "{}{}",
        " ".repeat(indent + 1),
        palette.dim(format!("└{axis}"))
    );
    let _ = writeln!(text, "{}", labels.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::tests::points;
    use jiff::tz::TimeZone;

    fn figure(lines: &[&[f64]]) -> Figure {
        let lines = lines
            .iter()
            .enumerate()
            .map(|(index, values)| Line {
                label: format!("line {index}"),
                points: points(values),
                ..Line::default()
            })
            .collect();
        Figure {
            title: "title".into(),
            subtitle: String::new(),
            lines,
            zone: TimeZone::UTC,
        }
    }

    #[test]
    fn a_rising_line() {
        let values: Vec<f64> = (0..=60).map(f64::from).collect();
        let text = render(
            &figure(&[&values]),
            Size {
                columns: 30,
                rows: 6,
            },
            Palette::PLAIN,
        );
        let expected = [
            "    title",
            "   │                      ⢀⣀⠤⠒",
            "50 ┤┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈⣀⠤⠔⠚⠁┈┈┈",
            "   │             ⣀⠤⠔⠊⠉",
            "   │        ⣀⡠⠔⠒⠉⠁",
            "   │   ⢀⡠⠔⠒⠉",
            " 0 ┤⠤⠒⠉⠁┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
            "   └┬────────────┬───────────┬",
            "  Jan 1      00:00:30 00:01:00",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn odd_figures_are_drawn_too() {
        for lines in [
            &[&[1.0][..]][..],
            &[&[f64::NAN, 1.0, f64::INFINITY, 2.0]],
            &[&[f64::MAX, f64::MIN]],
            &[&[f64::NAN]],
            &[&[1.0, 2.0], &[2.0, 1.0]],
        ] {
            for columns in [0, 1, 20, 300] {
                let mut figure = figure(lines);
                let size = Size { columns, rows: 4 };
                let text = render(&figure, size, Palette::PLAIN);
                assert!(text.lines().count() >= 6);
                figure.lines[0].unit = "m/s".into();
                let text = render(&figure, size, Palette::PLAIN);
                assert!(text.lines().count() >= 7 && text.contains("m/s"), "{text}");
            }
        }
    }

    #[test]
    fn two_units_have_an_axis_at_each_side() {
        let mut figure = figure(&[&[0.0, 1.0, 2.0], &[200.0, 100.0, 0.0]]);
        figure.lines[0].unit = "m/s".into();
        figure.lines[1].unit = "kW".into();
        let size = Size {
            columns: 30,
            rows: 6,
        };
        let text = render(&figure, size, Palette::PLAIN);
        let expected = ["   title", "   ⣤⣤ line 0 [m/s]", "   ⣤⣤ line 1 [kW, right]"];
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], expected, "{text}");
        assert!(
            lines[3].trim_start().starts_with("m/s") && lines[3].ends_with("kW"),
            "{text}"
        );
        assert!(text.contains("├ 200") && text.contains("2 ┤"), "{text}");
        assert!(
            lines.iter().all(|line| line.chars().count() <= 30),
            "{text}"
        );
    }
}
