//! `window`: one line of aggregates for every hour, day or other width.

use super::figures::Figures;
use super::filters;
use super::origin::{check_steps, mention_shift, windows_of};
use crate::args::WindowArgs;
use crate::columns::figures_column;
use crate::database::{Reader, Span, time_cell, to_nanos};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::{TimeShow, read_any};
use tidalite::Steps;

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
    let figures = Figures {
        functions: &args.functions,
        show: &show,
    };
    let with_series = args.format.format.names_series(infos.len());
    let series_column = with_series.then(|| Column::text("series"));
    let columns = series_column
        .into_iter()
        .chain([Column::text("time")])
        .chain(figures.columns())
        .collect();
    let messages = terminal.messages;
    let mut sheet = terminal.sheet(args.format.format, columns);
    let (mut any, mut told) = (false, false);
    for info in &infos {
        let column = figures_column(info, &args.column, &args.functions)?;
        let unit = info.schema.unit;
        check_steps(args.by, origin, unit)?;
        let series = reader.series(info)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let shown = (to_nanos(unit, from), to_nanos(unit, to));
        mention_shift(zone, shown, args.by, messages, &mut told);
        let grid = windows_of(args.by, origin, zone, shown.0)?;
        let range = series.query(Steps(from)..=Steps(to));
        let own = &info.schema.columns[column];
        let head = |start| {
            let series_cell = with_series.then(|| Cell::Text(info.label()));
            let time = time_cell(&show, unit, start);
            series_cell.into_iter().chain([time])
        };
        let fail = |error: tidalite::Error| reader.fail(&error);
        let filters = filters::of(&args.wanted, info, &args.column)?;
        let query = filters::filtered(range, &filters);
        if let (true, Some(asked)) = (filters.is_empty(), figures.as_floats(own)) {
            let of = query.figures(&asked[..]);
            for window in of.windows(&grid, column).map_err(fail)? {
                any = true;
                let cells = figures.float_cells(&window.aggregate);
                sheet.row(&head(window.start).chain(cells).collect::<Vec<_>>())?;
            }
            continue;
        }
        for window in query.windows(&grid, column).map_err(fail)? {
            any = true;
            let cells = figures.cells(&window.aggregate, own, unit);
            sheet.row(&head(window.start).chain(cells).collect::<Vec<_>>())?;
        }
    }
    if !any {
        return Err(filters::nothing(&args.wanted, &span));
    }
    Ok(sheet.finish()?)
}
