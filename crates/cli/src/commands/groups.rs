//! `window` for groups of series, and with filled gaps.

use super::figures::float_cell;
use super::origin::{mention_shift, windows_of};
use crate::args::{Asked, ColumnArg, Function, WindowArgs, figure_list};
use crate::columns::figures_column;
use crate::database::{Reader, Span, history_failure, to_nanos};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::style::Palette;
use crate::terminal::Terminal;
use crate::time::{TimeShow, read_any};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use tidalite::query::{Fill, GroupWindow, History, SelectionQuery};
use tidalite::{Figure, Grid, Selection, Steps, Timestamp, Unit, Window};

/// `tidalite window --group-by`, `--fill`
pub(crate) fn run(args: &WindowArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let functions = figure_list::all(&args.functions);
    for asked in &functions {
        if !matches!(asked.function, Function::Figure(..)) {
            return Err(Failure::usage(format!(
                "{} is not there for groups and filled gaps",
                asked.name
            ))
            .hint("omit it, or omit --group-by and --fill"));
        }
    }
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
    let series = series.collect::<Outcome<Vec<_>>>()?;
    let span = Span::of(&args.range)?;
    let times = span.on_clock(&series);
    let selection = Selection::of(series);
    let tags: Vec<&str> = match &args.group_by {
        Some(tags) => tags
            .iter()
            .map(|tag| tag.trim())
            .filter(|tag| !tag.is_empty())
            .collect(),
        None => Vec::new(),
    };
    // Without --group-by, every series is a group of its own, and its name is the first column, as without --fill.
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
                Vec::from_iter(series.map(|series| Cell::series(series.info())))
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
    // Without --by-metric, all series of a group are aggregated together, even if they have different metrics.
    let metrics: Vec<Option<&str>> = match args.by_metric {
        true => selection.metrics().into_iter().map(Some).collect(),
        false => vec![None],
    };
    let asked = asked_of(&functions, &metrics, args)?;
    let names = asked.iter().map(|asked| Column::number(asked.title()));
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
    let origin = match &args.origin {
        Some(text) => Some(read_any(text, zone).map_err(Failure::usage)?),
        None => None,
    };
    // The functions for each metric and column, as positions among the cells.
    let mut each: BTreeMap<(Option<&str>, Option<&str>), Vec<usize>> = BTreeMap::new();
    for (place, asked) in asked.iter().enumerate() {
        let of = asked.of.as_deref();
        let key = match args.by_metric {
            true => (of, None),
            false => (None, of),
        };
        each.entry(key).or_default().push(place);
    }
    for (cells, group) in groups {
        let Some((first, last)) = span_of(&group) else {
            continue;
        };
        let of_metric = |metric: Option<&str>| match metric {
            Some(metric) => group.clone().metric(metric),
            None => group.clone(),
        };
        let mut stored: BTreeMap<Option<&str>, Option<Stored<'_>>> = BTreeMap::new();
        for &(metric, _) in each.keys() {
            if let Entry::Vacant(place) = stored.entry(metric) {
                place.insert(Stored::of(&reader, &of_metric(metric), &span, messages)?);
            }
        }
        let histories = || stored.values().flatten();
        let (mut first, mut last) = (first, last);
        if let Some(oldest) = histories().map(|stored| stored.begin).min() {
            first = first.min(oldest);
        }
        // Only whole stored windows are read, and gaps are filled between them.
        let mut times = times;
        if let (1, Some(stored)) = (stored.len(), histories().next()) {
            times = stored.within(times);
        }
        if let Bound::Included(from) = times.0 {
            first = first.max(from);
        }
        if let Bound::Included(to) | Bound::Excluded(to) = times.1 {
            last = last.min(to);
        }
        let shown = (first.0.into(), last.0.into());
        mention_shift(zone, shown, args.by, messages, &mut told);
        let grid = windows_of(args.by, origin, zone, shown.0)?;
        let mut windows = Vec::with_capacity(each.len());
        for ((metric, column), places) in &each {
            let own = places.iter().map(|&place| &asked[place]);
            let figures: Vec<Figure> = own
                .clone()
                .filter_map(|asked| asked.function.figure())
                .collect();
            let group = of_metric(*metric);
            let own: Vec<Asked> = own.cloned().collect();
            let stored = stored.get(metric).and_then(Option::as_ref);
            let found = match (column_of_all(&group, (*column, &own), args)?, stored) {
                (Some(column), Some(stored)) => stored.windows(&grid, &column, &figures),
                (Some(column), None) => group.figures(&figures[..]).windows(&grid, &column),
                (None, _) => Ok(Vec::new()),
            };
            windows.push((
                places,
                found.map_err(|error| history_failure(&reader, &error))?,
            ));
        }
        let fill = args.fill.unwrap_or(Fill::None);
        // Gaps of a metric are filled over the whole range in which any metric has windows.
        let starts = || {
            let all = windows.iter().flat_map(|(_, windows)| windows);
            all.map(|window| window.start)
        };
        let filled = (
            bounded(times.0, starts().min()),
            bounded(times.1, starts().max()),
        );
        // Lines are produced one at a time, because narrow windows over a long time may not fit in memory.
        let mut lines = Vec::with_capacity(asked.len());
        for (places, windows) in &windows {
            for (at, &place) in places.iter().enumerate() {
                let value = move |values: &Vec<Option<f64>>| values[at];
                let fill = match (asked[place].function.figure(), fill) {
                    // A filled window still has a count of 0.
                    (
                        Some(Figure::Count | Figure::Distinct),
                        Fill::Null | Fill::Previous | Fill::Linear | Fill::Value(_),
                    ) => Fill::Value(0.0),
                    _ => fill,
                };
                let line = GroupWindow::filled_by(windows, filled, &grid, fill, value);
                let line = line.map_err(|error| reader.fail(&error))?;
                lines.push((place, line.peekable()));
            }
        }
        lines.sort_by_key(|(place, _)| *place);
        while let Some(start) = lines
            .iter_mut()
            .filter_map(|(_, line)| line.peek().map(|&(start, _)| start))
            .min()
        {
            any = true;
            let values = lines.iter_mut().zip(&asked).map(|((_, line), asked)| {
                let value = line.next_if(|&(own, _)| own == start);
                float_cell(asked.function, value.and_then(|(_, value)| value))
            });
            let time = Cell::Text(show.show(start.0.into()));
            let line: Vec<Cell> = cells.iter().cloned().chain([time]).chain(values).collect();
            sheet.row(&line)?;
        }
    }
    if !any {
        return Err(span.nothing());
    }
    Ok(sheet.finish()?)
}

/// The only series of a group, if its older points are replaced by stored windows; these are read together with the
/// points.
struct Stored<'r> {
    history: History<'r>,
    /// First and last time to read, in the series' unit. They do not cut a stored window.
    range: (i64, i64),
    /// The first time, as a timestamp.
    begin: Timestamp,
}

impl<'r> Stored<'r> {
    /// If a group has several series, only points are read, and a note is printed.
    fn of(
        reader: &'r Reader<'_>,
        group: &SelectionQuery<'_, '_>,
        span: &Span,
        messages: Palette,
    ) -> Outcome<Option<Self>> {
        let mut series: Vec<_> = group.series().collect();
        if series.len() != 1 {
            for series in series {
                reader.mention_replaced(series.info(), span, messages)?;
            }
            return Ok(None);
        }
        let Some(info) = series.pop().map(|series| series.info()) else {
            return Ok(None);
        };
        let Some(history) = reader.history(info)? else {
            return Ok(None);
        };
        let range = reader.range_of_history(&history, span, messages)?;
        Ok(range.map(|range| Self {
            begin: clock(info.schema.unit, range.0),
            history,
            range,
        }))
    }

    /// The bounds of a range, extended to the ends of stored windows that they would cut.
    fn within(
        &self,
        (from, to): (Bound<Timestamp>, Bound<Timestamp>),
    ) -> (Bound<Timestamp>, Bound<Timestamp>) {
        let end = clock(
            self.history.rows().info().schema.unit,
            self.range.1.saturating_add(1),
        );
        let from = match from {
            Bound::Included(from) => Bound::Included(from.max(self.begin)),
            from => from,
        };
        let to = match to {
            Bound::Excluded(to) => Bound::Excluded(to.min(end)),
            to => to,
        };
        (from, to)
    }

    /// The windows of a column.
    fn windows(
        &self,
        grid: &Grid,
        column: &str,
        figures: &[Figure],
    ) -> tidalite::Result<Vec<GroupWindow<Vec<Option<f64>>>>> {
        let (from, to) = self.range;
        let range = Steps(from)..=Steps(to);
        let windows = self.history.windows(range, grid, column, figures)?;
        let unit = self.history.rows().info().schema.unit;
        let window = |window: Window<Vec<Option<f64>>>| GroupWindow {
            start: clock(unit, window.start),
            aggregate: window.aggregate,
        };
        Ok(windows.into_iter().map(window).collect())
    }
}

/// Converts a time to a timestamp; times outside the range of nanoseconds become the last timestamp.
fn clock(unit: Unit, raw: i64) -> Timestamp {
    let beyond = if to_nanos(unit, raw) < 0 {
        i64::MIN
    } else {
        i64::MAX
    };
    unit.timestamp(raw).unwrap_or(Timestamp(beyond))
}

/// Rejects a group with several metrics, because common figures would be meaningless, such as a mean of degrees and
/// percent.
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

/// The functions of all cells. With --by-metric, each function without brackets comes first, once for each metric; the
/// functions that name a metric follow.
fn asked_of(
    functions: &[Asked],
    metrics: &[Option<&str>],
    args: &WindowArgs,
) -> Outcome<Vec<Asked>> {
    if !args.by_metric {
        return Ok(functions.to_vec());
    }
    let (own, common): (Vec<Asked>, Vec<Asked>) = functions
        .iter()
        .cloned()
        .partition(|asked| asked.of.is_some());
    let mut all = Vec::new();
    for metric in metrics.iter().flatten() {
        all.extend(common.iter().map(|asked| Asked {
            of: Some((*metric).to_owned()),
            ..asked.clone()
        }));
    }
    all.extend(own);
    let known = |asked: &&Asked| metrics.contains(&asked.of.as_deref());
    let Some(unknown) = all.iter().find(|asked| !known(asked)) else {
        return Ok(all);
    };
    let metrics: Vec<&str> = metrics.iter().copied().flatten().collect();
    let title = unknown.title();
    Err(
        Failure::not_found(format!("{title}: no series has this metric"))
            .hint(format!("the metrics are {}", metrics.join(", "))),
    )
}

/// The column of these series to aggregate; `None` if there are no series.
fn column_of_all(
    group: &SelectionQuery<'_, '_>,
    (wanted, functions): (Option<&str>, &[Asked]),
    args: &WindowArgs,
) -> Outcome<Option<String>> {
    let wanted = match wanted {
        Some(name) => &ColumnArg {
            column: Some(name.to_owned()),
        },
        None => &args.column,
    };
    let mut found: Option<(String, String)> = None;
    for series in group.series() {
        let info = series.info();
        let column = figures_column(info, wanted, functions)?;
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
        let time = |raw| clock(series.info().schema.unit, raw);
        Some((time(first), time(last)))
    });
    spans.reduce(|all, own| (all.0.min(own.0), all.1.max(own.1)))
}
