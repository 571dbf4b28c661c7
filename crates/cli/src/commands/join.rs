//! `join`: prints several series side by side, joined on time.

use super::filters::ValueFilter;
use crate::args::{JoinArgs, JoinKind};
use crate::columns::column_of;
use crate::database::{Reader, Span, series_cell};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use std::sync::Arc;
use tidalite::query::Join;
use tidalite::{Selection, SeriesInfo};

/// Runs the command `tidalite join`.
pub(crate) fn run(args: &JoinArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let join = match (args.kind, args.tolerance) {
        (JoinKind::AsOf, tolerance) => Join::AsOf {
            tolerance: tolerance.unwrap_or(i64::MAX),
        },
        (_, Some(_)) => {
            return Err(Failure::usage("--tolerance belongs to --kind as-of"));
        }
        (JoinKind::Outer, None) => Join::Outer,
        (JoinKind::Inner, None) => Join::Inner,
    };
    if let Some(arithmetic) = args.combine {
        return super::functions::combine(args, join, arithmetic, terminal);
    }
    let reader = Reader::open(&args.file)?;
    let infos = reader.select_all(&args.patterns)?;
    let places = infos.iter().map(|info| column_of(info, &args.column));
    let places = places.collect::<Outcome<Vec<_>>>()?;
    let series = infos.iter().map(|info| reader.series(info));
    let series = series.collect::<Outcome<Vec<_>>>()?;
    let span = Span::of(&args.range)?;
    let times = span.on_clock(&series);
    let selection = Selection::of(series);
    let columns = [Column::text("time")]
        .into_iter()
        .chain(infos.iter().map(|info| Column::number(info.label())))
        .collect();
    let mut sheet = terminal.sheet(args.format.format, columns);
    let show = TimeShow::new(args.range.zone.tz.clone());
    let fail = |error: tidalite::Error| reader.fail(&error);
    let opened = selection.series().map_err(fail)?;
    let filters = filters(args, &reader, &infos, &places)?;
    let mut query = selection.query(times);
    for (series, (column, values)) in filters {
        query = query.filter_series(series, column, values);
    }
    let mut rows = query.join(join).map_err(fail)?;
    let mut any = false;
    while let Some(row) = rows.next().map_err(fail)? {
        any = true;
        let mut cells = vec![Cell::Text(show.show(row.time.0.into()))];
        for (i, &column) in places.iter().enumerate() {
            cells.push(match row.words(i) {
                Some(words) => series_cell(&opened[i], column, words[column]).map_err(fail)?,
                None => Cell::Missing,
            });
        }
        sheet.row(&cells)?;
    }
    if !any {
        return Err(span.nothing());
    }
    Ok(sheet.finish()?)
}

/// The filters of `--where`, each with the index of its series in the join.
fn filters(
    args: &JoinArgs,
    reader: &Reader,
    infos: &[Arc<SeriesInfo>],
    columns: &[usize],
) -> Outcome<Vec<(usize, ValueFilter)>> {
    let mut filters = Vec::new();
    for wanted in &args.wanted {
        for own in reader.select(&wanted.pattern)? {
            let Some(place) = infos.iter().position(|info| info.id == own.id) else {
                let problem = format!("--where: {} is not one of the joined series", own.label());
                return Err(Failure::usage(problem).hint("list it before the options, too"));
            };
            filters.push((place, super::filters::on(columns[place], wanted.values)));
        }
    }
    Ok(filters)
}
