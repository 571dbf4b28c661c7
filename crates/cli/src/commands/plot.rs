//! `plot`: draws series.

use super::origin::{check_steps, mention_shift, windows_of};
use crate::args::{Function, PlotArgs};
use crate::columns::numeric_column;
use crate::database::{Reader, Span, to_nanos};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::plural;
use crate::plot::{Extent, Figure, Line, Point, chart, png, raster, reduce, svg, terminal};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use std::path::Path;
use tidalite::{Figure as Asked, Grid, Schema, Series, Steps};

/// Maximum number of pixel columns of all lines together. Many lines are drawn more coarsely, to bound the time.
const COLUMNS_MAX: usize = 400_000;

/// Lower limit for the share of `COLUMNS_MAX` that a line gets, in pixel columns: with very many lines, all lines
/// together exceed `COLUMNS_MAX`, so that the shape of each line remains visible.
const COLUMNS_MIN: usize = 32;

/// Up to this number, all points are read and reduced; beyond it, extremes are taken from the tree.
const POINTS_READ_MAX: u64 = 500_000;

/// Size of SVG and PNG, in units of one pixel at normal resolution.
const PICTURE: (u32, u32) = (960, 480);

/// Pixels of a PNG per unit.
const PNG_SCALE: u32 = 2;

/// `tidalite plot`
pub(crate) fn run(args: &PlotArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let to_output = |path: &Option<std::path::PathBuf>| path.as_deref() == Some(Path::new("-"));
    if to_output(&args.svg) && to_output(&args.png) {
        return Err(Failure::usage(
            "only one picture can be written to standard output",
        ));
    }
    for path in [&args.svg, &args.png].into_iter().flatten() {
        refuse_present(path, args.replace)?;
    }
    refuse_tiny(args)?;
    let reader = Reader::open(&args.file)?;
    let span = Span::of(&args.range)?;
    let pixels = match (&args.svg, &args.png) {
        (None, None) => columns_of(args, terminal) * 2,
        _ => args.width.unwrap_or(PICTURE.0 * PNG_SCALE) as usize,
    };
    let infos = reader.select_all(&args.patterns)?;
    let pixels = pixels.min((COLUMNS_MAX / infos.len().max(1)).max(COLUMNS_MIN));
    let to_file = args.svg.is_some() || args.png.is_some();
    let mut lines = Vec::new();
    let (mut points, mut told) = (0, false);
    for info in &infos {
        let column = numeric_column(info, &args.column)?;
        let series = reader.series(info)?;
        let Some(range) = span.in_series(&series) else {
            continue;
        };
        let line = Source {
            series: &series,
            column,
            range,
        };
        let (count, mut drawn) = match args.by {
            Some(by) => {
                let unit = info.schema.unit;
                let shown = (to_nanos(unit, range.0), to_nanos(unit, range.1));
                let zone = &args.range.zone.tz;
                mention_shift(zone, shown, by, terminal.messages, &mut told);
                check_steps(by, None, unit)?;
                line.windows(&windows_of(by, None, zone, shown.0)?, args)
            }
            None if args.band => line.band(pixels),
            None => line.outline(pixels, to_file),
        }
        .map_err(|error| reader.fail(&error))?;
        points += count;
        if drawn.points.iter().any(|point| point.value.is_finite()) {
            drawn.label = match info.schema.columns.len() {
                // A default point has flags in addition to its value.
                _ if info.schema == Schema::point() => info.label(),
                1 => info.label(),
                _ => format!("{} {}", info.label(), info.schema.columns[column].name),
            };
            if keeps_unit(args) {
                let unit = series
                    .annotation(UNIT)
                    .map_err(|error| reader.fail(&error))?;
                drawn.unit = unit.unwrap_or_default();
            }
            lines.push(drawn);
        }
    }
    if lines.is_empty() && points > 0 {
        return Err(
            Failure::not_found("no point in this range has a drawable value")
                .hint("`tidalite scan` prints the values: they are null, NaN or infinite"),
        );
    }
    if lines.is_empty() {
        return Err(span.nothing());
    }
    let figure = described(lines, points, args);
    draw(&figure, args, terminal)
}

/// Key of the annotation that holds the unit of a series' values.
const UNIT: &str = "unit";

/// Whether the drawn values have the unit of the series. They do not if they are counts, or values multiplied or
/// divided by time.
fn keeps_unit(args: &PlotArgs) -> bool {
    if args.by.is_none() {
        return true;
    }
    match args.function.function {
        Function::Figure(figure, _) => !matches!(
            figure,
            Asked::Count | Asked::Distinct | Asked::Integral(..) | Asked::Rate
        ),
        Function::NanCount | Function::MinTime | Function::MaxTime => false,
    }
}

/// Refuses to overwrite an existing file without `--replace`.
fn refuse_present(path: &Path, replace: bool) -> Outcome {
    if !replace && path.as_os_str() != "-" && path.exists() {
        let problem = format!("{} exists already", path.display());
        return Err(Failure::new(Exit::Failure, problem).hint("give another name, or --replace"));
    }
    Ok(())
}

/// Rejects a picture too small for its axes.
fn refuse_tiny(args: &PlotArgs) -> Outcome {
    if args.svg.is_none() && args.png.is_none() {
        return Ok(());
    }
    let (width_min, height_min) = chart::SIZE_MIN;
    if args.width.is_some_and(|width| width < width_min)
        || args.height.is_some_and(|height| height < height_min)
    {
        return Err(Failure::usage(format!(
            "a picture has at least {width_min} by {height_min} pixels"
        ))
        .hint("give a larger --width or --height"));
    }
    Ok(())
}

fn columns_of(args: &PlotArgs, terminal: &Terminal<'_>) -> usize {
    args.width
        .map_or(terminal.columns.unwrap_or(100).clamp(40, 160), |width| {
            width as usize
        })
}

fn described(lines: Vec<Line>, points: u64, args: &PlotArgs) -> Figure {
    let mut figure = Figure {
        title: String::new(),
        subtitle: String::new(),
        lines,
        zone: args.range.zone.tz.clone(),
    };
    figure.title = match (&args.title, figure.lines.as_slice()) {
        (Some(title), _) => title.clone(),
        (None, [line]) => line.label.clone(),
        (None, lines) => {
            let metrics: Vec<&str> = lines.iter().map(|line| metric_of(&line.label)).collect();
            if metrics.iter().all(|metric| *metric == metrics[0]) {
                metrics[0].to_owned()
            } else {
                args.patterns.join("  ")
            }
        }
    };
    let (from, to) = figure.time_span();
    let show = TimeShow::new(figure.zone.clone());
    let what = match args.by {
        Some(_) => {
            let name = args.function.title();
            format!("{name} of {}", plural(points, "window", "windows"))
        }
        None => plural(points, "point", "points"),
    };
    figure.subtitle = format!("{what}, {} to {}", show.show(from), show.show(to));
    figure
}

fn metric_of(label: &str) -> &str {
    label.split_once('{').map_or(label, |(metric, _)| metric)
}

fn draw(figure: &Figure, args: &PlotArgs, terminal: &mut Terminal<'_>) -> Outcome {
    if let Some(path) = &args.svg {
        let (width, height) = (
            args.width.unwrap_or(PICTURE.0),
            args.height.unwrap_or(PICTURE.1),
        );
        let text = svg::render(figure, width, height);
        if path.as_os_str() == "-" {
            terminal.out.write_all(text.as_bytes())?;
        } else {
            save(path, text.as_bytes(), terminal)?;
        }
    }
    if let Some(path) = &args.png {
        let width = args.width.unwrap_or(PICTURE.0 * PNG_SCALE);
        let height = args.height.unwrap_or(PICTURE.1 * PNG_SCALE);
        let scale = png_scale(width, height);
        let picture = raster::render(figure, width, height, scale);
        let bytes = png::encode(&picture)?;
        if path.as_os_str() == "-" {
            terminal.out.write_all(&bytes)?;
        } else {
            save(path, &bytes, terminal)?;
        }
    }
    if args.svg.is_none() && args.png.is_none() {
        let columns = columns_of(args, terminal);
        let rows = args.height.map_or(20, |rows| rows as usize);
        let size = terminal::Size { columns, rows };
        terminal
            .out
            .write_all(terminal::render(figure, size, terminal.palette).as_bytes())?;
    }
    Ok(terminal.out.flush()?)
}

/// Number of pixels of a PNG per unit: fewer for a small picture, so that its texts take no more space than in an SVG
/// of the same size.
fn png_scale(width: u32, height: u32) -> f64 {
    let room =
        (f64::from(width) / f64::from(PICTURE.0)).min(f64::from(height) / f64::from(PICTURE.1));
    room.clamp(1.0, f64::from(PNG_SCALE))
}

fn save(path: &Path, bytes: &[u8], terminal: &mut Terminal<'_>) -> Outcome {
    std::fs::write(path, bytes).map_err(|error| Failure::file("cannot write", path, &error))?;
    writeln!(terminal.out, "wrote {}", path.display())?;
    Ok(())
}

/// Data of a line to be drawn.
struct Source<'a> {
    series: &'a Series<'a>,
    column: usize,
    range: (i64, i64),
}

/// Number of points or windows, and the line, which has no label yet.
type Drawn = tidalite::Result<(u64, Line)>;

impl Source<'_> {
    /// A line with one point per window.
    fn windows(&self, grid: &Grid, args: &PlotArgs) -> Drawn {
        let unit = self.series.info().schema.unit;
        let range = self.series.query(Steps(self.range.0)..=Steps(self.range.1));
        let mut points = Vec::new();
        let mut draw = |start, value: Option<f64>| {
            points.push(Point {
                time: to_nanos(unit, start),
                value: value.unwrap_or(f64::NAN),
            });
        };
        match args.function.function {
            Function::Figure(figure, factor) => {
                let of = range.figures(figure);
                for window in of.windows(grid, self.column)? {
                    draw(window.start, window.aggregate.map(|value| value * factor));
                }
            }
            Function::NanCount | Function::MinTime | Function::MaxTime => {
                for window in range.windows(grid, self.column)? {
                    #[expect(clippy::cast_precision_loss, reason = "a position in a picture")]
                    draw(window.start, Some(window.aggregate.nan_count() as f64));
                }
            }
        }
        Ok((points.len() as u64, line(points)))
    }

    /// The mean of every pixel column, and a band from the lowest to the highest value.
    fn band(&self, pixels: usize) -> Drawn {
        let unit = self.series.info().schema.unit;
        let range = self.series.query(Steps(self.range.0)..=Steps(self.range.1));
        let mut drawn = Line::default();
        let of = range.clone().figures([Asked::Mean, Asked::Min, Asked::Max]);
        for window in of.windows(
            (Steps(self.column_width(pixels)), Steps(self.range.0)),
            self.column,
        )? {
            let [mean, low, high] = window.aggregate;
            let end = window.last.min(self.range.1);
            let times = (to_nanos(unit, window.start), to_nanos(unit, end));
            drawn.points.push(Point {
                time: times.0 + (times.1 - times.0) / 2,
                value: mean.unwrap_or(f64::NAN),
            });
            if let (Some(low), Some(high)) = (low, high)
                && low.is_finite()
                && high.is_finite()
            {
                let values = (low, high);
                drawn.band.push(Extent { times, values });
            }
        }
        Ok((range.count()?, drawn))
    }

    /// Time steps per pixel column.
    fn column_width(&self, pixels: usize) -> i64 {
        let span = i128::from(self.range.1) - i128::from(self.range.0) + 1;
        let width = span.div_euclid(pixels.max(1) as i128) + 1;
        i64::try_from(width).unwrap_or(i64::MAX)
    }

    /// First, lowest, highest and last value of every pixel column; for very many points a band if `may_be_band`.
    fn outline(&self, pixels: usize, may_be_band: bool) -> Drawn {
        let schema = &self.series.info().schema;
        let (unit, own) = (schema.unit, &schema.columns[self.column]);
        let range = self.series.query(Steps(self.range.0)..=Steps(self.range.1));
        let count = range.count()?;
        let mut points = Vec::new();
        if count <= POINTS_READ_MAX {
            range.for_each_vector(|vector| {
                let values = vector
                    .words(self.column)
                    .iter()
                    .map(|word| own.f64(*word).unwrap_or(f64::NAN));
                points.extend(
                    vector
                        .times()
                        .iter()
                        .zip(values)
                        .map(|(time, value)| Point {
                            time: to_nanos(unit, *time),
                            value,
                        }),
                );
            })?;
            return Ok((count, line(reduce(&points, pixels))));
        }
        if may_be_band {
            return self.band(pixels);
        }
        for window in range.windows(
            (Steps(self.column_width(pixels)), Steps(self.range.0)),
            self.column,
        )? {
            let of = &window.aggregate;
            let mut corners = vec![
                (window.start, of.first()),
                (window.last.min(self.range.1), of.last()),
            ];
            corners.extend(
                [of.min(), of.max()]
                    .into_iter()
                    .flatten()
                    .map(|(v, t)| (t, Some(v))),
            );
            corners.sort_by_key(|(time, _)| *time);
            points.extend(corners.into_iter().map(|(time, value)| Point {
                time: to_nanos(unit, time),
                value: value.unwrap_or(f64::NAN),
            }));
        }
        Ok((count, line(points)))
    }
}

fn line(points: Vec<Point>) -> Line {
    Line {
        points,
        ..Line::default()
    }
}
