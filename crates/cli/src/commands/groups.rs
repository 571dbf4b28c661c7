//! `window` over groups of series, and with filled gaps.

use super::figures::figure_of;
use super::origin::{mention_shift, windows_of};
use crate::args::{Function, WindowArgs};
use crate::columns::figures_column;
use crate::database::{Reader, Span};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::{TimeShow, read_any};
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::ops::Bound;
use tidalite::query::{Fill, GroupWindow, SelectionQuery};
use tidalite::{Figure, Selection, Timestamp};

/// `tidalite window --group-by`, `--fill`
pub(crate) fn run(args: &WindowArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let figures = args
        .functions
        .iter()
        .map(|&function| told_of_groups(function));
    let figures = figures.collect::<Outcome<Vec<Figure>>>()?;
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    if let Some(unnamed) = infos
        .iter()
        .find(|info| args.by_metric && info.name.is_none())
    {
        let label = unnamed.label();
        return Err(Failure::usage(format!("series {label} has no metric"))
            .hint("exclude it from the pattern, or omit --by-metric"));
    }
    let series = infos.iter().map(|info| reader.series(info));
    let selection = Selection::of(series.collect::<Outcome<Vec<_>>>()?);
    let times = Span::of(&args.range)?.on_clock(selection.series());
    let tags: Vec<&str> = match &args.group_by {
        Some(tags) => tags
            .iter()
            .map(|tag| tag.trim())
            .filter(|tag| !tag.is_empty())
            .collect(),
        None => Vec::new(),
    };
    // Without --group-by every series is a group, and its name is the first column, as without --fill.
    let with_series = args.format.format.names_series(infos.len());
    let groups: Vec<(Vec<Cell>, SelectionQuery<'_, '_>)> = match &args.group_by {
        Some(_) => {
            let groups = selection.query(times).group_by(&tags).into_iter();
            groups
                .map(|group| {
                    let values = group
                        .tags()
                        .iter()
                        .map(|(_, value)| Cell::Text(value.clone()));
                    (values.collect(), group)
                })
                .collect()
        }
        None => {
            let alone = selection.query(times).each().into_iter();
            let label = |group: &SelectionQuery<'_, '_>| {
                let series = group.series().filter(|_| with_series);
                Vec::from_iter(series.map(|series| Cell::Text(series.info().label())))
            };
            alone.map(|group| (label(&group), group)).collect()
        }
    };
    if args.group_by.is_some() && !args.by_metric && !args.mix_metrics {
        for (_, group) in &groups {
            refuse_mixed(group)?;
        }
    }
    let head = match &args.group_by {
        Some(_) => tags.iter().map(|tag| Column::text(*tag)).collect(),
        None => Vec::from_iter(with_series.then(|| Column::text("series"))),
    };
    // Without --by-metric all series of a group are aggregated together, whatever they measure.
    let metrics: Vec<Option<&str>> = match args.by_metric {
        true => selection.metrics().into_iter().map(Some).collect(),
        false => vec![None],
    };
    let names = metrics.iter().flat_map(|metric| {
        args.functions.iter().map(move |function| {
            let name = function.to_possible_value();
            let name = name.map_or(String::new(), |name| name.get_name().to_owned());
            Column::number(match metric {
                Some(metric) => format!("{name}({metric})"),
                None => name,
            })
        })
    });
    let columns = head
        .into_iter()
        .chain([Column::text("time")])
        .chain(names)
        .collect();
    let messages = terminal.messages;
    let mut sheet = terminal.sheet(args.format.format, columns);
    let zone = &args.range.zone.tz;
    let show = TimeShow::new(zone.clone());
    let (mut any, mut told) = (false, false);
    for (cells, group) in groups {
        let Some((first, last)) = span_of(&group) else {
            continue;
        };
        let first = match times.0 {
            Bound::Included(from) => first.max(from),
            _ => first,
        };
        let last = match times.1 {
            Bound::Included(to) | Bound::Excluded(to) => last.min(to),
            Bound::Unbounded => last,
        };
        let shown = (first.0.into(), last.0.into());
        mention_shift(zone, shown, args.by, messages, &mut told);
        let origin = match &args.origin {
            Some(text) => Some(read_any(text, zone).map_err(Failure::usage)?),
            None => None,
        };
        let grid = windows_of(args.by, origin, zone, shown.0)?;
        let windows_in = |group: &SelectionQuery<'_, '_>| {
            let Some(column) = column_of_all(group, args)? else {
                return Ok(Vec::new());
            };
            let query = group.clone().figures(&figures[..]);
            let windows = query.windows(&grid, &column);
            windows.map_err(|error| reader.fail(&error))
        };
        let windows = metrics.iter().map(|metric| match metric {
            Some(metric) => windows_in(&group.clone().metric(metric)),
            None => windows_in(&group),
        });
        let windows: Vec<_> = windows.collect::<Outcome<_>>()?;
        let fill = args.fill.unwrap_or(Fill::None);
        // Gaps of a metric are filled over the whole range in which any metric has windows.
        let starts = || windows.iter().flatten().map(|window| window.start);
        let filled = (
            bounded(times.0, starts().min()),
            bounded(times.1, starts().max()),
        );
        // Line by line: narrow windows over a long time may not fit in memory.
        let lines = windows.iter().flat_map(|windows| {
            let line = |place: usize| {
                let value = move |values: &Vec<Option<f64>>| values[place];
                let fill = match (figures[place], fill) {
                    // A filled window still counts no points.
                    (
                        Figure::Count,
                        Fill::Null | Fill::Previous | Fill::Linear | Fill::Value(_),
                    ) => Fill::Value(0.0),
                    _ => fill,
                };
                GroupWindow::filled_by(windows, filled, &grid, fill, value).map(Iterator::peekable)
            };
            (0..figures.len()).map(line)
        });
        let mut lines: Vec<_> = lines
            .collect::<tidalite::Result<_>>()
            .map_err(|error| reader.fail(&error))?;
        while let Some(start) = lines
            .iter_mut()
            .filter_map(|line| line.peek().map(|&(start, _)| start))
            .min()
        {
            any = true;
            let values = lines
                .iter_mut()
                .zip(figures.iter().cycle())
                .map(|(line, &figure)| {
                    let value = line.next_if(|&(own, _)| own == start);
                    let value = value.and_then(|(_, value)| value);
                    value.map_or(Cell::Missing, |value| cell_of(figure, value))
                });
            let time = Cell::Text(show.show(start.0.into()));
            let line: Vec<Cell> = cells.iter().cloned().chain([time]).chain(values).collect();
            sheet.row(&line)?;
        }
    }
    if !any {
        return Err(Span::of(&args.range)?.nothing());
    }
    Ok(sheet.finish()?)
}

/// Rejects a group with several metrics: their common figures mean nothing, such as a mean of degrees and percent.
fn refuse_mixed(group: &SelectionQuery<'_, '_>) -> Outcome {
    let metrics = group.series().map(|series| match &series.info().name {
        Some(name) => name.metric().to_owned(),
        None => series.info().label(),
    });
    let metrics: BTreeSet<String> = metrics.collect();
    if metrics.len() < 2 {
        return Ok(());
    }
    const SHOWN: usize = 4;
    let more = if metrics.len() > SHOWN { ", ..." } else { "" };
    let names: Vec<String> = metrics.into_iter().take(SHOWN).collect();
    Err(Failure::usage(format!(
        "--group-by would mix the values of different metrics: {}{more}",
        names.join(", ")
    ))
    .hint("--by-metric gives each metric columns of its own; otherwise choose one metric, or mix them with --mix-metrics"))
}

/// The column of these series to aggregate; `None` if there are no series.
fn column_of_all(group: &SelectionQuery<'_, '_>, args: &WindowArgs) -> Outcome<Option<String>> {
    let mut found: Option<(String, String)> = None;
    for series in group.series() {
        let info = series.info();
        let column = figures_column(info, &args.column, &args.functions)?;
        let column = &info.schema.columns[column].name;
        match &found {
            Some((other, label)) if other != column => {
                return Err(Failure::usage(format!(
                    "the figures would come from different columns: `{other}` of {label}, `{column}` of {}",
                    info.label()
                ))
                .hint("use --column to name a column that all of them have"));
            }
            Some(_) => {}
            None => found = Some((column.clone(), info.label())),
        }
    }
    Ok(found.map(|(column, _)| column))
}

/// Replaces an unbounded end by the end of the data.
fn bounded(given: Bound<Timestamp>, there: Option<Timestamp>) -> Bound<Timestamp> {
    match (given, there) {
        (Bound::Unbounded, Some(there)) => Bound::Included(there),
        (given, _) => given,
    }
}

/// The first and the last time of all series of the group.
fn span_of(group: &SelectionQuery<'_, '_>) -> Option<(Timestamp, Timestamp)> {
    let spans = group.series().filter_map(|series| {
        let (first, last) = series.span()?;
        let time = |raw| {
            let nanos = crate::database::to_nanos(series.info().schema.unit, raw);
            Timestamp(i64::try_from(nanos).unwrap_or(0))
        };
        Some((time(first), time(last)))
    });
    spans.reduce(|all, own| (all.0.min(own.0), all.1.max(own.1)))
}

fn cell_of(figure: Figure, value: f64) -> Cell {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count is a whole number, and positive"
    )]
    match figure {
        Figure::Count => Cell::Count(value as u64),
        Figure::Min | Figure::Max | Figure::First | Figure::Last => Cell::Float(value),
        _ => Cell::Computed(value),
    }
}

fn told_of_groups(function: Function) -> Outcome<Figure> {
    figure_of(function).ok_or_else(|| {
        Failure::usage("this figure is not there for groups and filled gaps")
            .hint("--fn count,sum,mean,min,max,first,last,stddev")
    })
}
