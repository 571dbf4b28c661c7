//! `window`: one line of aggregates for every hour, day or other width.

use super::figures::{Figures, by_column, output_columns};
use super::filters;
use super::origin::{check_steps, mention_shift, windows_of};
use crate::args::{Asked, WindowArgs, figure_list};
use crate::database::{Reader, Span, history_failure, time_cell, to_nanos};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::{TimeShow, read_any};
use std::collections::BTreeMap;
use tidalite::Steps;
use tidalite::query::History;

/// `tidalite window`
pub(crate) fn run(args: &WindowArgs, terminal: &mut Terminal<'_>) -> Outcome {
    if args.group_by.is_some() || args.fill.is_some() {
        return super::groups::run(args, terminal);
    }
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    let zone = &args.range.zone.tz;
    let origin = match &args.origin {
        Some(text) => Some(read_any(text, zone).map_err(Failure::usage)?),
        None => None,
    };
    let show = TimeShow::new(zone.clone());
    let functions = figure_list::all(&args.functions);
    let with_series = args.format.format.names_series(infos.len());
    let series_column = with_series.then(|| Column::text("series"));
    let columns = series_column
        .into_iter()
        .chain([Column::text("time")])
        .chain(output_columns(&functions))
        .collect();
    let messages = terminal.messages;
    let mut sheet = terminal.sheet(args.format.format, columns);
    let (mut any, mut told) = (false, false);
    for info in &infos {
        let columns = by_column(info, &args.column, &functions)?;
        let unit = info.schema.unit;
        check_steps(args.by, origin, unit)?;
        let series = reader.series(info)?;
        let history = reader.history(info)?;
        let there = history.as_ref().map_or(series.span(), History::span);
        let Some((from, to)) = there.and_then(|there| span.within(unit, there)) else {
            continue;
        };
        let shown = (to_nanos(unit, from), to_nanos(unit, to));
        mention_shift(zone, shown, args.by, messages, &mut told);
        let grid = windows_of(args.by, origin, zone, shown.0)?;
        let range = series.query(Steps(from)..=Steps(to));
        let fail = |error: tidalite::Error| reader.fail(&error);
        let filters = filters::of(&args.wanted, info, &args.column)?;
        let query = filters::filtered(range, &filters);
        let is_figure = |asked: &Asked| asked.function.figure().is_some();
        let mut stored = None;
        if let Some(history) = history {
            if filters.is_empty() && functions.iter().all(is_figure) {
                let range = reader.range_of_history(&history, &span, messages)?;
                stored = range.map(|range| (history, range));
            } else {
                reader.mention_replaced(info, &span, messages)?;
            }
        }
        let mut lines: BTreeMap<i64, Vec<Cell>> = BTreeMap::new();
        for own in columns {
            let figures = Figures {
                functions: &own.functions,
                show: &show,
            };
            let windows = match &stored {
                Some((history, range)) => figures
                    .of_history(history, *range, &grid, own.column)
                    .map_err(|error| history_failure(&reader, &error)),
                None => figures
                    .windows(&query, &grid, (&info.schema, own.column))
                    .map_err(fail),
            };
            for (start, cells) in windows? {
                let missing = || vec![Cell::Missing; functions.len()];
                let line = lines.entry(start).or_insert_with(missing);
                for (&place, cell) in own.places.iter().zip(cells) {
                    line[place] = cell;
                }
            }
        }
        for (start, cells) in lines {
            any = true;
            let series_cell = with_series.then(|| Cell::series(info));
            let time = time_cell(&show, unit, start);
            let line = series_cell.into_iter().chain([time]).chain(cells);
            sheet.row(&line.collect::<Vec<_>>())?;
        }
    }
    if !any {
        return Err(filters::nothing(&args.wanted, &span));
    }
    Ok(sheet.finish()?)
}
